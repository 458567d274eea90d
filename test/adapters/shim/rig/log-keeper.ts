/** A log keeper that keeps in memory what containers write. */
import { fifoSocket } from '../../../../src/adapters/linux/fifo-socket.ts';
import { openFifoReader } from '../../../../src/adapters/shim/fifos.ts';
import type { LogKeeper } from '../../../../src/adapters/log-keeper/types.ts';

/** Keeps what containers write in memory, by container. */
export interface TestLogKeeper extends Pick<LogKeeper, 'open' | 'reopen' | 'close' | 'attach'> {
  readonly outputOf: (containerId: string) => string;
  readonly reopened: string[];
  readonly closed: string[];
}

export const createTestLogKeeper = (): TestLogKeeper => {
  const outputs = new Map<string, string>();
  const ends = new Map<string, { readonly ended: Promise<unknown>; readonly stop: () => void }>();
  const reopened: string[] = [];
  const closed: string[] = [];
  return {
    reopened,
    closed,
    outputOf: (containerId) => outputs.get(containerId) ?? '',
    open: async ({ containerId, stdoutFifo, stderrFifo }) => {
      if (ends.has(containerId)) return;
      const paths = stderrFifo === null ? [stdoutFifo] : [stdoutFifo, stderrFifo];
      const sockets = await Promise.all(paths.map(async (path) => fifoSocket(await openFifoReader(path), 'reader')));
      outputs.set(containerId, '');
      const ended = sockets.map(
        (socket) =>
          new Promise<void>((resolve) => {
            socket.on('data', (chunk: Buffer) =>
              outputs.set(containerId, (outputs.get(containerId) ?? '') + chunk.toString()),
            );
            socket.on('error', () => {
              resolve();
            });
            socket.on('close', () => {
              resolve();
            });
          }),
      );
      ends.set(containerId, {
        ended: Promise.all(ended),
        stop: () => {
          for (const socket of sockets) socket.destroy();
        },
      });
    },
    reopen: (containerId, logPath) => {
      reopened.push(`${containerId} ${logPath}`);
      return Promise.resolve();
    },
    attach: () => Promise.reject(new Error('Nobody attaches to this one.')),
    close: async (containerId, timeoutMs) => {
      closed.push(containerId);
      const open = ends.get(containerId);
      ends.delete(containerId);
      const timer = setTimeout(() => open?.stop(), timeoutMs);
      await open?.ended;
      clearTimeout(timer);
    },
  };
};
