/**
 * A client's side of one attachment: a connection of its own to the log keeper, whose frames go to the client's streams as
 * fast as it takes them. Keeps nothing of what goes through, and knows nothing of keepers but that they come and go.
 */
import { createConnection, type Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { Attachment, AttachmentEnd } from '../streaming/types.ts';
import { OutputFrame, outputFrames } from './attached-clients.ts';
import { encodeLine, parseReply } from './protocol.ts';

const REPLY_BYTES_MAX = 16 * 1024;

interface FrameEvents {
  readonly accepted: () => void;
  readonly failed: (error: Error) => void;
  /** false: whoever takes it is full. */
  readonly output: (kind: number, piece: Buffer) => boolean;
  readonly ended: (kind: number) => void;
}

/**
 * Cuts what comes into the reply and frames. Pieces of a frame are passed on as they come. The returned function gives
 * false when somebody is full.
 */
const createFrameCutter = ({ accepted, failed, output, ended }: FrameEvents): ((chunk: Buffer) => boolean) => {
  let head = Buffer.alloc(0);
  let isReply = true;
  let kind = 0;
  let left = 0;

  const takeReply = (chunk: Buffer): Buffer => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\n');
    if (end < 0) {
      if (head.length > REPLY_BYTES_MAX) failed(new FailureError('Bug', 'The log keeper answered attach at length.'));
      return Buffer.alloc(0);
    }
    const reply = parseReply(head.subarray(0, end).toString());
    const rest = head.subarray(end + 1);
    head = Buffer.alloc(0);
    isReply = false;
    if ('failure' in reply) failed(new FailureError(reply.failure.reason, reply.failure.message));
    else accepted();
    return rest;
  };

  const takeHead = (chunk: Buffer): Buffer => {
    const wanted = outputFrames.headBytes - head.length;
    head = Buffer.concat([head, chunk.subarray(0, wanted)]);
    if (head.length < outputFrames.headBytes) return Buffer.alloc(0);
    kind = outputFrames.headOf(head, 0);
    left = outputFrames.bodyBytesOf(head, 0);
    if (left > outputFrames.bodyBytesMax) throw new Error(`a frame of ${left} bytes`);
    head = Buffer.alloc(0);
    if (kind === OutputFrame.ended || kind === OutputFrame.tooSlow) ended(kind);
    return chunk.subarray(wanted);
  };

  return (chunk) => {
    let rest = chunk;
    let goesOn = true;
    while (rest.length > 0) {
      if (isReply) rest = takeReply(rest);
      else if (left === 0) rest = takeHead(rest);
      else {
        const piece = rest.subarray(0, left);
        left -= piece.length;
        rest = rest.subarray(piece.length);
        goesOn = output(kind, piece) && goesOn;
      }
    }
    return goesOn;
  };
};

export interface Hearing extends Attachment {
  /** null: what comes there is not wanted. They are not ended. */
  readonly stdout: Writable | null;
  readonly stderr: Writable | null;
  readonly signal: AbortSignal;
  /** Called once nothing that the container writes is missed any more. */
  readonly onAttached: () => void;
}

/**
 * Hands on what the container writes from now on, as fast as it is taken, until its output has ended, the client has
 * gone or the keeper has. Rejects with the keeper's FailureError, and when the container is far ahead of the client: it
 * is never held up for that.
 */
export const hearContainer = ({
  keeperPath,
  containerId,
  stdout,
  stderr,
  signal,
  onAttached,
}: Hearing): Promise<AttachmentEnd> =>
  new Promise((resolve, reject) => {
    const socket: Socket = createConnection(keeperPath);
    const takers: readonly (Writable | null)[] = [stdout, stderr];
    let stdoutBytes = 0;
    let stderrBytes = 0;

    const release = (): void => {
      for (const taker of takers) {
        taker?.off('drain', goOn);
        taker?.off('close', leave);
      }
      signal.removeEventListener('abort', leave);
      socket.destroy();
    };
    const fail = (error: Error): void => {
      release();
      reject(error);
    };
    const settle = (end: AttachmentEnd['end']): void => {
      release();
      resolve({ end, stdoutBytes, stderrBytes });
    };
    const goOn = (): void => {
      if (takers.every((taker) => taker?.writableNeedDrain !== true)) socket.resume();
    };
    const leave = (): void => settle('over');

    const take = createFrameCutter({
      accepted: onAttached,
      failed: fail,
      output: (kind, piece) => {
        const isStdout = kind === OutputFrame.stdout;
        const taker = isStdout ? stdout : stderr;
        if (taker === null || taker.destroyed) return true;
        if (isStdout) stdoutBytes += piece.length;
        else stderrBytes += piece.length;
        return taker.write(piece);
      },
      ended: (kind) => {
        if (kind === OutputFrame.ended) return settle('over');
        const message = `Container ${containerId} writes faster than the attached client reads; attach again to go on.`;
        fail(new FailureError('TimedOut', message));
      },
    });

    for (const taker of takers) {
      taker?.on('drain', goOn);
      taker?.on('close', leave);
      taker?.on('error', () => undefined);
    }
    if (signal.aborted || takers.some((taker) => taker?.destroyed === true)) return leave();
    signal.addEventListener('abort', leave);
    socket.on('error', () => undefined);
    socket.on('close', () => settle('keeperLost'));
    socket.on('data', (chunk: Buffer) => {
      try {
        if (!take(chunk)) socket.pause();
      } catch (error) {
        fail(new FailureError('Bug', `The log keeper at ${keeperPath} sent what is no frame: ${messageOf(error)}`));
      }
    });
    const wish = { stdout: stdout !== null, stderr: stderr !== null };
    socket.write(encodeLine({ number: 1, op: 'attach', containerId, ...wish }));
  });
