/**
 * A pod sandbox's files, mounts and network namespace, made and taken away on the real host (root is needed), whole,
 * half and more than once.
 */
import assert from 'node:assert/strict';
import { mkdir, open, readdir, readFile, readlink, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EffectOf } from '../../../src/domain/model/effects.ts';
import type { Bundle } from '../../../src/domain/model/tasks.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import type { EffectContext } from '../../../src/engine/ports.ts';
import { callsWithin } from '../../../src/platform/linux/file-calls.ts';
import { createFiles, createPathCleaner } from '../../../src/platform/linux/files.ts';
import { readMountInfo } from '../../../src/platform/linux/mounts.ts';
import { errorCodeOf } from '../../../src/platform/error-code.ts';
import { readXattr } from '../../../src/platform/linux/syscalls.ts';
import { createSandboxEffects } from '../../../src/adapters/sandbox/files-and-netns.ts';
import { readSeccompProfile } from '../../../src/adapters/inspect/seccomp-file.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { Spawner } from '../../../src/platform/spawner/types.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { requireRoot } from '../../support/netns.ts';
import { runOk } from '../../support/process.ts';
import { tempDir, tempDirInMemory } from '../../support/temp-dir.ts';

const timeout = 20_000;
const context: EffectContext = { signal: new AbortController().signal, attach: () => undefined };
const podSandboxId = 'a1b2'.repeat(16);
const MiB = 1024 * 1024;

before(requireRoot);

const mountsBelow = async (dir: string): Promise<string[]> =>
  (await readMountInfo()).map((mount) => mount.mountPoint).filter((path) => path.startsWith(`${dir}/`));

const setUp = async (t: TestContext) => {
  const [root, state, hostEtcDir] = await Promise.all([tempDir(t), tempDirInMemory(t), tempDir(t)]);
  const files = createFiles(await callsWithin(state));
  const spawner: Spawner = await startSpawner({ lockPath: join(root, 'spawner.lock'), startTimeoutMs: 10_000 });
  onCleanup(t, () => spawner.close());
  onCleanup(t, async () => {
    for (const mountPoint of (await mountsBelow(state)).toReversed()) await spawner.unmount(mountPoint);
  });
  const bundles: Bundle[] = [];
  const writeBundle = async (bundle: Bundle): Promise<void> => {
    bundles.push(bundle);
    await mkdir(join(bundle.path, 'rootfs'), { recursive: true });
  };
  const snapshots = {
    prepare: async (id: string) => [{ type: 'bind', source: `/snapshots/${id}`, options: [] }],
    remove: async (id: string) => void removedSnapshots.push(id),
  };
  const removedSnapshots: string[] = [];
  const effects = createSandboxEffects({
    spawner,
    writeBundle,
    snapshots,
    roots: [root, state],
    files,
    readSeccompProfile,
    hostEtcDir,
  });
  const dir = join(state, 'sandboxes', podSandboxId);
  const bundle = { id: podSandboxId, path: join(state, 'bundles', podSandboxId), spec: {} as Bundle['spec'] };
  const prepare: EffectOf<'PreparePodSandbox'> = {
    kind: 'PreparePodSandbox',
    podSandboxId,
    dir,
    files: { hostname: 'pod-1\n', hosts: '127.0.0.1\tlocalhost\n', 'resolv.conf': null },
    shm: { path: join(dir, 'shm'), sizeBytes: 16 * MiB },
    bundle,
    seccompProfilePath: null,
    chainIds: null,
  };
  const clean: EffectOf<'CleanPodSandbox'> = {
    kind: 'CleanPodSandbox',
    podSandboxId,
    paths: [dir, bundle.path],
    hasSnapshot: false,
  };
  return { root, state, files, hostEtcDir, spawner, effects, dir, bundle, bundles, prepare, clean, removedSnapshots };
};

const isBug = (error: unknown): boolean => error instanceof FailureError && error.failure.reason === 'Bug';

describe('PreparePodSandbox', () => {
  it('writes the files, mounts /dev/shm and writes the bundle, and may be done again', { timeout }, async (t) => {
    const { effects, prepare, dir, hostEtcDir, bundle, bundles } = await setUp(t);
    await writeFile(join(hostEtcDir, 'stub'), 'nameserver 192.0.2.1\n');
    await symlink('stub', join(hostEtcDir, 'resolv.conf'));
    for (let round = 0; round < 2; round += 1) {
      await effects.PreparePodSandbox(prepare, context);
      assert.equal(await readFile(join(dir, 'hostname'), 'utf8'), 'pod-1\n');
      assert.equal(await readFile(join(dir, 'resolv.conf'), 'utf8'), 'nameserver 192.0.2.1\n');
      assert.deepEqual((await readdir(dir)).toSorted(), ['hostname', 'hosts', 'resolv.conf', 'shm']);
    }
    assert.deepEqual(bundles, [bundle, bundle]);
    assert.equal((await stat(join(dir, 'hosts'))).mode & 0o777, 0o644);
    assert.equal((await stat(dir)).mode & 0o777, 0o700);
    assert.equal((await stat(join(dir, 'shm'))).mode & 0o7777, 0o1777);
    const shm = (await readMountInfo()).filter((mount) => mount.mountPoint === join(dir, 'shm'));
    assert.equal(shm.length, 1, 'mounted once, however often it is prepared');
    assert.equal(shm[0]?.fileSystemType, 'tmpfs');
    for (const option of ['nosuid', 'nodev', 'noexec']) assert.ok(shm[0].options.includes(option));
    assert.ok(shm[0].superOptions.includes(`size=${(16 * MiB) / 1024}k`));
  });

  it("bounds what a pod's containers can write to its files, and leaves room for the next pod's", {
    timeout,
  }, async (t) => {
    const { effects, prepare, clean, dir, state } = await setUp(t);
    await effects.PreparePodSandbox(prepare, context);
    const file = await open(join(dir, 'hosts'), 'a');
    const chunk = Buffer.alloc(MiB);
    const fill = async (): Promise<void> => {
      for (let written = 0; written < 64; written += 1) await file.write(chunk);
    };
    await assert.rejects(fill(), (error) => errorCodeOf(error) === 'ENOSPC');
    assert.ok((await file.stat()).size <= 8 * MiB);
    await file.close();
    const next = join(state, 'sandboxes', 'next');
    await effects.PreparePodSandbox({ ...prepare, dir: next, shm: null, bundle: null }, context);
    assert.equal(await readFile(join(next, 'hostname'), 'utf8'), 'pod-1\n');
    await effects.CleanPodSandbox({ ...clean, paths: [...clean.paths, next] }, context);
    assert.deepEqual(await mountsBelow(state), []);
  });

  it('makes do with a host file that is missing, and refuses one that is huge', { timeout }, async (t) => {
    const { effects, prepare, dir, hostEtcDir } = await setUp(t);
    const withoutShm = { ...prepare, shm: null, bundle: null };
    await effects.PreparePodSandbox(withoutShm, context);
    assert.equal(await readFile(join(dir, 'resolv.conf'), 'utf8'), '');
    await writeFile(join(hostEtcDir, 'resolv.conf'), Buffer.alloc(2 * MiB));
    await assert.rejects(effects.PreparePodSandbox(withoutShm, context), /resolv.conf is larger than/);
  });

  it('copies a host file as it is now, whatever its dates say', { timeout }, async (t) => {
    const { effects, prepare, dir, hostEtcDir } = await setUp(t);
    const hostFile = join(hostEtcDir, 'resolv.conf');
    const longAgo = new Date(2001, 1, 1);
    const copied = async (): Promise<string> => {
      await effects.PreparePodSandbox({ ...prepare, shm: null, bundle: null }, context);
      return readFile(join(dir, 'resolv.conf'), 'utf8');
    };
    await writeFile(hostFile, 'nameserver 192.0.2.1\n');
    await utimes(hostFile, longAgo, longAgo);
    // What was changed a moment ago is read each time.
    await sleep(1_100);
    assert.equal(await copied(), 'nameserver 192.0.2.1\n');
    assert.equal(await copied(), 'nameserver 192.0.2.1\n');
    await writeFile(hostFile, 'nameserver 192.0.2.2\n');
    await utimes(hostFile, longAgo, longAgo);
    assert.equal(await copied(), 'nameserver 192.0.2.2\n');
    await rm(hostFile);
    assert.equal(await copied(), '');
  });

  it('adds a seccomp profile of the node to the bundle, and refuses one that is none', { timeout }, async (t) => {
    const { effects, prepare, bundles, hostEtcDir } = await setUp(t);
    const seccompProfilePath = join(hostEtcDir, 'profile.json');
    await writeFile(seccompProfilePath, '{"defaultAction":"SCMP_ACT_ERRNO","comment":"mine"}');
    await effects.PreparePodSandbox({ ...prepare, shm: null, seccompProfilePath }, context);
    assert.deepEqual(bundles[0]?.spec.linux.seccomp, { defaultAction: 'SCMP_ACT_ERRNO' });
    for (const [content, problem] of [
      ['{"defaultAction":"no"}', /profile\.json.*defaultAction/],
      ['what', /profile\.json is not JSON/],
    ] as const) {
      await writeFile(seccompProfilePath, content);
      await assert.rejects(effects.PreparePodSandbox({ ...prepare, shm: null, seccompProfilePath }, context), problem);
    }
    assert.equal(bundles.length, 1);
  });

  it("labels the pod's files, its /dev/shm and its sandbox image", { timeout }, async (t) => {
    const { root, state, files, prepare, dir } = await setUp(t);
    const mounted: unknown[] = [];
    const unused = () => Promise.reject(new Error('not used'));
    const labelling = createSandboxEffects({
      // The kernel takes the option only where SELinux is on.
      spawner: {
        createNetns: unused,
        pinNetnsOf: unused,
        unmount: unused,
        unpin: unused,
        mount: async (mount) => void mounted.push(mount),
      },
      writeBundle: () => Promise.resolve(),
      snapshots: { prepare: async () => [{ type: 'overlay', source: 'overlay', options: [] }], remove: unused },
      roots: [root, state],
      files,
      readSeccompProfile,
    });
    const mountLabel = 'u:object_r:t:s0:c1,c2';
    const { rootfs } = await labelling.PreparePodSandbox({ ...prepare, mountLabel, chainIds: ['sha256:1'] }, context);
    const option = `context="${mountLabel}"`;
    assert.deepEqual(rootfs, [{ type: 'overlay', source: 'overlay', options: [option] }]);
    const options = ['nosuid', 'nodev', 'noexec', 'mode=1777', `size=${16 * MiB}`, option];
    assert.deepEqual(mounted, [
      {
        source: 'files',
        type: 'tmpfs',
        target: dir,
        // Each file has its own label: one for all of them could not be changed.
        options: ['nosuid', 'nodev', 'noexec', 'size=8m', 'nr_inodes=32', 'mode=0700'],
      },
      { source: 'shm', type: 'tmpfs', target: join(dir, 'shm'), options },
    ]);
    for (const name of Object.keys(prepare.files))
      assert.equal((await readXattr(join(dir, name), 'security.selinux'))?.toString(), `${mountLabel}\0`, name);
  });

  it('refuses names and paths that lead elsewhere', { timeout }, async (t) => {
    const { effects, prepare, state } = await setUp(t);
    const nowhere = join(state, '..', 'elsewhere');
    for (const name of ['..', '.', '', 'a/b', '../x', 'a\0b']) {
      await assert.rejects(
        effects.PreparePodSandbox({ ...prepare, shm: null, files: { [name]: 'x' } }, context),
        isBug,
      );
    }
    await assert.rejects(effects.PreparePodSandbox({ ...prepare, dir: nowhere }, context), isBug);
    await assert.rejects(effects.PreparePodSandbox({ ...prepare, dir: `${state}/../x` }, context), isBug);
    await assert.rejects(
      effects.PreparePodSandbox({ ...prepare, shm: { path: '/dev/shm', sizeBytes: 1 } }, context),
      isBug,
    );
  });
});

describe('CleanPodSandbox', () => {
  it('takes everything away, with all that is mounted in it, and may be done again', { timeout }, async (t) => {
    const { effects, prepare, clean, state, spawner, bundle } = await setUp(t);
    const kept = join(state, 'kept');
    await mkdir(kept);
    await writeFile(join(kept, 'file'), 'stays');
    await effects.PreparePodSandbox(prepare, context);
    const rootfs = join(bundle.path, 'rootfs');
    await spawner.mount({ source: 'tmpfs', target: rootfs, type: 'tmpfs', options: [] });
    await mkdir(join(rootfs, 'data with space'));
    await spawner.mount({ source: kept, target: join(rootfs, 'data with space'), type: 'none', options: ['rbind'] });
    await spawner.mount({ source: 'tmpfs', target: rootfs, type: 'tmpfs', options: [] });
    await symlink(kept, join(bundle.path, 'link'));
    for (let round = 0; round < 2; round += 1) {
      await effects.CleanPodSandbox(clean, context);
      assert.deepEqual(await mountsBelow(state), []);
      assert.deepEqual(await readdir(join(state, 'sandboxes')), []);
      assert.deepEqual(await readdir(join(state, 'bundles')), []);
    }
    assert.equal(await readFile(join(kept, 'file'), 'utf8'), 'stays');
  });

  it('carries on where an earlier removal was cut off', { timeout }, async (t) => {
    const { effects, prepare, clean, state } = await setUp(t);
    const bundles = join(state, 'bundles');
    await mkdir(join(bundles, `.removed-${podSandboxId}`, 'rootfs'), { recursive: true });
    await effects.CleanPodSandbox(clean, context);
    assert.deepEqual(await readdir(bundles), []);
    await mkdir(join(bundles, `.removed-${podSandboxId}`, 'rootfs'), { recursive: true });
    await effects.PreparePodSandbox(prepare, context);
    await effects.CleanPodSandbox(clean, context);
    assert.deepEqual(await readdir(bundles), []);
  });

  it('refuses every path that is not below root or state directory', { timeout }, async (t) => {
    const { effects, clean, root, state } = await setUp(t);
    for (const path of [
      root,
      state,
      '/',
      '/etc',
      '',
      'relative',
      `${state}/`,
      `${state}/../etc`,
      `${state}x/a`,
      `${state}//a`,
    ]) {
      await assert.rejects(effects.CleanPodSandbox({ ...clean, paths: [path] }, context), isBug, path);
    }
    assert.ok((await stat(state)).isDirectory());
  });

  it('removes nothing while something is still mounted there', { timeout }, async (t) => {
    const { effects, prepare, clean, dir, state, files } = await setUp(t);
    await effects.PreparePodSandbox(prepare, context);
    await writeFile(join(dir, 'shm', 'precious'), 'stays');
    const powerless = createPathCleaner([state], () => Promise.resolve(), files);
    await assert.rejects(powerless.clean(clean.paths), /cannot be unmounted, so nothing there was removed/);
    assert.equal(await readFile(join(dir, 'shm', 'precious'), 'utf8'), 'stays');
  });
});

describe('a pod with users of its own', () => {
  it('owns its files and its shared memory', { timeout }, async (t) => {
    const { effects, prepare, clean, dir } = await setUp(t);
    const users = { uids: { first: 65536, length: 1000 }, gids: { first: 131072, length: 1000 } };
    await effects.PreparePodSandbox({ ...prepare, users }, context);
    for (const name of ['hosts', 'shm']) {
      const { uid, gid } = await stat(join(dir, name));
      assert.deepEqual([uid, gid], [65536, 131072], name);
    }
    await effects.CleanPodSandbox(clean, context);
  });
});

describe('CreateNetns and RemoveNetns', () => {
  it('make and remove a namespace, each as often as they are asked to', { timeout }, async (t) => {
    const { effects, state } = await setUp(t);
    const path = join(state, 'netns', podSandboxId);
    await effects.RemoveNetns({ kind: 'RemoveNetns', podSandboxId, path }, context);
    for (let round = 0; round < 2; round += 1) {
      await effects.CreateNetns({ kind: 'CreateNetns', podSandboxId, path }, context);
      await effects.CreateNetns({ kind: 'CreateNetns', podSandboxId, path }, context);
      const inside = (await runOk(['nsenter', `--net=${path}`, 'readlink', '/proc/self/ns/net'])).trim();
      assert.notEqual(inside, await readlink('/proc/self/ns/net'));
      assert.equal((await mountsBelow(state)).length, 1);
      await effects.RemoveNetns({ kind: 'RemoveNetns', podSandboxId, path }, context);
      await effects.RemoveNetns({ kind: 'RemoveNetns', podSandboxId, path }, context);
      assert.deepEqual(await readdir(join(state, 'netns')), []);
    }
    await assert.rejects(
      effects.CreateNetns({ kind: 'CreateNetns', podSandboxId, path: '/run/netns/x' }, context),
      isBug,
    );
    await assert.rejects(
      effects.RemoveNetns({ kind: 'RemoveNetns', podSandboxId, path: '/proc/1/ns/net' }, context),
      isBug,
    );
  });
});

describe('a configured sandbox image', () => {
  it('gets a writable layer of its own, which goes with the pod', { timeout }, async (t) => {
    const { effects, prepare, clean, removedSnapshots } = await setUp(t);
    const context = { signal: new AbortController().signal, attach: () => {} };
    const { rootfs } = await effects.PreparePodSandbox({ ...prepare, chainIds: ['sha256:a'] }, context);
    assert.deepEqual(rootfs, [{ type: 'bind', source: `/snapshots/${prepare.podSandboxId}`, options: [] }]);
    await effects.CleanPodSandbox({ ...clean, hasSnapshot: true }, context);
    assert.deepEqual(removedSnapshots, [prepare.podSandboxId]);
  });
});
