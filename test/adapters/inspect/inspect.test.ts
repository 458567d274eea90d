/** InspectContainer against real layers, devices, mounts and files: what it finds, and what it refuses to follow. */
import assert from 'node:assert/strict';
import { chmod, lchown, mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createInspectContainer } from '../../../src/adapters/inspect/adapter.ts';
import { withDeadline } from '../../../src/adapters/inspect/deadline.ts';
import { imageFileReader } from '../../../src/adapters/inspect/image-files.ts';
import { deviceNumber, makeNode, NodeType, writeXattr } from '../../../src/platform/linux/syscalls.ts';
import type { ContainerFacts, ContainerQuestions } from '../../../src/domain/model/container-facts.ts';
import { containerDevices } from '../../../src/domain/oci/devices.ts';
import { FailureError, type FailureReason } from '../../../src/domain/model/errors.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { requireRoot } from '../../support/netns.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const none: ContainerQuestions = {
  chainIds: [],
  user: { supplementalGroups: [], mergeImageGroups: true },
  devicePaths: [],
  allDevices: false,
  mountPaths: [],
};

const unasked = (): Promise<never> => Promise.reject(new Error('nobody asked for that'));

const ask = async (
  questions: Partial<ContainerQuestions>,
  files: Readonly<Record<string, string>> = {},
): Promise<ContainerFacts> => {
  const readImageFile = (_chainIds: readonly string[], path: string): Promise<Buffer | null> =>
    Promise.resolve(files[path] === undefined ? null : Buffer.from(files[path]));
  const inspect = createInspectContainer({
    readImageFile,
    layerDirs: (chainIds) => chainIds,
    inspectCdiDevices: unasked,
    inspectBlockIOClass: unasked,
    inspectApparmorProfile: unasked,
  });
  const context = { signal: new AbortController().signal, attach: () => undefined };
  const { facts } = await inspect(
    { kind: 'InspectContainer', containerId: 'c', questions: { ...none, ...questions } },
    context,
  );
  return facts;
};

const refusedWith =
  (reason: FailureReason, message: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FailureError, String(error));
    assert.equal(error.failure.reason, reason, error.message);
    assert.match(error.message, message);
    return true;
  };

describe('users', () => {
  const files = {
    '/etc/passwd':
      'root:x:0:0::/root:/bin/sh\nbroken line\nbad:x:abc:1\nweb:x:1000:1001::/:/bin/sh\nbig:x:4294967296:1\n7:x:70:71\n',
    '/etc/group':
      'root:x:0:root\nweb:x:1001:\nextra:x:2000:other,web\nalso:x:2001: web\nnone:x:x:web\nrootish:x:9:root\n',
  };
  const userOf = async (user: Partial<ContainerQuestions['user']>): Promise<ContainerFacts['user']> =>
    (await ask({ user: { ...none.user, ...user } }, files)).user;

  const cases: readonly (readonly [string, Partial<ContainerQuestions['user']>, number, number, number[]])[] = [
    ['nobody said: root, with its groups', {}, 0, 0, [0, 9]],
    ['a name', { username: 'web' }, 1000, 1001, [1001, 2000, 2001]],
    ['a uid that is known', { uid: '1000' }, 1000, 1001, [1001, 2000, 2001]],
    ['a uid that is not known', { uid: '5555' }, 5555, 0, [0]],
    ['a uid and a gid', { uid: '1000', gid: '5' }, 1000, 5, [5, 2000, 2001]],
    ['a name and a gid of 0', { username: 'web', gid: '0' }, 1000, 0, [0, 2000, 2001]],
    ['supplemental groups', { uid: '1', supplementalGroups: ['3', '0', '3'] }, 1, 0, [0, 3]],
    ['Strict', { username: 'web', mergeImageGroups: false, supplementalGroups: ['8'] }, 1000, 1001, [1001, 8]],
    ['CRI before the image', { uid: '1', imageUser: 'web' }, 1, 0, [0]],
    ['the image’s name', { imageUser: 'web' }, 1000, 1001, [1001, 2000, 2001]],
    ['the image’s uid', { imageUser: '1000' }, 1000, 1001, [1001, 2000, 2001]],
    ['the image’s uid and group name', { imageUser: '5:extra' }, 5, 2000, [2000]],
    ['the image’s name and gid', { imageUser: 'web:44' }, 1000, 44, [44, 2000, 2001]],
    ['the image’s name and nothing after the colon', { imageUser: 'web:' }, 1000, 1001, [1001, 2000, 2001]],
    ['a number is an id, even where a user is called so', { username: '7' }, 7, 0, [0]],
    ['the greatest id', { uid: '4294967294' }, 4294967294, 0, [0]],
  ];
  for (const [name, user, uid, gid, additionalGids] of cases) {
    it(name, async () => assert.deepEqual(await userOf(user), { uid, gid, additionalGids }));
  }

  it('unknown names and impossible ids are refused', async () => {
    await assert.rejects(userOf({ username: 'ghost' }), refusedWith('InvalidField', /run_as_username is "ghost"/));
    await assert.rejects(userOf({ imageUser: 'ghost' }), refusedWith('ImageInvalid', /User is "ghost"/));
    await assert.rejects(userOf({ imageUser: 'bad' }), refusedWith('ImageInvalid', /"bad"/));
    await assert.rejects(userOf({ imageUser: 'web:ghosts' }), refusedWith('ImageInvalid', /"ghosts"/));
    await assert.rejects(userOf({ imageUser: '4294967295' }), refusedWith('ImageInvalid', /ids go from 0/));
    await assert.rejects(userOf({ imageUser: '99999999999999' }), refusedWith('ImageInvalid', /ids go from 0/));
    await assert.rejects(userOf({ imageUser: '1:4294967296' }), refusedWith('ImageInvalid', /ids go from 0/));
    await assert.rejects(userOf({ imageUser: ':0' }), refusedWith('ImageInvalid', /User is ""/));
  });

  it('an image without the files has ids only', async () => {
    assert.deepEqual((await ask({ user: { ...none.user, uid: '5' } })).user, { uid: 5, gid: 0, additionalGids: [0] });
    await assert.rejects(ask({ user: { ...none.user, imageUser: 'web' } }), refusedWith('ImageInvalid', /"web"/));
  });
});

describe('directories of an image', () => {
  it('are found where a container would find them, and nowhere on the host', async (t) => {
    requireRoot();
    const dir = await tempDir(t);
    const [base, top] = ['base', 'top'].map((name) => join(dir, name)) as [string, string];
    await mkdir(join(base, 'data/models'), { recursive: true });
    await mkdir(join(base, 'gone/inside'), { recursive: true });
    await mkdir(join(top, 'data/models/new'), { recursive: true });
    await writeFile(join(top, 'data/file'), '');
    await makeNode(join(top, 'gone'), NodeType.characterDevice | 0o600, 0);
    await symlink('/data/models', join(top, 'absolute'));
    await symlink('../../../../data', join(top, 'above'));
    await symlink(dir, join(top, 'host'));
    await symlink('loop', join(top, 'loop'));
    const find = async (subPath: string): Promise<string | undefined> => {
      const question = { image: 'app:1', chainIds: [base, top], subPath };
      const [found] = (await ask({ imageSubPaths: [question] })).imageSubPaths ?? [];
      assert.deepEqual([found?.image, found?.subPath], ['app:1', subPath]);
      return found?.realPath;
    };
    const seen = ['data', './data//models/', 'data/models/new', 'absolute', 'above/models', '.'];
    assert.deepEqual(await Promise.all(seen.map(find)), [
      ...['/data', '/data/models', '/data/models/new', '/data/models', '/data/models', '/'],
    ]);
    for (const subPath of ['absent', 'gone/inside', 'host', 'loop', 'data/file', 'data/file/x', 'x'.repeat(5000)]) {
      const refused = refusedWith(
        'InvalidField',
        /^ImageVolumeMountFailed: mounts\.image_sub_path ".*the image "app:1"/,
      );
      await assert.rejects(find(subPath), refused, subPath.slice(0, 20));
    }
    assert.equal((await ask({})).imageSubPaths, undefined);
  });
});

describe('files of an image', () => {
  /** Layers are given base first, as the store gives them. */
  const layersOf = async (t: TestContext, count: number): Promise<string[]> => {
    requireRoot();
    const dir = await tempDir(t);
    const layers = Array.from({ length: count }, (_, index) => join(dir, String(index)));
    for (const layer of layers) await mkdir(join(layer, 'etc'), { recursive: true });
    return layers;
  };
  const read = async (layers: readonly string[], path = '/etc/passwd', maxBytes = 1000): Promise<string | null> =>
    (await imageFileReader(() => layers)([], path, maxBytes))?.toString() ?? null;

  it('come from the uppermost layer that has them', async (t) => {
    const [base = '', middle = '', top = ''] = await layersOf(t, 3);
    await writeFile(join(base, 'etc/passwd'), 'base');
    assert.equal(await read([base, middle, top]), 'base');
    await writeFile(join(middle, 'etc/passwd'), 'middle');
    assert.equal(await read([base, middle, top]), 'middle');
    assert.equal(await read([base, middle, top], '/etc/group'), null);
    assert.equal(await read([], '/etc/passwd'), null);
  });

  it('are hidden by whiteouts, opaque directories and files in place of directories', async (t) => {
    const [base = '', top = ''] = await layersOf(t, 2);
    await writeFile(join(base, 'etc/passwd'), 'base');
    await makeNode(join(top, 'etc/passwd'), NodeType.characterDevice, deviceNumber(0, 0));
    assert.equal(await read([base, top]), null);
    await rm(join(top, 'etc/passwd'));
    assert.equal(await read([base, top]), 'base');
    await writeXattr(join(top, 'etc'), 'trusted.overlay.opaque', Buffer.from('y'));
    assert.equal(await read([base, top]), null);
    await rm(join(top, 'etc'), { recursive: true });
    await makeNode(join(top, 'etc'), NodeType.characterDevice, deviceNumber(0, 0));
    assert.equal(await read([base, top]), null);
    await rm(join(top, 'etc'));
    await writeFile(join(top, 'etc'), 'a file');
    assert.equal(await read([base, top]), null);
    assert.equal(await read([base, top], '/etc'), 'a file');
  });

  it('are found through links, across layers, but never outside of the image', async (t) => {
    const [base = '', top = ''] = await layersOf(t, 2);
    await mkdir(join(base, 'usr/lib'), { recursive: true });
    await writeFile(join(base, 'usr/lib/passwd'), 'linked');
    await symlink('../usr/lib/passwd', join(top, 'etc/passwd'));
    assert.equal(await read([base, top]), 'linked');
    for (const target of ['/usr/lib/passwd', '../../../../../../usr/lib/passwd', '//usr/./lib/../lib/passwd']) {
      await rm(join(top, 'etc/passwd'));
      await symlink(target, join(top, 'etc/passwd'));
      assert.equal(await read([base, top]), 'linked', target);
    }
    // The host has this file, and the image does not.
    for (const target of ['/proc/version', '../../../../../../../../proc/version', '/dev/zero', base]) {
      await rm(join(top, 'etc/passwd'));
      await symlink(target, join(top, 'etc/passwd'));
      assert.equal(await read([base, top]), null, target);
    }
    await rm(join(top, 'etc'), { recursive: true });
    await symlink('/usr/lib', join(top, 'etc'));
    assert.equal(await read([base, top]), 'linked');
    await rm(join(top, 'etc'));
    await symlink('etc', join(top, 'etc'));
    assert.equal(await read([base, top]), null, 'a link to itself');
  });

  it('are read only when they are files, of a bounded size', async (t) => {
    const [layer = ''] = await layersOf(t, 1);
    const path = join(layer, 'etc/passwd');
    await makeNode(path, NodeType.fifo | 0o600);
    assert.equal(await read([layer]), null);
    await rm(path);
    await makeNode(path, NodeType.characterDevice | 0o600, deviceNumber(1, 5));
    assert.equal(await read([layer]), null, '/dev/zero has no end');
    await rm(path);
    await mkdir(path);
    assert.equal(await read([layer]), null);
    await rm(path, { recursive: true });
    await writeFile(path, 'x'.repeat(1000));
    assert.equal((await read([layer]))?.length, 1000);
    await truncate(path, 8 * 1024 ** 4);
    await assert.rejects(read([layer]), refusedWith('ImageInvalid', /\/etc\/passwd of the image has \d+ bytes/));
  });
});

describe('devices', () => {
  it('are told by their numbers, through a link too', async (t) => {
    requireRoot();
    const dir = await tempDir(t);
    const path = join(dir, 'node');
    await makeNode(path, NodeType.blockDevice, deviceNumber(259, 1_048_575));
    await chmod(path, 0o640);
    await lchown(path, 5, 6);
    await symlink(path, join(dir, 'link'));
    const fact = { type: 'b', major: 259, minor: 1_048_575, fileMode: 0o640, uid: 5, gid: 6 };
    for (const hostPath of [path, join(dir, 'link')]) {
      assert.deepEqual((await ask({ devicePaths: [hostPath] })).devices, [{ hostPath, path: hostPath, ...fact }]);
    }
  });

  it('of a directory are all below it, without links, FIFOs and files', async (t) => {
    requireRoot();
    const dir = await tempDir(t);
    await mkdir(join(dir, 'deep/er'), { recursive: true });
    await makeNode(join(dir, 'b'), NodeType.characterDevice | 0o600, deviceNumber(1, 3));
    await makeNode(join(dir, 'deep/er/a'), NodeType.characterDevice | 0o600, deviceNumber(1, 5));
    await makeNode(join(dir, 'fifo'), NodeType.fifo | 0o600);
    await writeFile(join(dir, 'file'), '');
    await symlink('b', join(dir, 'link'));
    await symlink('/', join(dir, 'root'));
    const { devices } = await ask({ devicePaths: [dir] });
    assert.deepEqual(
      devices.map(({ hostPath, path }) => [hostPath, path]),
      [
        [dir, join(dir, 'b')],
        [dir, join(dir, 'deep/er/a')],
      ],
    );
  });

  it('of a directory keep their places below it, however its path is written', async (t) => {
    requireRoot();
    const dir = await tempDir(t);
    await mkdir(join(dir, 'by-path'));
    await makeNode(join(dir, 'by-path/card0'), NodeType.characterDevice | 0o600, deviceNumber(1, 3));
    for (const hostPath of [dir, `${dir}/`, `/${dir}`, `${dir}/./`]) {
      const facts = (await ask({ devicePaths: [hostPath] })).devices;
      const config = { devices: [{ hostPath, containerPath: '/dev/dri' }] };
      const [device, ...others] = containerDevices(config, facts, 'asked', {}).devices;
      assert.equal(normalize(device?.path ?? ''), '/dev/dri/by-path/card0', hostPath);
      assert.deepEqual(others, []);
    }
  });

  it('of the node leave out what every container has itself', async () => {
    const paths = (await ask({ allDevices: true })).devices.map(({ path }) => path);
    assert.ok(paths.includes('/dev/null'));
    assert.deepEqual(
      paths.filter((path) => /^\/dev\/(pts|shm|mqueue|console)(\/|$)/.test(path)),
      [],
    );
  });

  it('that are none are refused', async (t) => {
    const dir = await tempDir(t);
    await writeFile(join(dir, 'file'), '');
    await assert.rejects(ask({ devicePaths: [join(dir, 'gone')] }), refusedWith('HostLacks', /is not there/));
    await assert.rejects(ask({ devicePaths: [join(dir, 'file')] }), refusedWith('HostLacks', /is no device/));
  });
});

describe('mount sources', () => {
  it('are resolved, and made where they are missing', async (t) => {
    const dir = await tempDir(t);
    await mkdir(join(dir, 'real'));
    await writeFile(join(dir, 'real/file'), '');
    await symlink('real', join(dir, 'link'));
    const asked = ['link/file', 'link/made/deep', 'real'].map((path) => join(dir, path));
    const { mounts } = await ask({ mountPaths: asked });
    assert.deepEqual(
      mounts.map(({ hostPath, realPath, isDirectory }) => [hostPath, realPath, isDirectory]),
      [
        [asked[0], join(dir, 'real/file'), false],
        [asked[1], join(dir, 'real/made/deep'), true],
        [asked[2], join(dir, 'real'), true],
      ],
    );
    await symlink('nowhere', join(dir, 'dangling'));
    await assert.rejects(
      ask({ mountPaths: [join(dir, 'dangling')] }),
      refusedWith('HostFailed', /mounts\.host_path .*dangling/),
    );
    await assert.rejects(ask({ mountPaths: [join(dir, 'real/file/below')] }), refusedWith('InvalidField', /ENOTDIR/));
    await assert.rejects(
      ask({ mountPaths: ['/proc/scribe-has-none/here'] }),
      refusedWith('HostFailed', /mounts\.host_path \/proc\/.*ENOENT/),
    );
    await symlink('round', join(dir, 'about'));
    await symlink('about', join(dir, 'round'));
    await assert.rejects(
      ask({ mountPaths: [join(dir, 'round/x')] }),
      refusedWith('InvalidField', /mounts\.host_path .*ELOOP/),
    );
  });

  it('tell how mounts below them spread, as the mount they lie on does', async (t) => {
    requireRoot();
    const dir = await tempDir(t);
    const make = async (name: string, ...how: string[]): Promise<string> => {
      const path = join(dir, name);
      await mkdir(path);
      await runOk(['mount', '-t', 'tmpfs', '-o', 'nosuid,nodev', 'tmpfs', path]);
      onCleanup(t, async () => void (await runOk(['umount', '-R', path])));
      for (const option of how) await runOk(['mount', option, path]);
      await mkdir(join(path, 'inside'));
      return join(path, 'inside');
    };
    const [isPrivate, isShared] = [await make('private', '--make-private'), await make('shared', '--make-shared')];
    const slave = await make('slave', '--make-shared');
    const master = join(dir, 'master');
    await mkdir(master);
    await runOk(['mount', '--bind', join(dir, 'slave'), master]);
    onCleanup(t, async () => void (await runOk(['umount', master])));
    await runOk(['mount', '--make-slave', join(dir, 'slave')]);
    const { mounts } = await ask({ mountPaths: [isPrivate, isShared, slave] });
    assert.deepEqual(
      mounts.map(({ propagation }) => propagation),
      ['private', 'shared', 'slave'],
    );
    assert.deepEqual(mounts[0]?.flags, ['nosuid', 'nodev', 'relatime']);
  });
});

describe('seccomp profiles', () => {
  it('are read as they are', async (t) => {
    const path = join(await tempDir(t), 'profile.json');
    await writeFile(path, '{"defaultAction":"SCMP_ACT_LOG"}');
    assert.deepEqual((await ask({ seccompProfilePath: path })).seccompProfile, { defaultAction: 'SCMP_ACT_LOG' });
  });

  it('are refused when they are no JSON, no file, or too much', async (t) => {
    requireRoot();
    const dir = await tempDir(t);
    const path = join(dir, 'profile.json');
    const refused = (message: RegExp) =>
      assert.rejects(ask({ seccompProfilePath: path }), refusedWith('InvalidField', message));
    await refused(/\/profile\.json is not there: put the profile there/);
    await writeFile(path, '{');
    await refused(/is not JSON at line 1, column 2$/);
    // Any file of the node can be named: what is in it must not come back.
    await writeFile(path, 'root:$6$secret-of-the-node:19000::::::');
    await refused(/is not JSON$/);
    await truncate(path, 300_000);
    await refused(/has 300000 bytes/);
    await rm(path);
    await makeNode(path, NodeType.fifo | 0o600);
    await refused(/is no regular file/);
    await assert.rejects(ask({ seccompProfilePath: 'relative.json' }), refusedWith('InvalidField', /absolute/));
  });
});

describe('a host that does not answer', () => {
  it('is named when the time is over, or when the daemon ends', async () => {
    const never = new Promise<never>(() => undefined);
    const { signal } = new AbortController();
    await assert.rejects(
      withDeadline('/nfs/x', 5, signal, never),
      refusedWith('TimedOut', /^\/nfs\/x gave no answer for 5 ms/),
    );
    await assert.rejects(withDeadline('/x', 60_000, AbortSignal.abort(), never), refusedWith('Interrupted', /\/x/));
    const ending = new AbortController();
    const waiting = assert.rejects(withDeadline('/x', 60_000, ending.signal, never), refusedWith('Interrupted', /\/x/));
    ending.abort();
    await waiting;
    assert.equal(await withDeadline('/x', 60_000, signal, Promise.resolve(7)), 7);
  });
});
