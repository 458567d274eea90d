/** A log keeper with its spawner, FIFOs with writers that are processes of their own, and logs to read. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectLogKeeper } from '../../../src/adapters/log-keeper/client.ts';
import type { LogKeeper, LogKeeperNews, OpenLogRequest } from '../../../src/adapters/log-keeper/types.ts';
import { holdProcess, type ProcessName, readProcessStat } from '../../../src/platform/linux/processes.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { Spawner } from '../../../src/platform/spawner/types.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';
import { type Owner, onCleanup } from '../../support/cleanup.ts';
import { processes } from '../../support/leftovers.ts';
import { type BackgroundProcess, runOk, startProcess } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const SIGKILL = 9;
const counterPath = fileURLToPath(new URL('./counter.ts', import.meta.url));

export interface Fixture {
  readonly stateDir: string;
  readonly spawner: Spawner;
  /** What the client said, one sentence each. */
  readonly messages: string[];
  /** What it would have recorded. */
  readonly news: LogKeeperNews[];
  /** Another client, as the next daemon would be; disconnected when the test ends. */
  readonly connect: (lineBytesMax?: number) => Promise<LogKeeper>;
}

/** Kills exactly this process; resolves when it has gone. */
export const killProcess = async (name: ProcessName, signal: number = SIGKILL): Promise<void> => {
  const held = await holdProcess(name);
  held?.kill(signal);
  await held?.ended;
  held?.release();
};

export const nameOf = ({ pid, startTicks }: LogKeeper): ProcessName => ({ pid, startTicks });

/** Keepers of the directory, whether in charge or not. A test may end while one is being started. */
const killKeepers = async (dir: string): Promise<void> => {
  for (const { pid, commandLine } of await processes()) {
    const stat = commandLine.includes(`${dir}/log-keeper`) ? await readProcessStat(pid) : null;
    if (stat !== null) await killProcess(stat);
  }
};

export const fixtureOf = async (owner: Owner): Promise<Fixture> => {
  const stateDir = await tempDir(owner);
  const spawner = await startSpawner({ lockPath: join(stateDir, 'spawner.lock'), startTimeoutMs: 20_000 });
  const keepers: LogKeeper[] = [];
  onCleanup(owner, async () => {
    for (const keeper of keepers) keeper.disconnect();
    // In this order: without a spawner no keeper can be started any more.
    await spawner.close();
    await killKeepers(stateDir);
  });
  const messages: string[] = [];
  const news: LogKeeperNews[] = [];
  const connect = async (lineBytesMax = 16_384): Promise<LogKeeper> => {
    const keeper = await connectLogKeeper({
      files: pooledFiles,
      stateDir,
      spawner,
      lineBytesMax,
      log: (message) => messages.push(message),
      tell: (told) => news.push(told),
    });
    keepers.push(keeper);
    return keeper;
  };
  return { stateDir, spawner, messages, news, connect };
};

/** FIFOs for a container, and a log path whose directory does not exist yet. */
export const containerIn = async (
  stateDir: string,
  containerId: string,
): Promise<OpenLogRequest & { readonly stderrFifo: string; readonly logPath: string }> => {
  const dir = join(stateDir, 'fifos', containerId);
  await mkdir(dir, { recursive: true });
  const [stdoutFifo, stderrFifo] = [join(dir, 'stdout'), join(dir, 'stderr')];
  await runOk(['mkfifo', stdoutFifo, stderrFifo]);
  return { containerId, stdoutFifo, stderrFifo, logPath: join(stateDir, 'logs', containerId, '0.log') };
};

/** Writes to both FIFOs as a shim does: with a read end of its own open, so that a reader's death does not end it. */
export const startWriter = (
  owner: Owner,
  { stdoutFifo, stderrFifo }: { readonly stdoutFifo: string; readonly stderrFifo: string },
  script: string,
): Promise<BackgroundProcess> =>
  // The FIFOs are opened for reading and writing, which never waits for the other side.
  startProcess(owner, ['sh', '-c', `{ ${script}\n} 1<>"$0" 2<>"$1"`, stdoutFifo, stderrFifo]);

/** Counts lines to the FIFO, a thousand a second, and says so when done. */
export const startCounter = (owner: Owner, fifo: string, lines: number): Promise<BackgroundProcess> =>
  startProcess(owner, [process.execPath, counterPath, fifo, String(lines), '1000']);

/** What a counter of so many lines has written. */
export const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));

export const readLog = (path: string): Promise<string> => readFile(path, 'utf8');

/** Lines of the log's content: partial records are joined to what follows. */
export const contentOf = (log: string): string[] => {
  const records = log.split('\n').slice(0, -1);
  const text = records.map((record) => {
    const [, , tag, ...words] = record.split(' ');
    return words.join(' ') + (tag === 'F' ? '\n' : '');
  });
  const lines = text.join('').split('\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
};
