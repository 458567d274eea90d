/**
 * Builds the programs in Go that tests need (directories of test/support), those that are not in the cache directory yet:
 * kubelet alone takes minutes, which no test should wait for. Prints where each is.
 */
import { glob } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { goProgram } from '../test/support/go-program.ts';

const sources = await Array.fromAsync(glob('{*,*/*}/*.go', { cwd: join(import.meta.dirname, '../test/support') }));
for (const directory of new Set(sources.map(dirname))) console.log(await goProgram(directory));
