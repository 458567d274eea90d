/**
 * Builds the programs in Go that tests need (modules of test/support, and the directories of one that has several), and the programs of others that they pin, those
 * that are not in the cache directory yet: kubelet alone takes minutes, which no test should wait for. Prints where each is.
 */
import { glob } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { wordsOrEnd } from './lib/command-line.ts';
import { goProgram, goTool, toolsOf } from '../test/support/go-program.ts';

const usage = `node scripts/go-programs.ts

Builds the programs in Go that tests need and that are not in the cache directory yet, kubelet among them, and prints where
each is. Takes minutes, and needs Go.`;

wordsOrEnd({ usage, takesWords: false });
const support = join(import.meta.dirname, '../test/support');
for await (const module of glob('*/go.mod', { cwd: support })) {
  const sources = await Array.fromAsync(glob(`${dirname(module)}/{,*/}*.go`, { cwd: support }));
  for (const directory of new Set(sources.map(dirname))) console.log(await goProgram(directory));
  for (const tool of await toolsOf(dirname(module))) console.log(await goTool(dirname(module), basename(tool)));
}
