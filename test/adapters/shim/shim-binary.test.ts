/** Running shim binaries through the spawner, against scripts that stand for shims of different makes and moods. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import {
  createShimBinaries,
  findShimBinary,
  type ShimBinaries,
} from '../../../src/adapters/shim/process/shim-binary.ts';
import { defaultTimings } from '../../../src/adapters/shim/timings.ts';
import { BootstrapParams } from '../../../src/wire/runtime/bootstrap/v1/bootstrap.ts';
import type { RuntimeHandler } from '../../../src/domain/model/runtime-handler.ts';
import { runOk } from '../../support/process.ts';
import { type RecordingSpawner, startRecordingSpawner } from './rig/spawner.ts';

const handlerOf = (shimPath?: string): RuntimeHandler => ({
  name: 'test',
  runtimeType: 'io.containerd.fake.v2',
  ...(shimPath === undefined ? {} : { shimPath }),
  binaryName: 'runc',
  systemdCgroup: false,
});

describe('shim binaries', () => {
  let dir: string;
  let bundlePath: string;
  let path: string;
  let spawner: RecordingSpawner;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'scribe-shim-binary-'));
    path = join(dir, 'containerd-shim-fake-v2');
    bundlePath = join(dir, 'bundles', 'pod');
    await mkdir(bundlePath, { recursive: true });
    spawner = await startRecordingSpawner(join(dir, 'spawner.lock'));
  });
  after(async () => {
    await spawner.close();
    await rm(dir, { recursive: true });
  });

  const script = async (version: string, body: string): Promise<void> => {
    await writeFile(
      path,
      `#!/bin/sh\nif [ "$1" = -v ]; then echo "fake:"; echo "  Version:  ${version}"; exit 0; fi\n${body}\n`,
    );
    await chmod(path, 0o755);
  };
  const binariesWith = (binaryMs = defaultTimings.binaryMs): ShimBinaries =>
    createShimBinaries({
      spawner,
      timings: { ...defaultTimings, binaryMs },
      eventsAddress: '/events',
      daemonAddress: '/daemon',
      environment: { PATH: '/usr/bin:/bin' },
      log: pino({ level: 'silent' }),
    });

  it('are found by name in PATH or where the configuration says', async () => {
    await script('1.6.20', 'exit 0');
    assert.equal(await findShimBinary(handlerOf(), `/nonexistent:relative:${dir}`), path);
    assert.equal(await findShimBinary(handlerOf(path), ''), path);
    await assert.rejects(findShimBinary(handlerOf(), '/nonexistent'), /containerd-shim-fake-v2.*is not in PATH/);
    await assert.rejects(findShimBinary(handlerOf(bundlePath), ''), /no executable file/);
    await assert.rejects(findShimBinary(handlerOf('relative'), ''), /no executable file/);
  });

  it('are asked for their version once, and again when they were replaced', async () => {
    const binaries = binariesWith();
    const asked = spawner.requests.length;
    const requests = () => spawner.requests.slice(asked);
    const address = 'unix:///run/x';
    await script('1.6.20', `printf '%s' ${address}`);
    for (const _round of [1, 2])
      assert.deepEqual(await binaries.start(handlerOf(path), 'pod', bundlePath), {
        address,
        taskApi: 2,
        version: { major: 1, minor: 6 },
      });
    assert.deepEqual(
      requests().map(({ args }) => args.at(-1)),
      ['-v', 'start', 'start'],
    );
    const second = requests()[1];
    assert.deepEqual([second?.stdin, second?.cwd], [new Uint8Array(0), bundlePath]);

    await script('2.3.7+unknown', `printf '%s' '{"version":3,"address":"${address}","protocol":"ttrpc"}'`);
    await utimes(path, 1, 1);
    assert.deepEqual(await binaries.start(handlerOf(path), 'pod', bundlePath), {
      address,
      taskApi: 3,
      version: { major: 2, minor: 3 },
    });
    const last = requests().at(-1);
    assert.equal(requests().length, 5);
    assert.equal(BootstrapParams.decode(last?.stdin ?? new Uint8Array(0)).instanceId, 'pod');
  });

  it("are told where events go, but for gVisor's, which ends with its pod when nobody takes one", async () => {
    const binaries = binariesWith();
    const start = async (runtimeType: string, version: string) => {
      await script(version, 'printf unix:///run/x');
      await utimes(path, 1, Number.parseFloat(version));
      const asked = spawner.requests.length;
      await binaries.start({ ...handlerOf(path), runtimeType }, 'pod', bundlePath);
      const requests = spawner.requests.slice(asked);
      const fed = BootstrapParams.decode(requests.at(-1)?.stdin ?? new Uint8Array(0)).containerdTtrpcAddress;
      return [...new Set(requests.map(({ env }) => env['TTRPC_ADDRESS'])), fed];
    };
    assert.deepEqual(await start('io.containerd.fake.v2', '2.2.0'), ['/events', '']);
    assert.deepEqual(await start('io.containerd.fake.v2', '2.3.0'), ['/events', '/events']);
    assert.deepEqual(await start('io.containerd.runsc.v1', '2.4.0'), [undefined, '']);
  });

  it('that know no -v are fed nothing, and asked again the next time', async () => {
    const asked = spawner.requests.length;
    const binaries = binariesWith();
    await writeFile(path, '#!/bin/sh\n[ "$1" = -v ] && exit 2\nprintf unix:///run/x\n');
    for (const _round of [1, 2]) await binaries.start(handlerOf(path), 'pod', bundlePath);
    const requests = spawner.requests.slice(asked);
    assert.deepEqual(
      requests.map(({ args, stdin }) => `${args.at(-1)} ${stdin?.length}`),
      ['-v 0', 'start 0', '-v 0', 'start 0'],
    );
  });

  it('fail with what they say, and never silently', async () => {
    const binaries = binariesWith(500);
    const start = (): Promise<unknown> => binaries.start(handlerOf(path), 'pod', bundlePath);
    await script('1.6.20', 'echo "no such runtime" >&2; exit 3');
    await assert.rejects(start(), /failed at 'start': it ended with status 3: no such runtime/);
    await script('1.6.20', 'sleep 60');
    await assert.rejects(start(), /did not end within 500 ms/);
    await script('1.6.20', 'head -c 1000000 /dev/zero');
    await assert.rejects(start(), /printed more than any shim does/);
    await script('1.6.20', 'echo "listening soon"');
    await assert.rejects(start(), /no unix socket/);
    await assert.rejects(binaries.start(handlerOf(path), 'other', bundlePath), /in a directory named other/);
  });

  it('are not run for a bundle that is gone', async () => {
    const asked = spawner.requests.length;
    await binariesWith().delete(handlerOf(path), 'gone', join(dir, 'bundles', 'gone'));
    assert.equal(spawner.requests.length, asked);
  });

  it('of other makes may fail to delete what is not there, and not what is', async () => {
    await script('2.1.5', 'echo "state.json: no such file or directory" >&2; exit 1');
    const id = randomBytes(32).toString('hex');
    const ownBundle = join(dir, 'bundles', id);
    const rootfs = join(ownBundle, 'rootfs');
    await mkdir(rootfs, { recursive: true });
    await writeFile(join(ownBundle, 'runtime'), 'runc');
    const remove = (handler = handlerOf(path)): Promise<void> => binariesWith().delete(handler, id, ownBundle);
    const during = async (command: readonly [string, ...string[]], check: () => Promise<void>): Promise<void> => {
      const [program, ...args] = command;
      const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'ignore'] });
      await once(child, 'spawn');
      try {
        await check();
      } finally {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    };
    await remove();
    // Its own shim, which made nothing, and whoever asks about it.
    await during(['sh', '-c', 'read x', '-id', id], () => remove());
    await during(['sh', '-c', 'read x', 'rmp', id], () => remove());
    const failure = /failed at 'delete': it ended with status 1: state\.json/;
    await during(['sh', '-c', 'read x', `--bundle=${ownBundle}`], () => assert.rejects(remove(), failure));
    await remove();
    await assert.rejects(remove({ ...handlerOf(path), runtimeType: 'io.containerd.runc.v2' }), failure);
    await runOk(['mount', '-t', 'tmpfs', 'tmpfs', rootfs]);
    try {
      await assert.rejects(remove(), failure);
    } finally {
      await runOk(['umount', rootfs]);
    }
  });

  it('are not missed by the bundle of a shim that was never started for want of them', async () => {
    const binaries = binariesWith();
    const missing = handlerOf(join(dir, 'missing'));
    await assert.rejects(binaries.start(missing, 'pod', bundlePath), /no executable file/);
    await binaries.delete(missing, 'pod', bundlePath);
    await script('1.6.20', 'printf unix:///run/x');
    await binaries.start(handlerOf(path), 'pod', bundlePath);
    // Now something may run that only they can end.
    await assert.rejects(binaries.delete(missing, 'pod', bundlePath), /no executable file/);
  });
});
