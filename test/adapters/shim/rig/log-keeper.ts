/** Log keepers for the rig: one that keeps in memory what containers write, and the real one. */
import { fifoSocket } from '../../../../src/platform/linux/fifo-socket.ts';
import { openFifoReader } from '../../../../src/adapters/shim/fifos.ts';
import { holdProcess } from '../../../../src/platform/linux/processes.ts';
import { connectLogKeeper } from '../../../../src/adapters/log-keeper/client.ts';
import type { LogKeeper } from '../../../../src/adapters/log-keeper/types.ts';
import { SIGTERM } from '../../../../src/domain/values/signals.ts';
import { pooledFiles } from '../../../../src/platform/linux/files.ts';
import type { RigOptions } from './rig.ts';

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

/** Has the rig's adapters connect to the real log keeper, each daemon anew, as they come and go. */
export interface RealLogKeeper extends Required<Pick<RigOptions, 'startLogKeeper' | 'endLogKeeper'>> {
  /** The connection of the daemon that runs. */
  readonly current: () => LogKeeper;
  /** Ends its process. */
  readonly kill: () => Promise<void>;
}

export const createRealLogKeeper = (): RealLogKeeper => {
  let connected: LogKeeper | null = null;
  const current = (): LogKeeper => {
    if (connected === null) throw new Error('No log keeper was started.');
    return connected;
  };
  const kill = async (): Promise<void> => {
    const held = await holdProcess(current());
    held?.kill(SIGTERM);
    await held?.ended;
    held?.release();
  };
  return {
    current,
    kill,
    startLogKeeper: async (stateDir, spawner) => {
      connected?.disconnect();
      connected = await connectLogKeeper({
        files: pooledFiles,
        stateDir,
        spawner,
        lineBytesMax: 16_384,
        tell: () => undefined,
        log: () => undefined,
      });
      return connected;
    },
    endLogKeeper: async () => {
      if (connected === null) return;
      connected.disconnect();
      await kill();
    },
  };
};
