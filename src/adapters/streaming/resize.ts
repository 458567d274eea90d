/**
 * The sizes of a client's terminal, from the JSON objects on its resize stream. Other objects are passed over; a stream
 * of nonsense is not listened to any more.
 */
import type { Readable } from 'node:stream';
import type { TerminalSize } from './types.ts';

/** Of one object. */
const objectCharsMax = 1024;
const sideMax = 65_535;

const isSide = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= sideMax;

const sizeOf = (text: string): TerminalSize | null => {
  try {
    const { Width: width, Height: height } = JSON.parse(text) as {
      readonly Width?: unknown;
      readonly Height?: unknown;
    };
    return isSide(width) && isSide(height) ? { width, height } : null;
  } catch {
    return null;
  }
};

/** Reads `stream` to its end and tells whoever listens, at once with the last size that is known. */
export const listenForSizes = (stream: Readable | null): ((hear: (size: TerminalSize) => void) => void) => {
  const listeners: ((size: TerminalSize) => void)[] = [];
  let last: TerminalSize | null = null;
  let text = '';
  const onObject = (object: string): void => {
    const size = sizeOf(object);
    if (size === null) return;
    last = size;
    for (const hear of listeners) hear(size);
  };
  stream?.setEncoding('utf8');
  stream?.on('data', (chunk: string) => {
    const [...objects] = (text + chunk).split('}');
    text = objects.pop() ?? '';
    for (const object of objects) onObject(`${object}}`);
    if (text.length > objectCharsMax) stream.destroy();
  });
  return (hear) => {
    listeners.push(hear);
    if (last !== null) hear(last);
  };
};
