/**
 * Bundles and image volumes on the real file system (root is needed: layers hold devices and owners), with layers as
 * overlayfs has them and images that try to reach the host.
 */
import assert from 'node:assert/strict';
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { createBundleWriter } from '../../../src/adapters/bundle/bundles.ts';
import { createBundleEffects } from '../../../src/adapters/bundle/container-files.ts';
import { fillImageVolume } from '../../../src/adapters/bundle/image-volume.ts';
import { createSecretVault } from '../../../src/adapters/bundle/secrets.ts';
import { makeNode, NodeType, readXattr, writeXattr } from '../../../src/platform/linux/syscalls.ts';
import type { EffectOf } from '../../../src/domain/model/effects.ts';
import type { Bundle, Mount } from '../../../src/domain/model/tasks.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import type { OciArg, OciEnv } from '../../../src/domain/model/oci.ts';
import type { EffectContext } from '../../../src/engine/ports.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { requireRoot } from '../../support/netns.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const context: EffectContext = { signal: new AbortController().signal, attach: () => undefined };
const containerId = 'c3d4'.repeat(16);

before(requireRoot);

const failedWith = (reason: string) => (error: unknown) =>
  error instanceof FailureError && error.failure.reason === reason;

const bundleAt = (path: string, env: readonly OciEnv[], args: readonly OciArg[] = ['sh']): Bundle => ({
  id: containerId,
  path,
  spec: {
    ociVersion: '1.0.2',
    process: {
      user: { uid: 0, gid: 0 },
      args,
      env,
      cwd: '/',
      capabilities: { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] },
    },
    root: { path: 'rootfs' },
    mounts: [],
    linux: { namespaces: [], cgroupsPath: '/x', resources: {} },
  },
});

const setUp = async (t: TestContext) => {
  const dir = await tempDir(t);
  const vault = await createSecretVault(join(dir, 'key'));
  onCleanup(t, vault.close);
  return { dir, vault, writeBundle: createBundleWriter(vault, pooledFiles) };
};

describe('bundles', () => {
  it('C12: hold the values of secret env entries, in a file for root alone, and nothing else does', async (t) => {
    const { dir, vault, writeBundle } = await setUp(t);
    const [plain, odd] = ['s3cr3t-välue', 'a="b"\nc\\'];
    const env = [
      'PATH=/bin',
      { name: 'PASSWORD', token: vault.tokenOf(plain) },
      { name: 'ODD', token: vault.tokenOf(odd) },
    ];
    const bundle = bundleAt(join(dir, 'bundles', containerId), env);
    for (let round = 0; round < 2; round += 1) {
      await writeBundle(bundle);
      const path = join(bundle.path, 'config.json');
      const config = JSON.parse(await readFile(path, 'utf8')) as { process: { env: string[] } };
      assert.deepEqual(config.process.env, ['PATH=/bin', `PASSWORD=${plain}`, `ODD=${odd}`]);
      assert.deepEqual({ ...config, process: { ...config.process, env } }, bundle.spec);
      assert.equal((await stat(path)).mode & 0o777, 0o600);
      assert.deepEqual((await readdir(bundle.path)).toSorted(), ['config.json', 'rootfs']);
    }
    assert.equal((await stat(bundle.path)).mode & 0o777, 0o700);
    const holders = await runOk(['grep', '-rl', 's3cr3t', dir]);
    assert.equal(holders.trim(), join(bundle.path, 'config.json'));
  });

  it('C12: hold the values of secret arguments, each in its place', async (t) => {
    const { dir, vault, writeBundle } = await setUp(t);
    const bundle = bundleAt(join(dir, 'bundle'), [], ['login', { token: vault.tokenOf('--key=s3cr3t') }, '-v']);
    await writeBundle(bundle);
    const config = JSON.parse(await readFile(join(bundle.path, 'config.json'), 'utf8')) as {
      process: { args: string[] };
    };
    assert.deepEqual(config.process.args, ['login', '--key=s3cr3t', '-v']);
  });

  it('are refused when a secret is not known any more, or is no text', async (t) => {
    const { dir, vault, writeBundle } = await setUp(t);
    const path = join(dir, 'bundle');
    const unknown = { name: 'A', token: 'secret:AAAAAAAAAAAAAAAAAAAAAA' };
    await assert.rejects(writeBundle(bundleAt(path, [unknown])), failedWith('Interrupted'));
    const bytes = { name: 'B', token: vault.tokenOf(Buffer.from([0xc3, 0x28])) };
    await assert.rejects(writeBundle(bundleAt(path, [bytes])), failedWith('InvalidField'));
    await assert.rejects(stat(path), { code: 'ENOENT' });
  });
});

describe('PrepareContainer and CleanContainer', () => {
  const rootfs: Mount[] = [{ type: 'overlay', source: 'overlay', options: ['lowerdir=/l'] }];

  it('make and remove snapshot, volumes and bundle, each as often as they are asked to', async (t) => {
    const { dir, writeBundle } = await setUp(t);
    const calls: string[] = [];
    const layer = join(dir, 'layer');
    await mkdir(join(layer, 'data'), { recursive: true });
    await writeFile(join(layer, 'data/file'), 'from the image');
    const effects = createBundleEffects({
      writeBundle,
      snapshots: {
        prepare: (id) => Promise.resolve(rootfs).finally(() => calls.push(`prepare ${id}`)),
        remove: (id) => Promise.resolve().finally(() => calls.push(`remove ${id}`)),
        view: () => Promise.resolve(null),
        layerDirs: () => [layer],
      },
      unpackCheckpoint: () => Promise.resolve(),
      spawner: {
        mount: () => Promise.resolve(),
        mountMapped: () => Promise.resolve(),
        unmount: () => Promise.resolve(),
      },
      relabel: () => Promise.resolve(),
      roots: [dir],
      files: pooledFiles,
      reservedBytes: 0,
    });
    const bundle = bundleAt(join(dir, 'bundles', containerId), ['A=b']);
    const containerDir = join(dir, 'containers', containerId);
    const prepare: EffectOf<'PrepareContainer'> = {
      kind: 'PrepareContainer',
      containerId,
      bundle,
      chainIds: ['sha256:1'],
      imageVolumes: [{ imagePath: '/data', hostPath: join(containerDir, 'volumes', '0') }],
      imageMounts: [],
    };
    const clean: EffectOf<'CleanContainer'> = {
      kind: 'CleanContainer',
      containerId,
      paths: [bundle.path, containerDir],
    };
    for (let round = 0; round < 2; round += 1) {
      assert.deepEqual(await effects.PrepareContainer(prepare, context), { rootfs });
      assert.deepEqual(await effects.PrepareContainer(prepare, context), { rootfs });
      assert.equal(await readFile(join(containerDir, 'volumes/0/file'), 'utf8'), 'from the image');
      await effects.CleanContainer(clean, context);
      await effects.CleanContainer(clean, context);
      assert.deepEqual(await readdir(join(dir, 'bundles')), []);
      assert.deepEqual(await readdir(join(dir, 'containers')), []);
    }
    assert.equal(calls.filter((call) => call === `prepare ${containerId}`).length, 4);
    assert.equal(calls.filter((call) => call === `remove ${containerId}`).length, 4);
    const outside = { ...prepare, imageVolumes: [{ imagePath: '/data', hostPath: '/tmp/elsewhere' }] };
    await assert.rejects(effects.PrepareContainer(outside, context), failedWith('Bug'));
    await assert.rejects(effects.CleanContainer({ ...clean, paths: ['/etc'] }, context), failedWith('Bug'));
  });

  it('labels the root file system, images and what is to be labelled anew, once it is there', async (t) => {
    const { dir, writeBundle } = await setUp(t);
    const layer = join(dir, 'layer');
    await mkdir(join(layer, 'data'), { recursive: true });
    const volume = join(dir, 'containers', containerId, 'volumes/0');
    const image = join(dir, 'bundles', containerId, 'images/0');
    const mounted: unknown[] = [];
    const relabelled: unknown[] = [];
    const view: Mount = { type: 'overlay', source: 'overlay', options: ['ro'] };
    const effects = createBundleEffects({
      writeBundle,
      snapshots: {
        prepare: () => Promise.resolve(rootfs),
        remove: () => Promise.resolve(),
        view: () => Promise.resolve(view),
        layerDirs: () => [layer],
      },
      spawner: {
        mount: async (mount) => void mounted.push(mount),
        mountMapped: () => Promise.resolve(),
        unmount: () => Promise.resolve(),
      },
      unpackCheckpoint: () => Promise.resolve(),
      relabel: async (paths, label, signal) => {
        assert.ok((await stat(volume)).isDirectory());
        relabelled.push([paths, label, signal]);
      },
      roots: [dir],
      files: pooledFiles,
      reservedBytes: 0,
    });
    const mount = 'u:object_r:t:s0:c1,c2';
    const prepare: EffectOf<'PrepareContainer'> = {
      kind: 'PrepareContainer',
      containerId,
      bundle: bundleAt(join(dir, 'bundles', containerId), []),
      chainIds: ['sha256:1'],
      imageVolumes: [{ imagePath: '/data', hostPath: volume }],
      imageMounts: [{ chainIds: ['sha256:2'], hostPath: image }],
      labels: { mount, paths: ['/pods/a'] },
    };
    const option = `context="${mount}"`;
    const prepared = await effects.PrepareContainer(prepare, context);
    assert.deepEqual(prepared.rootfs, [{ ...rootfs[0], options: ['lowerdir=/l', option] }]);
    assert.deepEqual(mounted, [{ ...view, options: ['ro', option], target: image }]);
    assert.deepEqual(relabelled, [[[volume, '/pods/a'], mount, context.signal]]);
  });

  it('C6: a failed preparation has come to rest when it says so', async (t) => {
    const { dir, writeBundle } = await setUp(t);
    let resting = false;
    const effects = createBundleEffects({
      writeBundle: async (bundle) => {
        await writeBundle(bundle);
        resting = true;
      },
      snapshots: {
        prepare: () => Promise.reject(new FailureError('HostFailed', 'no snapshot')),
        remove: () => Promise.resolve(),
        view: () => Promise.resolve(null),
        layerDirs: () => [],
      },
      unpackCheckpoint: () => Promise.resolve(),
      spawner: {
        mount: () => Promise.resolve(),
        mountMapped: () => Promise.resolve(),
        unmount: () => Promise.resolve(),
      },
      relabel: () => Promise.resolve(),
      roots: [dir],
      files: pooledFiles,
      reservedBytes: 0,
    });
    const bundle = bundleAt(join(dir, 'bundles', containerId), []);
    const request = {
      kind: 'PrepareContainer',
      containerId,
      bundle,
      chainIds: [],
      imageVolumes: [],
      imageMounts: [],
    } as const;
    await assert.rejects(effects.PrepareContainer(request, context), /no snapshot/);
    assert.equal(resting, true);
  });
});

const asMuchAsThereIs = (): Promise<void> => Promise.resolve();

describe('image volumes', () => {
  const layersOf = async (t: TestContext) => {
    const dir = await tempDir(t);
    const layers = ['base', 'middle', 'top'].map((name) => join(dir, name));
    for (const layer of layers) await mkdir(layer);
    const [base = '', middle = '', top = ''] = layers;
    return { dir, layers, base, middle, top, volume: join(dir, 'volumes', '0') };
  };
  const whiteout = (path: string): Promise<void> => makeNode(path, NodeType.characterDevice | 0o600, 0);

  it('get what the merged layers show, with owners, modes, times, links, nodes and attributes', async (t) => {
    const { layers, base, middle, top, volume } = await layersOf(t);
    await mkdir(join(base, 'data/sub'), { recursive: true });
    await mkdir(join(base, 'data/opaque'));
    await writeFile(join(base, 'data/hidden'), 'base');
    await writeFile(join(base, 'data/replaced'), 'base');
    await writeFile(join(base, 'data/opaque/below'), 'base');
    await writeFile(join(base, 'data/sub/kept'), 'base');
    await mkdir(join(middle, 'data/sub'), { recursive: true });
    await whiteout(join(middle, 'data/hidden'));
    await writeFile(join(middle, 'data/replaced'), 'middle');
    await writeFile(join(middle, 'data/sub/tool'), 'tool');
    await chown(join(middle, 'data/sub/tool'), 123, 456);
    await chmod(join(middle, 'data/sub/tool'), 0o4755);
    await utimes(join(middle, 'data/sub/tool'), 1_000_000, 2_000_000);
    await writeXattr(join(middle, 'data/sub/tool'), 'user.note', Buffer.from('x'));
    await link(join(middle, 'data/sub/tool'), join(middle, 'data/sub/alias'));
    await mkdir(join(top, 'data/opaque'), { recursive: true });
    await writeXattr(join(top, 'data/opaque'), 'trusted.overlay.opaque', Buffer.from('y'));
    await symlink('/etc/shadow', join(top, 'data/link'));
    await makeNode(join(top, 'data/fifo'), NodeType.fifo | 0o640);
    await chown(join(top, 'data'), 7, 8);
    await chmod(join(top, 'data'), 0o1770);

    await fillImageVolume(layers, '/data', volume, asMuchAsThereIs);

    assert.deepEqual((await readdir(volume)).toSorted(), ['fifo', 'link', 'opaque', 'replaced', 'sub']);
    assert.deepEqual(await readdir(join(volume, 'opaque')), []);
    assert.equal(await readXattr(join(volume, 'opaque'), 'trusted.overlay.opaque'), null);
    assert.equal(await readFile(join(volume, 'replaced'), 'utf8'), 'middle');
    assert.equal(await readFile(join(volume, 'sub/kept'), 'utf8'), 'base');
    const tool = await stat(join(volume, 'sub/tool'));
    assert.deepEqual([tool.uid, tool.gid, tool.mode & 0o7777, tool.nlink], [123, 456, 0o4755, 2]);
    assert.equal(tool.mtimeMs, 2_000_000_000);
    assert.equal((await stat(join(volume, 'sub/alias'))).ino, tool.ino);
    assert.notEqual(tool.ino, (await stat(join(middle, 'data/sub/tool'))).ino);
    assert.equal(Buffer.from((await readXattr(join(volume, 'sub/tool'), 'user.note')) ?? []).toString(), 'x');
    assert.equal(await readlink(join(volume, 'link')), '/etc/shadow');
    assert.ok((await lstat(join(volume, 'fifo'))).isFIFO());
    const root = await stat(volume);
    assert.deepEqual([root.uid, root.gid, root.mode & 0o7777], [7, 8, 0o1770]);
  });

  it('cannot be led out of the image', async (t) => {
    const { dir, layers, base, top } = await layersOf(t);
    const secret = join(dir, 'host-secret');
    await mkdir(secret);
    await writeFile(join(secret, 'key'), 'host');
    await mkdir(join(base, 'real/inner'), { recursive: true });
    await writeFile(join(base, 'real/inner/file'), 'image');
    await symlink(secret, join(top, 'absolute'));
    await symlink(`../../../../../../../..${secret}`, join(top, 'relative'));
    await symlink('/proc/self/root', join(top, 'proc'));
    await symlink('/real/../../../real/./inner', join(top, 'inside'));
    await symlink('loop-b', join(top, 'loop-a'));
    await symlink('loop-a', join(top, 'loop-b'));
    const empty = [
      '/absolute',
      '/relative',
      '/proc',
      `/absolute/../..${secret}`,
      `/../..${secret}`,
      '/loop-a',
      '/missing/x',
    ];
    for (const [index, imagePath] of empty.entries()) {
      const volume = join(dir, 'volumes', `${index}`);
      await fillImageVolume(layers, imagePath, volume, asMuchAsThereIs);
      assert.deepEqual(await readdir(volume), [], imagePath);
      assert.equal((await stat(volume)).mode & 0o777, 0o755);
    }
    await fillImageVolume(layers, '/inside', join(dir, 'volumes', 'inside'), asMuchAsThereIs);
    assert.equal(await readFile(join(dir, 'volumes/inside/file'), 'utf8'), 'image');
  });

  it('are filled once, after a cut too, and refused where the image has a file', async (t) => {
    const { layers, base, volume } = await layersOf(t);
    await mkdir(join(base, 'data'));
    await writeFile(join(base, 'data/file'), 'image');
    const unfinished = join(volume, '..', '.unfinished-0');
    await mkdir(unfinished, { recursive: true });
    await writeFile(join(unfinished, 'half'), '');
    await fillImageVolume(layers, 'data/', volume, asMuchAsThereIs);
    assert.deepEqual(await readdir(volume), ['file']);
    await writeFile(join(volume, 'written'), 'by the container');
    await fillImageVolume(layers, '/data', volume, asMuchAsThereIs);
    assert.deepEqual((await readdir(volume)).toSorted(), ['file', 'written']);
    assert.deepEqual(await readdir(join(volume, '..')), ['0']);
    await assert.rejects(
      fillImageVolume(layers, '/data/file', join(volume, '..', '1'), asMuchAsThereIs),
      failedWith('ImageInvalid'),
    );
  });
});
