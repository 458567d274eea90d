/** Commands run in containers on real shims: output, status, limits, time, and nothing left of them. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { dialShim } from '../../../src/adapters/shim/process/live-shim.ts';
import type { TaskClient } from '../../../src/adapters/shim/task-client.ts';
import type { EffectOf } from '../../../src/domain/model/effects.ts';
import { withReason } from '../../support/failures.ts';
import { deleteOf, type Rig, openContext, openRig, processesNaming } from './rig/rig.ts';
import { testShims } from './rig/shims.ts';

const mib = 1024 * 1024;

/** Of no other test: they run beside this one. */
const OWN_PROGRAM = ['sleep', '1053'];

for (const { version, path } of await testShims()) {
  describe(`execs of shim ${version}`, { timeout: 60_000 }, () => {
    let rig: Rig;
    let one: EffectOf<'CreateTask'>;
    let shim: TaskClient;
    let shimPid: number;

    before(async () => {
      rig = await openRig(path, { timings: { drainSilenceMs: 300, drainMs: 1000, overdueMs: 500 } });
      const pod = await rig.startPod();
      shim = await dialShim(pod.shim, 1000);
      shimPid = pod.shim.pid;
      one = await rig.container(pod.podSandboxId, { args: OWN_PROGRAM, env: ['TOKEN=of the container'] });
      await rig.launch(one);
    });
    after(async () => {
      shim.close();
      await rig.close();
    });

    const exec = (script: string, timeoutMs: number | null = 10_000) => rig.exec(one, ['sh', '-c', script], timeoutMs);
    /** Waits, as long as the test's time lasts, until what execs leave behind them is gone. */
    const tidied = async (): Promise<void> => {
      const isLeft = async (): Promise<boolean> => {
        const bundle = await readdir(one.bundlePath);
        return (
          (await readdir(join(rig.stateDir, 'exec'))).length > 0 ||
          bundle.some((name) => /^[0-9a-f]{64}\.pid$/.test(name))
        );
      };
      const giveUpMs = performance.now() + 5000;
      while (await isLeft()) {
        assert.ok(performance.now() < giveUpMs, 'execs leave something behind');
        await sleep(5);
      }
    };

    it('give output and status, and run as their container does', async () => {
      const { ms: _ms, ...result } = await exec('echo out; echo err >&2; exit 3');
      assert.deepEqual(result, { exitStatus: 3, timedOut: false, stdout: 'out\n', stderr: 'err\n' });
      assert.equal((await exec('echo $TOKEN')).stdout, 'of the container\n');
      assert.equal((await exec('cat; echo end')).stdout, 'end\n');
      assert.equal((await exec('[ -t 1 ] || echo none')).stdout, 'none\n');
      await tidied();
    });

    it('keep apart, a hundred of them', async () => {
      for (let round = 0; round < 25; round += 1) {
        const words = [1, 2, 3, 4].map((n) => `word-${round}-${n}`);
        const results = await Promise.all(words.map((word) => exec(`echo ${word}; exit ${round}`)));
        assert.deepEqual(
          results.map(({ stdout, exitStatus }) => [stdout, exitStatus]),
          words.map((word) => [`${word}\n`, round]),
        );
      }
      await tidied();
      const descriptors = await readdir('/proc/self/fd');
      assert.ok(descriptors.length < 100, `${descriptors.length} descriptors are open`);
    });

    it('have their output whole up to 16 MiB, cut with a mark beyond, and never stall', async () => {
      const whole = await exec('yes 0123456789abcde | head -c 3000000');
      assert.equal(whole.stdout, '0123456789abcde\n'.repeat(187_500));
      const cut = await exec('yes | head -c 20000000; yes n | head -c 18000000 >&2; echo last');
      // A flood on one stream leaves some room for the other.
      const ofStdout = 16 * mib - 65_536;
      assert.equal(
        cut.stdout.slice(ofStdout - 2),
        `y\n\nscribe: output is cut here, after ${ofStdout} bytes; ${20_000_005 - ofStdout} bytes more were dropped: it is longer than limits.exec_output_max, or than one answer\n`,
      );
      assert.match(cut.stderr.slice(65_536), /^\nscribe: output is cut here, after 65536 bytes; \d+ bytes more/);
      assert.equal(cut.exitStatus, 0);
      await tidied();
    });

    it('are killed when their time is up', async () => {
      const result = await exec('echo before; sleep 1000', 150);
      assert.deepEqual([result.timedOut, result.exitStatus, result.stdout], [true, 137, 'before\n']);
      assert.ok(result.ms >= 150 && result.ms < 3000, `it took ${result.ms} ms`);
      await tidied();
    });

    it('are answered soon after their time, also when their shim is stopped: those under way, and those that come', async () => {
      const { podSandboxId, containerId, bundlePath } = one;
      const execIds = Array.from({ length: 12 }, () => rig.newId());
      const args = ['sleep', '1000'];
      const run = (execId: string, timeoutMs: number): Promise<unknown> =>
        assert.rejects(
          rig.adapter.effects.RunExec(
            { kind: 'RunExec', podSandboxId, containerId, execId, bundlePath, args, timeoutMs },
            openContext(),
          ),
          withReason('TimedOut'),
        );
      const underWay = execIds.slice(0, 9).map((execId) => run(execId, 1000));
      const startedMs = performance.now();
      await sleep(150);
      process.kill(shimPid, 'SIGSTOP');
      try {
        await Promise.all([...underWay, ...execIds.slice(9).map((execId) => run(execId, 1000))]);
        const ms = performance.now() - startedMs;
        assert.ok(ms < 2 * (1000 + 500) + 1000, `it took ${ms} ms`);
      } finally {
        process.kill(shimPid, 'SIGCONT');
      }
      for (const execId of execIds)
        await rig.adapter.effects.EndExec({ kind: 'EndExec', podSandboxId, containerId, execId }, openContext());
      assert.equal((await exec('echo well')).stdout, 'well\n');
      await tidied();
    });

    /** One child of each sort: one in a session of its own, one of a parent that has ended, one that left both. */
    const family = (seconds: number): string =>
      `sleep ${seconds}1 & setsid sleep ${seconds}2 & (sleep ${seconds}3 &); (setsid sleep ${seconds}4 &); ` +
      `sh -c "sleep ${seconds}5 & exec sleep ${seconds}6" & echo 'all are there'; sleep ${seconds}7`;
    const allThere = async (seconds: number): Promise<void> => {
      const giveUpMs = performance.now() + 30_000;
      while ((await processesNaming(`sleep ${seconds}`)).filter((line) => !line.includes('sh -c')).length < 7) {
        assert.ok(performance.now() < giveUpMs, 'the children of the command are not there');
        await sleep(20);
      }
    };

    it('take all that they have started with them when nobody wants them any more', async () => {
      const { podSandboxId, containerId, bundlePath } = one;
      const gone = new AbortController();
      const before = await processesNaming(OWN_PROGRAM.join(' '));
      const running = rig.adapter.effects.RunExec(
        {
          kind: 'RunExec',
          podSandboxId,
          containerId,
          execId: rig.newId(),
          bundlePath,
          args: ['sh', '-c', family(51)],
          timeoutMs: null,
        },
        { ...openContext(), callerGone: gone.signal },
      );
      const failed = assert.rejects(running, { name: 'FailureError', message: /caller went away/ });
      await allThere(51);
      gone.abort();
      await failed;
      assert.deepEqual(await processesNaming('sleep 51'), []);
      assert.deepEqual(await processesNaming(OWN_PROGRAM.join(' ')), before, 'the container runs on');
      assert.notDeepEqual(before, []);
      await tidied();
    });

    it('that have turned their output to the log of the container leave the container alone', async () => {
      const result = await exec('exec >/proc/1/fd/1 2>&1; sleep 52', 500);
      assert.equal(result.timedOut, true);
      assert.equal((await exec('echo well')).stdout, 'well\n');
      await tidied();
    });

    it('are not waited for by the hour when a child holds their streams', async () => {
      const quiet = await exec('echo said; sleep 3 & exit 0');
      assert.deepEqual([quiet.stdout, quiet.exitStatus], ['said\n', 0]);
      assert.ok(quiet.ms >= 300 && quiet.ms < 1500, `it took ${quiet.ms} ms`);
      const chatty = await exec('(for i in $(seq 60); do echo tick; sleep 0.05; done) & exit 0');
      assert.ok(chatty.ms >= 1000 && chatty.ms < 2500, `it took ${chatty.ms} ms`);
      assert.match(chatty.stdout, /^(tick\n){5,}$/);
      await tidied();
    });

    it('fail in words when there is no such command, and leave nothing', async () => {
      await assert.rejects(rig.exec(one, ['no-such-command']), (error: Error) => {
        assert.match(error.message, /Could not run a command in container .*no-such-command/);
        return true;
      });
      await tidied();
    });

    it('fail when the container is not running', async () => {
      const { podSandboxId } = one;
      const never = await rig.container(podSandboxId, { args: ['true'] });
      await assert.rejects(rig.exec(never, ['true']), /is not running/);
      const over = await rig.container(podSandboxId, { args: ['true'] });
      await rig.launch(over);
      await rig.observed('TaskExited', ({ containerId }) => containerId === over.containerId);
      await assert.rejects(rig.exec(over, ['true']), { name: 'FailureError' });
      await rig.adapter.effects.DeleteTask(deleteOf(over), openContext());
      await assert.rejects(rig.exec({ ...one, bundlePath: '/nonexistent' }, ['true']), { name: 'FailureError' });
      await assert.rejects(rig.exec({ ...one, podSandboxId: 'none' }, ['true']), /no connection to a shim/);
      await tidied();
    });

    it('stop being waited for when the daemon ends', async () => {
      const ending = new AbortController();
      const { podSandboxId, containerId, bundlePath } = one;
      const execId = rig.newId();
      const effect: EffectOf<'RunExec'> = {
        kind: 'RunExec',
        podSandboxId,
        containerId,
        execId,
        bundlePath,
        args: ['sleep', '1000'],
        timeoutMs: null,
      };
      const running = rig.adapter.effects.RunExec(effect, {
        signal: ending.signal,
        attach: () => assert.fail('an interrupted exec has no output'),
      });
      setTimeout(() => {
        ending.abort();
      }, 100);
      await assert.rejects(running, /The daemon ends/);
      await rig.adapter.effects.EndExec({ kind: 'EndExec', podSandboxId, containerId, execId }, openContext());
      await tidied();
    });

    it('are not begun when the daemon ends already, nor with an id that leads astray', async () => {
      const { podSandboxId, containerId, bundlePath } = one;
      const effect: EffectOf<'RunExec'> = {
        kind: 'RunExec',
        podSandboxId,
        containerId,
        execId: rig.newId(),
        bundlePath,
        args: ['true'],
        timeoutMs: null,
      };
      const attach = () => assert.fail('there is no output');
      await assert.rejects(rig.adapter.effects.RunExec(effect, { signal: AbortSignal.abort(), attach }), {
        name: 'FailureError',
      });
      await assert.rejects(
        rig.adapter.effects.RunExec({ ...effect, execId: '../x' }, openContext(attach)),
        /cannot be an id/,
      );
      await tidied();
    });

    it('that a crash left in doubt are ended, however far they had come', async () => {
      const { podSandboxId, containerId } = one;
      const add = async (): Promise<string> => {
        const execId = rig.newId();
        const spec = { args: ['sleep', '1000'], cwd: '/', env: ['PATH=/bin'], user: { uid: 0, gid: 0 } };
        const value = Buffer.from(JSON.stringify(spec));
        const none = { terminal: false, stdin: '', stdout: '', stderr: '' };
        await shim.exec({ id: containerId, execId, ...none, spec: { typeUrl: 'process', value } }, 2000);
        return execId;
      };
      const end = (execId: string): Promise<unknown> =>
        rig.adapter.effects.EndExec({ kind: 'EndExec', podSandboxId, containerId, execId }, openContext());
      const [added, started, ended] = [await add(), await add(), await add()];
      for (const execId of [started, ended]) await shim.start({ id: containerId, execId }, 5000);
      await shim.kill({ id: containerId, execId: ended, signal: 9, all: false }, 5000);
      await shim.wait({ id: containerId, execId: ended }, 5000);
      for (const execId of [added, started, ended, rig.newId()]) {
        await end(execId);
        await end(execId);
        await assert.rejects(shim.state({ id: containerId, execId }, 2000), { name: 'TtrpcStatusError' });
      }
      await end(rig.newId());
      await tidied();
    });
  });
}
