/** What CRIU says of why it failed: in its log alone, which goes with the directory that a checkpoint is put together in. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { quoted } from './failures.ts';

/** Its reasons stand at the end; all that it did on the way is there too. */
const END_BYTES = 65_536;
/** As in "(00.083643) Error (criu/cr-dump.c:388): Can't get rlimit 0: Operation not permitted". */
const ERROR = /^\(\d+\.\d+\)\s+(?:\d+:\s+)?Error \([^)]*\):\s*(.+?)\.?$/gm;

/** Bounded; '' where there is none. */
const criuErrorsIn = (log: string): string =>
  quoted([...log.matchAll(ERROR)].map(([, words = '']) => words).join('\n'));

/** The same, of the log in that directory. */
export const readCriuErrors = async (workDir: string): Promise<string> => {
  const file = await open(join(workDir, 'dump.log')).catch(() => null);
  if (file === null) return '';
  try {
    const { size } = await file.stat();
    const bytes = Buffer.alloc(Math.min(size, END_BYTES));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, size - bytes.length);
    return criuErrorsIn(bytes.toString('utf8', 0, bytesRead));
  } finally {
    await file.close();
  }
};
