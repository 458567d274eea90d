/** CRI messages into the domain's shapes and back: nothing lost, nothing added, no secret kept. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import * as fromWire from '../../../src/adapters/cri/messages/from-wire.ts';
import * as toWire from '../../../src/adapters/cri/messages/to-wire.ts';
import * as wire from '../../../src/wire/cri/api.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';

const text = fc.oneof(fc.constant(''), fc.string({ unit: 'grapheme', maxLength: 8 }));
const texts = fc.array(text, { maxLength: 2 });
const uint32 = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffffffff }));
const int32 = fc.oneof(fc.constant(0), fc.integer());
const int64 = fc.oneof(fc.constant('0'), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String));
const uint64 = fc.oneof(fc.constant('0'), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String));
/** Of any keys, those that JavaScript's objects have in a way of their own too. */
const map = fc
  .array(fc.tuple(fc.oneof(text, fc.constantFrom('__proto__', 'constructor', 'toString')), text), { maxLength: 3 })
  .map((pairs) => Object.fromEntries(pairs));
const bytes = fc.uint8Array({ maxLength: 8 }).map((array) => Buffer.from(array.map((byte) => byte || 1)));
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined });
const many = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(arbitrary, { maxLength: 2 });
/** Known values and those of a newer contract. */
const enumeration = <T>(most: number): fc.Arbitrary<T> =>
  fc.integer({ min: 0, max: most }) as unknown as fc.Arbitrary<T>;

const int64Value = fc.record<wire.Int64Value>({ value: int64 });
const idMapping = fc.record<wire.IDMapping>({ hostId: uint32, containerId: uint32, length: uint32 });
const namespaceOption = fc.record<wire.NamespaceOption>({
  network: enumeration(4),
  pid: enumeration(4),
  ipc: enumeration(4),
  targetId: text,
  usernsOptions: maybe(
    fc.record<wire.UserNamespace>({ mode: enumeration(4), uids: many(idMapping), gids: many(idMapping) }),
  ),
});
const selinuxOption = fc.record<wire.SELinuxOption>({ user: text, role: text, type: text, level: text });
const profile = fc.record<wire.SecurityProfile>({ profileType: enumeration(3), localhostRef: text });
const INT64_OF_RESOURCES = {
  cpuPeriod: int64,
  cpuQuota: int64,
  cpuShares: int64,
  memoryLimitInBytes: int64,
  oomScoreAdj: int64,
  memorySwapLimitInBytes: int64,
};
const resources = fc.record<wire.LinuxContainerResources>({
  ...INT64_OF_RESOURCES,
  cpusetCpus: text,
  cpusetMems: text,
  hugepageLimits: many(fc.record<wire.HugepageLimit>({ pageSize: text, limit: uint64 })),
  unified: map,
});
const imageSpec = fc.record<wire.ImageSpec>({
  image: text,
  annotations: map,
  userSpecifiedImage: text,
  runtimeHandler: text,
  imageRef: text,
});
const mount = fc.record<wire.Mount>({
  containerPath: text,
  hostPath: text,
  readonly: fc.boolean(),
  selinuxRelabel: fc.boolean(),
  propagation: enumeration(3),
  uidMappings: many(idMapping),
  gidMappings: many(idMapping),
  recursiveReadOnly: fc.boolean(),
  image: maybe(imageSpec),
  imageSubPath: text,
  mountOptions: texts,
});
const hostIp = fc.oneof(fc.constant(''), fc.ipV4(), fc.ipV6());
const podMetadata = fc.record<wire.PodSandboxMetadata>({ name: text, uid: text, namespace: text, attempt: uint32 });
const containerMetadata = fc.record<wire.ContainerMetadata>({ name: text, attempt: uint32 });

const podSandboxConfig = fc.record<wire.PodSandboxConfig>({
  metadata: maybe(podMetadata),
  hostname: text,
  logDirectory: text,
  dnsConfig: maybe(fc.record<wire.DNSConfig>({ servers: texts, searches: texts, options: texts })),
  portMappings: many(
    fc
      .record<wire.PortMapping>({ protocol: enumeration(3), containerPort: int32, hostPort: int32, hostIp })
      .filter(({ hostPort, containerPort }) => hostPort <= 0 || containerPort !== 0),
  ),
  labels: map,
  annotations: map,
  linux: maybe(
    fc.record<wire.LinuxPodSandboxConfig>({
      cgroupParent: text,
      securityContext: maybe(
        fc.record<wire.LinuxSandboxSecurityContext>({
          namespaceOptions: maybe(namespaceOption),
          selinuxOptions: maybe(selinuxOption),
          runAsUser: maybe(int64Value),
          runAsGroup: maybe(int64Value),
          readonlyRootfs: fc.boolean(),
          supplementalGroups: many(int64),
          supplementalGroupsPolicy: enumeration(2),
          privileged: fc.boolean(),
          seccomp: maybe(profile),
          apparmor: maybe(profile),
          seccompProfilePath: text,
        }),
      ),
      sysctls: map,
      overhead: maybe(resources),
      resources: maybe(resources),
    }),
  ),
  windows: fc.constant(undefined),
});

const containerConfig = fc.record<wire.ContainerConfig>({
  metadata: maybe(containerMetadata),
  image: maybe(imageSpec),
  command: texts,
  args: texts,
  workingDir: text,
  envs: many(fc.record<wire.KeyValue>({ key: text, value: bytes })),
  mounts: many(mount),
  devices: many(fc.record<wire.Device>({ containerPath: text, hostPath: text, permissions: text })),
  labels: map,
  annotations: map,
  logPath: text,
  stdin: fc.boolean(),
  stdinOnce: fc.boolean(),
  tty: fc.boolean(),
  linux: maybe(
    fc.record<wire.LinuxContainerConfig>({
      resources: maybe(resources),
      securityContext: maybe(
        fc.record<wire.LinuxContainerSecurityContext>({
          capabilities: maybe(
            fc.record<wire.Capability>({
              addCapabilities: texts,
              dropCapabilities: texts,
              addAmbientCapabilities: texts,
            }),
          ),
          privileged: fc.boolean(),
          namespaceOptions: maybe(namespaceOption),
          selinuxOptions: maybe(selinuxOption),
          runAsUser: maybe(int64Value),
          runAsGroup: maybe(int64Value),
          runAsUsername: text,
          readonlyRootfs: fc.boolean(),
          supplementalGroups: many(int64),
          supplementalGroupsPolicy: enumeration(1),
          noNewPrivs: fc.boolean(),
          maskedPaths: texts,
          readonlyPaths: texts,
          seccomp: maybe(profile),
          apparmor: maybe(profile),
          apparmorProfile: text,
          seccompProfilePath: text,
        }),
      ),
    }),
  ),
  windows: fc.constant(undefined),
  CDIDevices: many(fc.record<wire.CDIDevice>({ name: text })),
  stopSignal: enumeration(70),
});

/** Fields that are texts in JavaScript and numbers on the wire, where 0 is the default; "0" is a text like others. */
const NUMBERS: ReadonlySet<string> = new Set([...Object.keys(INT64_OF_RESOURCES), 'limit', 'value']);

/** Looks for a proto3 default anywhere in a record: an empty message may stay, an empty value may not. */
function assertCompact(value: unknown, at = ''): void {
  for (const [name, field] of Object.entries(value as object)) {
    const where = `${at}.${name}`;
    const inMap = /\.(labels|annotations|sysctls|unified)$/.test(at);
    const inList = Array.isArray(value);
    if (!inMap && !inList) {
      assert.ok(![undefined, '', 0, false].includes(field as string), `${where} is a default`);
      assert.ok(!(field === '0' && NUMBERS.has(name)), `${where} is a default`);
    }
    if (Array.isArray(field)) assert.ok(field.length > 0, `${where} is an empty list`);
    if (typeof field === 'object' && field !== null) assertCompact(field, where);
  }
}

describe('CRI messages', { timeout: 60_000 }, () => {
  it('PodSandboxConfig goes through its compact form without loss', () => {
    fc.assert(
      fc.property(podSandboxConfig, (message) => {
        const sent = wire.PodSandboxConfig.encode(message).finish();
        const compact = fromWire.podSandboxConfig(wire.PodSandboxConfig.decode(sent));
        assertCompact(compact);
        assert.deepEqual(JSON.parse(JSON.stringify(compact)), compact);
        const copy: object = structuredClone(compact);
        const back = wire.PodSandboxConfig.fromPartial(copy);
        assert.deepEqual(Buffer.from(wire.PodSandboxConfig.encode(back).finish()), Buffer.from(sent));
      }),
      { numRuns: 1000 },
    );
  });

  it('a text that is the digit 0 is kept, and a number that is 0 is not', () => {
    const config = wire.PodSandboxConfig.fromPartial({ hostname: '0', linux: { resources: { cpuShares: '0' } } });
    const compact = fromWire.podSandboxConfig(
      wire.PodSandboxConfig.decode(wire.PodSandboxConfig.encode(config).finish()),
    );
    assert.equal(compact.hostname, '0');
    assert.deepEqual(compact.linux, { resources: {} });
    assertCompact(compact);
    assert.throws(() => assertCompact({ linux: { resources: { cpuShares: '0' } } }), /cpuShares is a default/);
  });

  it('ContainerConfig goes through its compact form without loss, but for env values', () => {
    fc.assert(
      fc.property(containerConfig, (message) => {
        const values = new Map<string, Buffer>();
        const tokenOf = (value: Uint8Array): string => {
          values.set(`token-${values.size}`, Buffer.from(value));
          return `token-${values.size - 1}`;
        };
        const sent = wire.ContainerConfig.encode(message).finish();
        const compact = fromWire.containerConfig(wire.ContainerConfig.decode(sent), tokenOf);
        assertCompact(compact);
        assert.deepEqual(JSON.parse(JSON.stringify(compact)), compact);
        assert.equal(values.size, message.envs.filter(({ value }) => value.length > 0).length);
        const envs = compact.envs?.map(({ key: name, token }) => ({ key: name, value: values.get(token ?? '') }));
        const copy: object = structuredClone({ ...compact, envs });
        const back = wire.ContainerConfig.fromPartial(copy);
        assert.deepEqual(Buffer.from(wire.ContainerConfig.encode(back).finish()), Buffer.from(sent));
      }),
      { numRuns: 1000 },
    );
  });

  it('the parts of replies come back as they were sent', () => {
    const roundTrip = <W, D>(arbitrary: fc.Arbitrary<W>, into: (message: W) => D, back: (value: D) => W): void => {
      fc.assert(fc.property(arbitrary, (message) => assert.deepEqual(back(into(message)), structuredClone(message))));
    };
    const pod = (part: Partial<wire.PodSandboxConfig>) =>
      fromWire.podSandboxConfig(wire.PodSandboxConfig.fromPartial(part));
    const container = (part: Partial<wire.ContainerConfig>) =>
      fromWire.containerConfig(wire.ContainerConfig.fromPartial(part), String);
    roundTrip(podMetadata, (metadata) => pod({ metadata }).metadata ?? {}, toWire.podSandboxMetadata);
    roundTrip(containerMetadata, (metadata) => container({ metadata }).metadata ?? {}, toWire.containerMetadata);
    roundTrip(imageSpec, fromWire.imageSpec, toWire.imageSpec);
    roundTrip(resources, fromWire.linuxContainerResources, toWire.linuxContainerResources);
    roundTrip(mount, (one) => container({ mounts: [one] }).mounts?.[0] ?? {}, toWire.mount);
    roundTrip(
      namespaceOption,
      (namespaceOptions) =>
        container({
          linux: wire.LinuxContainerConfig.fromPartial({ securityContext: { namespaceOptions } }),
        }).linux?.securityContext?.namespaceOptions ?? {},
      toWire.namespaceOption,
    );
    roundTrip(map, (labels) => pod({ labels }).labels, toWire.labelsOf);
  });

  it('keeps an empty message apart from none', () => {
    const of = (seccomp: wire.SecurityProfile | undefined) =>
      fromWire.podSandboxConfig(
        wire.PodSandboxConfig.fromPartial({ linux: { securityContext: { seccomp, runAsUser: { value: '0' } } } }),
      ).linux?.securityContext;
    assert.deepEqual(of({ profileType: 0, localhostRef: '' }), { seccomp: {}, runAsUser: {} });
    assert.deepEqual(of(undefined), { runAsUser: {} });
  });

  it('C12: no env value is in what goes on to the domain, and one with a NUL byte is refused', () => {
    const config = wire.ContainerConfig.fromPartial({ envs: [{ key: 'A', value: Buffer.from('hunter2') }] });
    const compact = fromWire.containerConfig(config, () => 'token');
    assert.deepEqual(compact, { envs: [{ key: 'A', token: 'token' }] });
    const nul = wire.ContainerConfig.fromPartial({ envs: [{ key: 'A', value: Buffer.from('a\0b') }] });
    assert.throws(
      () => fromWire.containerConfig(nul, () => 'token'),
      (error) =>
        error instanceof FailureError && error.failure.reason === 'InvalidField' && !error.message.includes('a\0b'),
    );
  });

  it('takes no host port that leads nowhere', () => {
    const mapped = (mapping: Partial<wire.PortMapping>) =>
      fromWire.podSandboxConfig(wire.PodSandboxConfig.fromPartial({ portMappings: [mapping] })).portMappings;
    assert.deepEqual(mapped({ hostPort: 81, containerPort: 80 }), [{ hostPort: 81, containerPort: 80 }]);
    // No host port is wanted, as kubelet says it of every other port.
    assert.deepEqual(mapped({ containerPort: 80 }), [{ containerPort: 80 }]);
    assert.deepEqual(mapped({}), [{}]);
    assert.throws(
      () => mapped({ hostPort: 81 }),
      (error) => error instanceof FailureError && error.message.includes('container_port is 0'),
    );
  });

  it('takes no host IP that is none, and every one that is', () => {
    const mapped = (address: string) =>
      fromWire.podSandboxConfig(wire.PodSandboxConfig.fromPartial({ portMappings: [{ hostIp: address }] }));
    for (const address of ['', '0.0.0.0', '192.0.2.1', '::', 'fd00::1', 'fe80::1%eth0', '::ffff:192.0.2.1'])
      assert.equal(mapped(address).portMappings?.[0]?.hostIp ?? '', address);
    for (const address of [
      'x',
      '1.2.3',
      '1.2.3.4.5',
      '999.1.1.1',
      '010.0.0.1',
      '1.2.3.4/24',
      '1::2::3',
      'localhost',
      '-',
    ])
      assert.throws(
        () => mapped(address),
        (error) => error instanceof FailureError && /port_mappings\.host_ip/.test(error.failure.message),
        address,
      );
  });

  it('takes no policy of supplemental groups that it does not know for Merge', () => {
    const mapped = (supplementalGroupsPolicy: number) => {
      const linux = { securityContext: { supplementalGroupsPolicy } } as wire.DeepPartial<wire.LinuxContainerConfig>;
      return fromWire.containerConfig(wire.ContainerConfig.fromPartial({ linux }), () => 'token').linux;
    };
    const { Merge, Strict } = wire.SupplementalGroupsPolicy;
    assert.deepEqual(
      [Merge, Strict].map((policy) => mapped(policy)?.securityContext),
      [{}, { supplementalGroupsPolicy: Strict }],
    );
    for (const policy of [2, -1])
      assert.throws(
        () => mapped(policy),
        (error) => error instanceof FailureError && /supplemental_groups_policy is -?\d/.test(error.failure.message),
      );
  });

  it('tells the user of a container in ids', () => {
    assert.deepEqual(toWire.containerUser({ uid: 1000, gid: 0, additionalGids: [0, 7] }), {
      linux: { uid: '1000', gid: '0', supplementalGroups: ['0', '7'] },
    });
    assert.equal(toWire.signal(23), wire.Signal.SIGNAL_SIGTERM);
  });
});
