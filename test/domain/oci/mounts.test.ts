/** Which mounts a container has, in which order, and when they are refused; the files of /etc; image volumes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Mount, MountPropagation, type PodSandboxConfig } from '../../../src/domain/model/cri.ts';
import type { MountFact } from '../../../src/domain/model/container-facts.ts';
import { containerQuestions, containerSpec } from '../../../src/domain/oci/container-spec.ts';
import { etcFiles } from '../../../src/domain/oci/etc-files.ts';
import type { ContainerSpecInput } from '../../../src/domain/oci/input.ts';
import { imageVolumesOf, mappedMounts } from '../../../src/domain/oci/mounts.ts';
import { buildContainer, containerInput, failureIn, nodeV2, paths, podConfig, rootFacts, settings } from './support.ts';

const { PROPAGATION_BIDIRECTIONAL, PROPAGATION_HOST_TO_CONTAINER } = MountPropagation;

const factsOf = (mounts: readonly Mount[], propagation: MountFact['propagation']): ContainerSpecInput['facts'] => ({
  ...rootFacts,
  mounts: mounts.map(({ hostPath = '' }) => ({
    ...{ hostPath, realPath: `/real${hostPath}`, isDirectory: true, propagation, flags: [] },
  })),
});

const specWith = (
  mounts: readonly Mount[],
  propagation: MountFact['propagation'] = 'private',
  overrides: Partial<ContainerSpecInput> = {},
) => buildContainer({ mounts }, { facts: factsOf(mounts, propagation), ...overrides });

const refusalWith = (mount: Mount, propagation: MountFact['propagation'] = 'private') =>
  failureIn(containerSpec(containerInput({ mounts: [mount] }, { facts: factsOf([mount], propagation) })));

const destinations = (mounts: readonly Mount[], overrides?: Partial<ContainerSpecInput>): string[] =>
  specWith(mounts, 'private', overrides).mounts.map(({ destination }) => destination);

const DEFAULTS = ['/proc', '/dev', '/dev/pts', '/dev/mqueue', '/sys', '/sys/fs/cgroup'];
const POD_FILES = ['/etc/hostname', '/etc/hosts', '/etc/resolv.conf', '/dev/shm'];

describe('the order of mounts', () => {
  it('is defaults first, then by depth', () => {
    const asked = ['/a/b/c', '/a', '/etc/x', '/a/b'].map((containerPath) => ({ containerPath, hostPath: '/h' }));
    assert.deepEqual(destinations(asked), [...DEFAULTS, '/a', '/etc/x', '/a/b', ...POD_FILES, '/a/b/c']);
  });

  it('lets a CRI mount take the place of any other', () => {
    const asked = [...POD_FILES, '/sys/', '/proc/../proc'].map((containerPath) => ({ containerPath, hostPath: '/h' }));
    const seen = destinations(asked);
    assert.deepEqual(seen.slice().sort(), [...DEFAULTS, ...POD_FILES].sort());
    const { mounts } = specWith(asked);
    assert.equal(mounts.filter(({ source }) => source === '/real/h').length, asked.length);
  });

  it('keeps what is mounted at /dev uncovered', () => {
    const seen = destinations([{ containerPath: '/dev', hostPath: '/dev' }]);
    assert.deepEqual(
      seen.filter((path) => path.startsWith('/dev')),
      ['/dev', '/dev/shm'],
    );
  });

  it('keeps two mounts of one place in the order of the config', () => {
    const { mounts } = specWith([
      { containerPath: '/x', hostPath: '/first' },
      { containerPath: '/x', hostPath: '/second' },
    ]);
    const sources = mounts.filter(({ destination }) => destination === '/x').map(({ source }) => source);
    assert.deepEqual(sources, ['/real/first', '/real/second']);
  });
});

describe('the options of a mount', () => {
  const optionsOf = (
    mount: Mount,
    propagation: MountFact['propagation'] = 'private',
    overrides?: Partial<ContainerSpecInput>,
  ) =>
    specWith([{ containerPath: '/x', hostPath: '/h', ...mount }], propagation, overrides).mounts.find(
      ({ destination }) => destination === '/x',
    )?.options;

  it('say access, propagation and what else is asked for', () => {
    assert.deepEqual(optionsOf({}), ['rbind', 'rprivate', 'rw']);
    assert.deepEqual(optionsOf({ readonly: true, mountOptions: ['noexec'] }), ['rbind', 'rprivate', 'ro', 'noexec']);
    assert.deepEqual(optionsOf({ propagation: PROPAGATION_HOST_TO_CONTAINER }, 'slave'), ['rbind', 'rslave', 'rw']);
    assert.deepEqual(optionsOf({ propagation: PROPAGATION_BIDIRECTIONAL }, 'shared'), ['rbind', 'rshared', 'rw']);
  });

  it('recursive read-only needs a handler that knows it', () => {
    const mount = { readonly: true, recursiveReadOnly: true };
    const able = { settings: { ...settings, recursiveReadOnlyMounts: true } };
    assert.deepEqual(optionsOf(mount, 'private', able), ['rbind', 'rprivate', 'rro']);
    const failure = refusalWith({ containerPath: '/x', hostPath: '/h', ...mount });
    assert.equal(failure.reason, 'HostLacks');
    assert.match(failure.message, /^RROUnsupported/);
  });

  it('propagation needs a source that has it', () => {
    const mount = { containerPath: '/x', hostPath: '/h' };
    for (const [propagation, source] of [
      [PROPAGATION_BIDIRECTIONAL, 'private'],
      [PROPAGATION_BIDIRECTIONAL, 'slave'],
      [PROPAGATION_HOST_TO_CONTAINER, 'private'],
    ] as const) {
      const failure = refusalWith({ ...mount, propagation }, source);
      assert.equal(failure.reason, 'HostLacks');
      assert.match(failure.message, /\/real\/h .*make-rshared/);
    }
  });

  it('propagation has to pass the root', () => {
    const rootOf = (propagation: number) =>
      specWith([{ containerPath: '/x', hostPath: '/h', propagation }], 'shared').linux.rootfsPropagation;
    assert.deepEqual([rootOf(0), rootOf(1), rootOf(2)], [undefined, 'rslave', 'rshared']);
  });
});

describe('the files of a pod', () => {
  it('are read-only with a read-only root, /dev/shm never is', () => {
    const { mounts } = buildContainer({ linux: { securityContext: { readonlyRootfs: true } } });
    for (const path of POD_FILES) {
      const mount = mounts.find(({ destination }) => destination === path);
      assert.equal(mount?.options.includes('ro'), path !== '/dev/shm', path);
    }
  });

  it("take the node's /dev/shm with its IPC", () => {
    const config: PodSandboxConfig = { ...podConfig, linux: { securityContext: { namespaceOptions: { ipc: 2 } } } };
    const shmOf = (overrides: Partial<ContainerSpecInput>) =>
      buildContainer({}, overrides).mounts.find(({ destination }) => destination === '/dev/shm')?.source;
    assert.deepEqual([shmOf({}), shmOf({ sandboxConfig: config })], [paths.shm, '/dev/shm']);
  });

  it('hold what the pod says', () => {
    const dnsConfig = { servers: ['1.1.1.1', 'fd00::1'], searches: ['a.b', 'c'], options: ['ndots:5'] };
    const files = etcFiles({ ...podConfig, dnsConfig }, nodeV2);
    assert.equal(files['resolv.conf'], 'search a.b c\nnameserver 1.1.1.1\nnameserver fd00::1\noptions ndots:5\n');
    assert.equal(files['hostname'], 'web\n');
    assert.match(files['hosts'] ?? '', /^127\.0\.0\.1\tlocalhost\n::1\t/);
  });

  it("are the node's where the pod says nothing", () => {
    const onNode = { linux: { securityContext: { namespaceOptions: { network: 2 } } } };
    assert.deepEqual(etcFiles(onNode, nodeV2), { hosts: null, hostname: 'node-1\n', 'resolv.conf': null });
    assert.equal(etcFiles({ dnsConfig: {} }, nodeV2)['resolv.conf'], '');
  });
});

describe('volumes of an image', () => {
  it('get a directory each, unless CRI mounts something there', () => {
    const config = { mounts: [{ containerPath: '/data/', hostPath: '/h' }] };
    const volumes = ['/data', '/cache', 'relative/', '/cache/', '/', '/../up'];
    assert.deepEqual(imageVolumesOf(config, volumes, '/dir'), [
      { imagePath: '/cache', hostPath: '/dir/0' },
      { imagePath: '/relative', hostPath: '/dir/1' },
      { imagePath: '/up', hostPath: '/dir/2' },
    ]);
    assert.deepEqual(imageVolumesOf({}, undefined, '/dir'), []);
  });

  it('are mounted writable, but not over the files of the pod', () => {
    const imageVolumes = ['/data', '/etc/hosts'].map((imagePath) => ({ imagePath, hostPath: '/v' }));
    const mounts = buildContainer({}, { imageVolumes }).mounts.filter(({ source }) => source === '/v');
    assert.deepEqual(mounts, [
      { destination: '/data', type: 'bind', source: '/v', options: ['rbind', 'rprivate', 'rw'] },
    ]);
  });
});

describe('mounts of images', () => {
  const image = { image: 'app:1' };
  const imageMounts = [
    { image: 'other:1', chainIds: ['sha256:2'], hostPath: '/bundle/images/0' },
    { image: 'app:1', chainIds: ['sha256:1'], hostPath: '/bundle/images/1' },
  ];
  const mountedAt = (mount: Mount, overrides: Partial<ContainerSpecInput> = {}) =>
    buildContainer(
      { mounts: [{ containerPath: '/x', readonly: true, image, ...mount }] },
      {
        imageMounts,
        facts: { ...rootFacts, imageSubPaths: [{ image: 'app:1', subPath: 'link/b', realPath: '/a/b' }] },
        ...overrides,
      },
    ).mounts.find(({ destination }) => destination === '/x');

  it('are read-only and private, from where the image or a directory of it is seen', () => {
    const { PROPAGATION_PRIVATE } = MountPropagation;
    for (const propagation of [PROPAGATION_PRIVATE, PROPAGATION_HOST_TO_CONTAINER, PROPAGATION_BIDIRECTIONAL])
      assert.deepEqual(mountedAt({ propagation, mountOptions: ['noexec'] }), {
        destination: '/x',
        type: 'bind',
        source: '/bundle/images/1',
        options: ['rbind', 'rprivate', 'ro', 'noexec'],
      });
    assert.equal(mountedAt({ imageSubPath: 'link/b' })?.source, '/bundle/images/1/a/b');
    const able = { settings: { ...settings, recursiveReadOnlyMounts: true } };
    assert.ok(mountedAt({ recursiveReadOnly: true }, able)?.options.includes('rro'));
  });

  it('are asked about by their paths in the image, and not on the host', () => {
    const mounts = [
      { containerPath: '/a', hostPath: '/h', imageSubPath: 'of a volume' },
      { containerPath: '/b', readonly: true, image },
      { containerPath: '/c', readonly: true, image, imageSubPath: 'link/b' },
    ];
    const questions = containerQuestions({
      config: { mounts },
      imageConfig: {},
      chainIds: [],
      sandboxConfig: podConfig,
      node: nodeV2,
      mountedImages: imageMounts,
    });
    assert.deepEqual(questions.mountPaths, ['/h']);
    assert.deepEqual(questions.imageSubPaths, [{ image: 'app:1', chainIds: ['sha256:1'], subPath: 'link/b' }]);
  });
});

/** The list, counting how often one of its entries is asked for that field. */
const counting = <T extends object>(
  list: readonly T[],
  field: keyof T,
): { counted: readonly T[]; asked: () => number } => {
  let asked = 0;
  const get = (entry: T, key: string | symbol): unknown => {
    if (key === field) asked += 1;
    return Reflect.get(entry, key);
  };
  return { counted: list.map((entry) => new Proxy(entry, { get })), asked: () => asked };
};

it('C17: what was found out is looked at once, not once for each of the mounts that a client may send', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => index);
  const image = { image: 'app:1' };
  const imageMounts = [{ image: 'app:1', chainIds: [], hostPath: '/bundle/images/0' }];
  const ofImage = many.map((n) => ({ containerPath: `/x/${n}`, readonly: true, image, imageSubPath: `${n}` }));
  const subPaths = counting(
    many.map((n) => ({ image: 'app:1', subPath: `${n}`, realPath: `/${n}` })),
    'subPath',
  );
  const built = buildContainer(
    { mounts: ofImage },
    { imageMounts, facts: { ...rootFacts, imageSubPaths: subPaths.counted } },
  );
  assert.equal(built.mounts.find(({ destination }) => destination === '/x/999')?.source, '/bundle/images/0/999');
  assert.ok(subPaths.asked() <= many.length, `${subPaths.asked()}`);

  const mapping = [{ containerId: 0, hostId: 65_536, length: 65_536 }];
  const mounts = many.map((n) => ({ hostPath: `/h/${n}`, containerPath: `/x/${n}`, uidMappings: mapping }));
  const facts = counting(factsOf(mounts, 'private').mounts, 'hostPath');
  assert.equal(mappedMounts({ mounts }, { mounts: facts.counted }, [], '/mapped').length, many.length);
  assert.ok(facts.asked() <= many.length, `${facts.asked()}`);
});
