/** What a user namespace changes in specs: who makes and joins it, whose ids are known in it, what is seen through it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ContainerConfig, Mount, PodSandboxConfig } from '../../../src/domain/model/cri.ts';
import type { ContainerFacts, MountFact } from '../../../src/domain/model/container-facts.ts';
import { mappedMounts } from '../../../src/domain/oci/mounts.ts';
import { nodeIdOf, userNamespaceOf } from '../../../src/domain/oci/user-namespace.ts';
import { buildContainer, buildSandbox, podConfig, rootFacts, settings } from './support.ts';

const mapping = (length: number) => [{ hostId: 65536, length }];
const podOf = (length: number): PodSandboxConfig => ({
  ...podConfig,
  linux: {
    ...podConfig.linux,
    securityContext: { namespaceOptions: { usernsOptions: { uids: mapping(length), gids: mapping(length) } } },
  },
});
const pod = podOf(1000);
const oci = [{ containerID: 0, hostID: 65536, size: 1000 }];
const dir = '/state/bundles/c/mapped';
const inPod = (config: ContainerConfig, overrides: Parameters<typeof buildContainer>[1] = {}) =>
  buildContainer(config, { sandboxConfig: pod, mappedDir: dir, ...overrides });

describe('the pause task of a pod with users of its own', () => {
  it('makes the user namespace and the network namespace in it', () => {
    const { linux } = buildSandbox(pod, { netnsPath: null });
    assert.deepEqual([linux.uidMappings, linux.gidMappings], [oci, oci]);
    for (const type of ['user', 'network', 'ipc', 'pid'])
      assert.deepEqual(
        linux.namespaces.find((namespace) => namespace.type === type),
        { type },
      );
    assert.equal(buildSandbox().linux.uidMappings, undefined);
  });

  it('lets the groups that there are open ICMP echo sockets', () => {
    const groups = (config: PodSandboxConfig) =>
      buildSandbox(config, { settings: { ...settings, enableUnprivilegedIcmp: true } }).linux.sysctl;
    assert.deepEqual(groups(pod), { 'net.ipv4.ping_group_range': '0 999' });
    assert.deepEqual(groups(podOf(0xfffffffe - 65536)), { 'net.ipv4.ping_group_range': '0 2147483647' });
  });
});

describe('a container of a pod with users of its own', () => {
  it('joins the namespace of the pause task, before the others', () => {
    const { linux } = inPod({});
    assert.deepEqual(linux.namespaces[0], { type: 'user', path: '/proc/4242/ns/user' });
    assert.deepEqual([linux.uidMappings, linux.gidMappings], [oci, oci]);
    assert.ok(!buildContainer().linux.namespaces.some(({ type }) => type === 'user'));
  });

  it('has devices of other names as mounts, and those of the same name, as before rules 11 all, as devices', () => {
    const config: ContainerConfig = {
      devices: [{ hostPath: '/dev/zero', containerPath: '/dev/other' }, { hostPath: '/dev/null' }],
    };
    const fact = (path: string, minor: number) =>
      ({ hostPath: path, path, type: 'c', major: 1, minor, fileMode: 0o666, uid: 0, gid: 0 }) as const;
    const facts: ContainerFacts = { ...rootFacts, devices: [fact('/dev/zero', 5), fact('/dev/null', 3)] };
    const of = (mountedDevices: boolean, sandboxConfig: PodSandboxConfig) => {
      const { linux, mounts } = inPod(config, { facts, sandboxConfig, settings: { ...settings, mountedDevices } });
      const mount = mounts.find(({ destination }) => destination === '/dev/other');
      return [linux.devices?.map(({ path }) => path), mount?.source, linux.resources.devices?.length];
    };
    assert.deepEqual(of(true, pod), [['/dev/null'], '/dev/zero', 3]);
    for (const plain of [of(false, pod), of(true, podConfig)])
      assert.deepEqual(plain, [['/dev/other', '/dev/null'], undefined, 3]);
  });

  it('has terminals of group tty if it has the group', () => {
    const options = (length: number) =>
      inPod({}, { sandboxConfig: podOf(length) }).mounts.find(({ type }) => type === 'devpts')?.options ?? [];
    assert.ok(options(6).includes('gid=5'));
    assert.ok(!options(5).some((option) => option.startsWith('gid=')));
  });

  it('sees what is mapped where it is mounted so, and keeps the flags of mounts that it may not change', () => {
    const fact = (hostPath: string): MountFact => ({
      hostPath,
      realPath: `/real${hostPath}`,
      isDirectory: true,
      propagation: 'private',
      flags: ['nosuid', 'nodev', 'relatime'],
    });
    const facts: ContainerFacts = { ...rootFacts, mounts: [fact('/plain'), fact('/mapped')] };
    const mapped: Mount = { hostPath: '/mapped', uidMappings: mapping(1000), gidMappings: mapping(1000) };
    const config: ContainerConfig = {
      mounts: [
        { hostPath: '/plain', containerPath: '/plain' },
        { hostPath: '/plain', containerPath: '/plain-ro', readonly: true },
        { ...mapped, containerPath: '/mapped' },
        { ...mapped, containerPath: '/mapped-ro', readonly: true },
      ],
    };
    const imageVolumes = [{ imagePath: '/data', hostPath: '/volumes/0' }];
    const { mounts } = inPod(config, { facts, imageVolumes });
    const seen = ['/plain', '/plain-ro', '/mapped', '/mapped-ro', '/data'].map((destination) => {
      const mount = mounts.find((candidate) => candidate.destination === destination);
      return [mount?.source, mount?.options.slice(2).join()];
    });
    assert.deepEqual(seen, [
      ['/real/plain', 'rw'],
      ['/real/plain', 'ro,nosuid,nodev,relatime'],
      [`${dir}/2`, 'rw'],
      [`${dir}/3`, 'ro,nosuid,nodev,relatime'],
      [`${dir}/volume-0`, 'rw'],
    ]);
    assert.deepEqual(mappedMounts(config, facts, imageVolumes, dir), [
      { source: '/real/mapped', target: `${dir}/2` },
      { source: '/real/mapped', target: `${dir}/3` },
      { source: '/volumes/0', target: `${dir}/volume-0` },
    ]);
    const outside = buildContainer({ mounts: config.mounts?.slice(0, 2) ?? [] }, { facts, imageVolumes }).mounts;
    assert.deepEqual(outside.find(({ destination }) => destination === '/plain-ro')?.options.slice(2), ['ro']);
    assert.equal(outside.find(({ destination }) => destination === '/data')?.source, '/volumes/0');
  });
});

it('ids of a pod are those of the node from the first of its range on, as far as it goes', () => {
  assert.deepEqual(userNamespaceOf(pod), {
    uids: { first: 65536, length: 1000 },
    gids: { first: 65536, length: 1000 },
  });
  assert.equal(userNamespaceOf(podConfig), null);
  const range = { first: 65536, length: 1000 };
  assert.deepEqual([nodeIdOf(range, 0), nodeIdOf(range, 999), nodeIdOf(range, 1000)], [65536, 66535, 1000]);
});
