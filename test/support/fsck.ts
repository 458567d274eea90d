/** Tessera's fsck over a directory that `scribe export --tlog` wrote. */
import { goTool } from './go-program.ts';
import { run } from './process.ts';

export interface Judged {
  readonly ok: boolean;
  readonly words: string;
}

/**
 * fsck exits with 0 whatever it found, and with few workers does not end on some bad logs: only its words count.
 * @param vkey  path of the key that `scribe journal vkey` printed
 */
export const fsck = async (dir: string, vkey: string): Promise<Judged> => {
  const argv = [
    await goTool('tlog-judges', 'fsck'),
    '--ui=false',
    '-N=4',
    `--storage_url=file://${dir}/`,
    `--public_key=${vkey}`,
  ];
  const { stdout, stderr } = await run(['timeout', '20', ...argv], { timeoutMs: 30_000 });
  const words = stdout + stderr;
  return { ok: words.includes("Successfully fsck'd log"), words };
};
