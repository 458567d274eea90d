/** A client's side of a session, in memory: what it hears, what it says, how large its terminal is, and that it goes. */
import { PassThrough, Writable } from 'node:stream';
import { hearContainer } from '../../../../src/adapters/log-keeper/attach.ts';
import { createMeter, pumpInput, pumpOutput, readMeter } from '../../../../src/adapters/streaming/pumps.ts';
import type { ProcessClient, SessionStreams, TerminalSize } from '../../../../src/adapters/streaming/types.ts';

export interface TestSession {
  readonly streams: SessionStreams;
  /** The same as performers have it, without the thread between. */
  readonly client: ProcessClient;
  readonly stdin: PassThrough;
  readonly heard: (stream: 'stdout' | 'stderr') => string;
  readonly heardBytes: (stream: 'stdout' | 'stderr') => number;
  /** Resolves once what was heard of the stream matches. */
  readonly hears: (pattern: RegExp, stream?: 'stdout' | 'stderr') => Promise<void>;
  readonly resize: (size: TerminalSize) => void;
  readonly leave: () => void;
}

interface Wish {
  readonly stdin?: boolean;
  readonly tty?: boolean;
  /** Counts what is heard instead of keeping it. */
  readonly countOnly?: boolean;
}

const clientOf = (streams: SessionStreams): ProcessClient => {
  const { stdin, stdout, stderr, onResize, signal } = streams;
  return {
    has: { stdin: stdin !== null, stdout: stdout !== null, stderr: stderr !== null },
    pumpInput: (fd) => {
      const meter = createMeter();
      return { ...readMeter(meter), ...pumpInput(fd, stdin ?? new PassThrough(), meter) };
    },
    pumpOutput: (stream, fd) => {
      const meter = createMeter();
      return { ...readMeter(meter), ...pumpOutput(fd, streams[stream], meter) };
    },
    dropInput: () => {
      stdin?.resume();
    },
    hear: (attachment, over, onAttached) => hearContainer({ ...attachment, stdout, stderr, signal: over, onAttached }),
    onResize,
    signal,
  };
};

export const createSession = ({ stdin: hasStdin = false, tty = false, countOnly = false }: Wish = {}): TestSession => {
  const stdin = new PassThrough();
  const abort = new AbortController();
  const texts = { stdout: '', stderr: '' };
  const counts = { stdout: 0, stderr: 0 };
  const waiting = new Set<() => void>();
  let hear: ((size: TerminalSize) => void) | null = null;
  let known: TerminalSize | null = null;

  const ear = (stream: 'stdout' | 'stderr'): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        counts[stream] += chunk.length;
        if (!countOnly) texts[stream] += chunk.toString();
        for (const wake of waiting) wake();
        setImmediate(done);
      },
    });

  const streams: SessionStreams = {
    stdin: hasStdin ? stdin : null,
    stdout: ear('stdout'),
    stderr: tty ? null : ear('stderr'),
    onResize: (listener) => {
      hear = listener;
      if (known !== null) listener(known);
    },
    signal: abort.signal,
  };
  return {
    streams,
    client: clientOf(streams),
    stdin,
    heard: (stream) => texts[stream],
    heardBytes: (stream) => counts[stream],
    hears: (pattern, stream = 'stdout') =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!pattern.test(texts[stream])) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    resize: (size) => {
      known = size;
      hear?.(size);
    },
    leave: () => {
      abort.abort();
      stdin.destroy();
    },
  };
};
