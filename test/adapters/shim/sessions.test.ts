/** Sessions with containers on real shims: commands between a client's streams, and attaching to a container's own. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessClient } from '../../../src/adapters/streaming/types.ts';
import type { EffectOf, EffectResults } from '../../../src/domain/model/effects.ts';
import { createRealLogKeeper } from './rig/log-keeper.ts';
import { openContext, openRig, type Rig } from './rig/rig.ts';
import { createSession, type TestSession } from './rig/session.ts';
import { testShims } from './rig/shims.ts';

const mib = 1024 * 1024;

for (const { version, path } of await testShims()) {
  describe(`sessions of shim ${version}`, { timeout: 60_000 }, () => {
    const sessions = new Map<string, ProcessClient>();
    const keeper = createRealLogKeeper();
    let rig: Rig;
    let pod: Awaited<ReturnType<Rig['startPod']>>;
    let one: EffectOf<'CreateTask'>;

    before(async () => {
      rig = await openRig(path, {
        sessions,
        timings: { drainSilenceMs: 300, drainMs: 1000 },
        ...keeper,
      });
      pod = await rig.startPod();
      one = await start(['sleep', '1000']);
    });
    after(() => rig.close());

    const start = async (args: string[], more: { stdin?: boolean; terminal?: boolean } = {}) => {
      const { terminal = false, stdin = false } = more;
      const task = await rig.container(pod.podSandboxId, { args, terminal }, { stdin, log: { path: null } });
      await rig.launch(task);
      return task;
    };
    const exec = (session: TestSession, script: string, tty = false): Promise<EffectResults['StreamExec']> => {
      const { podSandboxId, containerId, bundlePath } = one;
      const execId = rig.newId();
      sessions.set(execId, session.client);
      const args = ['sh', '-c', script];
      return rig.adapter.effects.StreamExec(
        { kind: 'StreamExec', podSandboxId, containerId, execId, bundlePath, args, tty },
        openContext(),
      );
    };
    const attach = (
      session: TestSession,
      { podSandboxId, containerId, stdin, terminal }: EffectOf<'CreateTask'>,
      closeStdin = false,
    ): Promise<EffectResults['StreamAttach']> => {
      const sessionId = rig.newId();
      sessions.set(sessionId, session.client);
      return rig.adapter.effects.StreamAttach(
        { kind: 'StreamAttach', podSandboxId, containerId, sessionId, stdin, terminal, closeStdin },
        openContext(),
      );
    };

    it('give output, status and counts, and pass the end of stdin on', async () => {
      const session = createSession({ stdin: true });
      const running = exec(session, 'cat; echo done >&2; exit 4');
      session.stdin.write('first ');
      await session.hears(/first/);
      session.stdin.end('last\n');
      assert.deepEqual(await running, { exitStatus: 4, stdinBytes: 11, stdoutBytes: 11, stderrBytes: 5 });
      assert.equal(session.heard('stdout'), 'first last\n');
      assert.equal(session.heard('stderr'), 'done\n');
    });

    it('have all of a stdin that ended before they began', async () => {
      const session = createSession({ stdin: true });
      session.stdin.end('early\n');
      await exec(session, 'cat');
      assert.equal(session.heard('stdout'), 'early\n');
    });

    it('end at once though stdin is open and never read', async () => {
      const session = createSession({ stdin: true });
      session.stdin.write(Buffer.alloc(mib));
      const { exitStatus } = await exec(session, 'exit 7');
      assert.equal(exitStatus, 7);
    });

    it('have a terminal of the right size, from the beginning and later', async () => {
      const session = createSession({ stdin: true, tty: true });
      session.resize({ width: 91, height: 17 });
      const sized = (size: string): string => `until [ "$(stty size)" = "${size}" ]; do :; done`;
      const running = exec(session, `${sized('17 91')}; echo begun $TERM; ${sized('12 33')}; exit 2`, true);
      await session.hears(/begun xterm\r\n/);
      session.resize({ width: 33, height: 12 });
      assert.equal((await running).exitStatus, 2);
    });

    it('move 128 MiB whole', async () => {
      const session = createSession({ countOnly: true });
      const { stdoutBytes } = await exec(session, `head -c ${128 * mib} /dev/zero`);
      assert.equal(stdoutBytes, 128 * mib);
      assert.equal(session.heardBytes('stdout'), 128 * mib);
    });

    it('end a command whose client has gone', async () => {
      const session = createSession({ stdin: true });
      const running = exec(session, 'echo up; exec sleep 1000');
      await session.hears(/up/);
      session.leave();
      assert.equal((await running).exitStatus, 137);
    });

    it('attach to what a container writes from then on, several at once, until it ends', async () => {
      const script = 'while read line; do echo "got $line"; echo oops >&2; [ $line = end ] && exit; done';
      const task = await start(['sh', '-c', script], { stdin: true });
      const [talker, listener] = [createSession({ stdin: true }), createSession()];
      const talking = attach(talker, task);
      const listening = attach(listener, task);
      const heard = listener.hears(/got word\n/).then(() => true);
      do talker.stdin.write('word\n');
      while (!(await Promise.race([heard, sleep(50, false)])));
      await Promise.all([talker.hears(/got word\n/), talker.hears(/oops\n/, 'stderr')]);
      // Without stdin_once the container's stdin stays open for the next.
      talker.leave();
      await talking;
      const next = createSession({ stdin: true });
      const last = attach(next, task);
      next.stdin.write('end\n');
      const [, counts] = await Promise.all([last, listening]);
      assert.equal(counts.stdinBytes, 0);
      assert.equal(counts.stdoutBytes, listener.heard('stdout').length);
      assert.match(listener.heard('stdout'), /^(got word\n)+got end\n$/);
      assert.match(next.heard('stdout'), /got end\n$/);
    });

    it('are over when the client has gone before it could hear anything', async () => {
      const task = await start(['sleep', '1000'], { stdin: true });
      const session = createSession({ stdin: true });
      session.leave();
      const counts = await Promise.race([attach(session, task), sleep(10_000, 'still attached')]);
      assert.deepEqual(counts, { stdinBytes: 0, stdoutBytes: 0, stderrBytes: 0 });
    });

    it("attach to a container's terminal, whose size is the client's", async () => {
      const script = 'until [ "$(stty size)" = "17 91" ]; do :; done; echo sized; read line; echo "got $line"';
      const task = await start(['sh', '-c', script], { stdin: true, terminal: true });
      const session = createSession({ stdin: true, tty: true });
      session.resize({ width: 91, height: 17 });
      const attached = attach(session, task);
      await session.hears(/sized\r\n/);
      session.stdin.write('word\n');
      await attached;
      await session.hears(/got word\r\n/);
    });

    it('attach over the death of a log keeper', async () => {
      const task = await start(['sh', '-c', 'while read line; do echo "got $line"; done'], { stdin: true });
      const session = createSession({ stdin: true });
      const attached = attach(session, task);
      session.stdin.write('one\n');
      await session.hears(/got one/);
      await keeper.kill();
      // What is written before the next keeper has this client is in the log only.
      const heard = session.hears(/got again/).then(() => true);
      do session.stdin.write('again\n');
      while (!(await Promise.race([heard, sleep(50, false)])));
      session.leave();
      await attached;
    });

    it('close the stdin of a container with stdin_once after the first', async () => {
      const task = await start(['sh', '-c', 'cat; echo over'], { stdin: true });
      const session = createSession({ stdin: true });
      const attached = attach(session, task, true);
      session.stdin.end('all of it\n');
      await attached;
      await session.hears(/over\n$/);
    });

    it('drop a client that is far too slow, and the container goes on', async () => {
      const task = await start(['sh', '-c', `read line; head -c ${64 * mib} /dev/zero; read line`], { stdin: true });
      const [deaf, quick] = [createSession(), createSession({ stdin: true, countOnly: true })];
      const { promise: awake, resolve: wake } = Promise.withResolvers<void>();
      const asleep = deaf.streams.stdout;
      if (asleep !== null) asleep._write = (_chunk, _encoding, done) => void awake.then(() => done());
      const dropped = attach(deaf, task);
      const attached = attach(quick, task);
      quick.stdin.write('go\n');
      quick.stdin.write('end\n');
      await attached.catch(() => undefined);
      wake();
      await assert.rejects(dropped, /faster than the attached client reads/);
    });
  });
}
