/**
 * Builds the programs in Go that tests need (test/support/NAME/go.mod), those that are not in the cache directory yet:
 * kubelet alone takes minutes, which no test should wait for. Prints where each is.
 */
import { glob } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { goProgram } from '../test/support/go-program.ts';

for await (const file of glob('*/go.mod', { cwd: join(import.meta.dirname, '../test/support') }))
  console.log(await goProgram(basename(dirname(file))));
