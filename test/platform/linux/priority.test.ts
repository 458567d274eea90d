/** Priority of a process with the real kernel: all of its threads, and its session where that is its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';

const module = join(import.meta.dirname, '../../../src/platform/linux/own-process.ts');
const NICE = -7;

/** Sets it, looks at all threads, those that begin later among them, and at what a process that is started then has. */
const program = `
  import { readdirSync, readFileSync } from 'node:fs';
  import { execFileSync } from 'node:child_process';
  import { getPriority } from 'node:os';
  import { Worker } from 'node:worker_threads';
  import { goBehind, setNice } from ${JSON.stringify(module)};
  setNice(${NICE});
  const threads = readdirSync('/proc/self/task').map((id) => getPriority(Number(id)));
  const session = readFileSync('/proc/self/autogroup', 'utf8');
  const child = Number(execFileSync('nice'));
  goBehind();
  const behind = getPriority();
  const others = readdirSync('/proc/self/task').map((id) => getPriority(Number(id)));
  console.log(JSON.stringify({ threads: [...new Set(threads)], session, child, behind, others: [...new Set(others)] }));
`;

interface Seen {
  readonly threads: readonly number[];
  readonly session: string;
  readonly child: number;
  readonly behind: number;
  readonly others: readonly number[];
}

const seenBy = async (...before: readonly string[]): Promise<Seen> => {
  const [command = '', ...args] = [...before, process.execPath, '--input-type=module-typescript', '--eval', program];
  const { stdout } = await promisify(execFile)(command, args);
  return JSON.parse(stdout) as Seen;
};

describe('going before others', () => {
  test('all threads do, and what is started then; one of them goes behind again', async () => {
    const { threads, child, behind, others } = await seenBy();
    assert.deepEqual(threads, [NICE]);
    assert.equal(child, NICE);
    assert.equal(behind, 10);
    assert.deepEqual(new Set(others), new Set([NICE, 10]));
  });

  test('its session does where it is its own, and otherwise not', async () => {
    const own = await seenBy('setsid', '--wait');
    assert.match(own.session, new RegExp(`nice ${NICE}$`, 'm'));
    const before = readFileSync('/proc/self/autogroup', 'utf8');
    const shared = await seenBy();
    assert.equal(shared.session, before);
    assert.equal(readFileSync('/proc/self/autogroup', 'utf8'), before);
    assert.equal(getPriority(), 0);
  });
});
