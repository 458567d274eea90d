/**
 * Reads what a shim logs. A shim opens the FIFO `log` of its bundle for writing and hangs until somebody reads it, and
 * hangs again when it is full, so it is read for as long as the pod lives, and anew after a restart of the daemon.
 * The lines go to the daemon's debug log, bounded in length and number; what is above the bounds is dropped.
 */
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { makeFifo, openEndlessFifoReader } from '../fifos.ts';

const logFifoName = 'log';
const lineBytesMax = 4096;
const linesPerSecondMax = 100;

export interface LogDrain {
  readonly close: () => void;
}

/** Splits chunks into lines of bounded length and hands over at most so many a second. */
const createLineLimiter = (emit: (line: string) => void): ((chunk: Buffer) => void) => {
  let rest = '';
  let second = 0;
  let lines = 0;
  const admit = (line: string): void => {
    const now = Math.floor(performance.now() / 1000);
    if (now !== second) {
      second = now;
      lines = 0;
    }
    lines += 1;
    if (line !== '' && lines <= linesPerSecondMax) emit(line.slice(0, lineBytesMax));
  };
  return (chunk) => {
    const parts = (rest + chunk.toString('utf8')).split('\n');
    rest = (parts.pop() ?? '').slice(0, lineBytesMax);
    parts.forEach(admit);
  };
};

/** Opens the log FIFO of a shim's bundle, making it when it is missing, before the shim is started or spoken to. */
export const openLogDrain = async (bundlePath: string, log: Logger): Promise<LogDrain> => {
  const path = join(bundlePath, logFifoName);
  await makeFifo(path);
  const socket: Socket = await openEndlessFifoReader(path);
  const admit = createLineLimiter((line) => {
    log.debug({ shimLog: line }, 'a shim logged');
  });
  socket.on('data', (chunk: Buffer) => {
    if (log.isLevelEnabled('debug')) admit(chunk);
  });
  socket.on('error', (error) => {
    log.warn({ error: error.message, path }, 'the log of a shim cannot be read any more');
  });
  return {
    close: () => {
      socket.destroy();
    },
  };
};
