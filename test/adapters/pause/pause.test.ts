/**
 * The pause program, run for real: as an ordinary process, and as process 1 of a PID namespace, where it has to reap
 * what is orphaned and still end on a signal. Root is needed for the namespace.
 */
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { readProcessStat } from '../../../src/platform/linux/processes.ts';
import { installPause } from '../../../src/adapters/pause/install.ts';
import { pauseProgram } from '../../../src/adapters/pause/pause-program.ts';
import { requireRoot } from '../../support/netns.ts';
import { runOk, startProcess } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const timeout = 20_000;

before(requireRoot);

/** Waits until `condition` holds; what it waits for is another process, which tells nobody. */
const eventually = async (what: string, condition: () => Promise<boolean>): Promise<void> => {
  for (let left = 500; left > 0; left -= 1) {
    if (await condition()) return;
    await sleep(10);
  }
  assert.fail(`${what} did not come true within 5 s`);
};

const install = async (t: TestContext): Promise<string> => join(await installPause(await tempDir(t)), 'pause');

/** It is ready once it waits for a signal in the kernel. */
const waiting = (pid: number) => async (): Promise<boolean> =>
  (await readFile(`/proc/${pid}/wchan`, 'utf8').catch(() => '')).includes('sigtimedwait');

describe('the pause program', () => {
  it('is installed whole, executable by all, with the mount points it is used with, and again without a change', async (t) => {
    const dir = await tempDir(t);
    const rootfs = await installPause(dir);
    const program = await stat(join(rootfs, 'pause'));
    assert.equal(program.mode & 0o7777, 0o555);
    assert.ok(program.size < 1024, `${program.size} bytes`);
    assert.deepEqual((await readdir(rootfs)).toSorted(), ['dev', 'etc', 'pause', 'proc', 'sys']);
    assert.equal(await installPause(dir), rootfs);
    assert.equal((await stat(join(rootfs, 'pause'))).ino, program.ino);
  });

  it('is an executable of both architectures, and of no other', () => {
    for (const [architecture, machine] of [
      ['x64', 62],
      ['arm64', 183],
    ] as const) {
      const file = Buffer.from(pauseProgram(architecture));
      assert.equal(file.toString('latin1', 0, 4), '\x7fELF');
      assert.equal(file.readUInt16LE(18), machine);
      assert.equal(file.readBigUInt64LE(64 + 32), BigInt(file.length), 'all of the file is mapped');
      assert.equal(file.readBigUInt64LE(file.length - 8), 0x14002n, 'it ends with its signals');
    }
    assert.throws(() => pauseProgram('riscv64'), FailureError);
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`waits, takes next to no memory, and exits with 0 on ${signal}`, { timeout }, async (t) => {
      const pause = await startProcess(t, [await install(t)]);
      await eventually('pause waits for signals', waiting(pause.pid));
      const memory = await readFile(`/proc/${pause.pid}/smaps_rollup`, 'utf8');
      const pssKb = Number(/^Pss:\s+(\d+) kB$/m.exec(memory)?.[1]);
      t.diagnostic(`PSS ${pssKb} kB`);
      assert.ok(pssKb <= 64, `PSS is ${pssKb} kB`);
      pause.kill(signal);
      assert.equal(await pause.ended, 0);
    });
  }

  it('goes on when it is stopped and continued', { timeout }, async (t) => {
    const pause = await startProcess(t, [await install(t)]);
    await eventually('pause waits for signals', waiting(pause.pid));
    pause.kill('SIGSTOP');
    await eventually('pause is stopped', async () => (await readProcessStat(pause.pid))?.state === 'T');
    pause.kill('SIGCONT');
    await eventually('pause waits again', waiting(pause.pid));
    pause.kill('SIGTERM');
    assert.equal(await pause.ended, 0);
  });

  it('as process 1 reaps orphans, many at once too, and ends on SIGTERM', { timeout }, async (t) => {
    const path = await install(t);
    // The shell has children and then becomes pause: they are pause's from then on, and end after that.
    const script = 'for i in 1 2 3 4 5 6 7 8; do sleep 0.3 & done; (sleep 0.2 & sleep 0.4 &); exec "$0"';
    const unshare = await startProcess(t, [
      'unshare',
      '--pid',
      '--fork',
      '--kill-child',
      '--mount-proc',
      'sh',
      '-c',
      script,
      path,
    ]);
    let pausePid = 0;
    await eventually('pause runs as process 1', async () => {
      const children = await readFile(`/proc/${unshare.pid}/task/${unshare.pid}/children`, 'utf8').catch(() => '');
      pausePid = Number(children.trim().split(' ')[0]);
      return pausePid > 0 && (await readFile(`/proc/${pausePid}/comm`, 'utf8').catch(() => '')) === 'pause\n';
    });
    const childrenOfPause = async (): Promise<string> =>
      (await readFile(`/proc/${pausePid}/task/${pausePid}/children`, 'utf8')).trim();
    await eventually('all orphans are reaped', async () => (await childrenOfPause()) === '');
    // One that comes later by way of a parent that dies in the namespace.
    await runOk([
      'nsenter',
      `--target=${pausePid}`,
      '--pid',
      '--mount',
      'sh',
      '-c',
      '(sleep 0.5 >/dev/null 2>&1 &) & exit 0',
    ]);
    await eventually('the late orphan has come', async () => (await childrenOfPause()) !== '');
    await eventually('the late orphan is reaped', async () => (await childrenOfPause()) === '');
    process.kill(pausePid, 'SIGTERM');
    assert.equal(await unshare.ended, 0);
  });
});
