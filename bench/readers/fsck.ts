/**
 * A large journal as a transparency log: what writing it takes, whether Tessera's fsck accepts it, and whether it rejects it
 * with one bit of a leaf changed. Leaves nothing behind.
 */
import { globSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fsck } from '../../test/support/fsck.ts';
import { run } from '../../test/support/process.ts';
import { load, program, runScribe } from './run.ts';

const flipLastBit = async (path: string): Promise<void> => {
  const bytes = await readFile(path);
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
  await writeFile(path, bytes);
};

const show = (what: string, ms: number, outcome: string): void =>
  console.log(`| ${what} | ${Math.round(ms)} | ${outcome} |`);

const judge = async (what: string, dir: string, vkey: string, accepts: boolean): Promise<void> => {
  const startedMs = performance.now();
  const { ok, words } = await fsck(dir, vkey);
  const size = /checking log of size (\d+)/.exec(words)?.[1] ?? '?';
  const outcome = `${ok ? 'accepted' : 'rejected'}, size ${size}`;
  show(what, performance.now() - startedMs, ok === accepts ? outcome : `${outcome}: WRONG: ${words.trim()}`);
};

export const measureFsck = async (journal: string): Promise<void> => {
  const scratch = await mkdtemp(join(tmpdir(), 'scribe-fsck-'));
  const [root, log, vkey] = [dirname(journal), join(scratch, 'tlog'), join(scratch, 'vkey')];
  try {
    await writeFile(vkey, (await run([program, 'journal', 'vkey', '--root', root])).stdout);
    console.log(`\nThe journal as a transparency log; load ${load()}\n`);
    console.log('| | ms | |\n|---|--:|---|');
    const { endMs, cpuMs } = await runScribe(['export', '--root', root, '--tlog', log]);
    show('export --tlog', endMs, `${cpuMs} ms of processor time`);
    await judge("Tessera's fsck", log, vkey, true);
    const leaves = globSync('tile/entries/**/[0-9][0-9][0-9]', { cwd: log }).sort();
    await flipLastBit(join(log, leaves[Math.floor(leaves.length / 2)] ?? ''));
    await judge('the same with a changed leaf', log, vkey, false);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
};
