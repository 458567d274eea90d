/**
 * Whatever numbers and texts the journal holds, every message that is made of its state can be encoded, and one odd
 * object costs nobody the list it stands in.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createLists } from '../../../src/adapters/cri/lists.ts';
import {
  containerEntry,
  containerStatus,
  imageEntry,
  podSandboxEntry,
  podSandboxStatus,
} from '../../../src/adapters/cri/messages/entries.ts';
import { int32, int64, uint32, uint64 } from '../../../src/adapters/cri/messages/numbers.ts';
import * as toWire from '../../../src/adapters/cri/messages/to-wire.ts';
import { containerInfo, imageInfo, podSandboxInfo } from '../../../src/adapters/cri/messages/verbose.ts';
import { containerStats, podSandboxStats } from '../../../src/adapters/cri/stats.ts';
import * as wire from '../../../src/wire/cri/api.ts';
import type * as domain from '../../../src/domain/model/cri.ts';
import type { Container, ContainerExit, ContainerPhase, Image, PodSandbox } from '../../../src/domain/model/state.ts';
import { container, idOf, image, podSandbox, startServer, testModel } from './support.ts';
import { FACTS } from '../../simulation/facts.ts';
import { CREATED, exited, running } from '../../support/phases.ts';

/** All that JSON takes for a number. */
const number = fc.oneof(
  fc.constantFrom(0, -1, 1.5, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53, -(2 ** 31) - 1, 1e300, -1e300),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
/** A 64-bit integer is text, and text may be anything. */
const int64Text = fc.oneof(
  fc.constantFrom(
    '0',
    '-1',
    String(2n ** 63n),
    String(-(2n ** 63n) - 1n),
    String(2n ** 64n),
    '',
    '1.5',
    '1e9',
    'NaN',
    '-',
  ),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  fc.string({ maxLength: 4 }),
);
/** Halves of surrogate pairs too, which no UTF-8 has. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 }).map((units) => String.fromCharCode(...units)),
  fc.constantFrom('__proto__', 'toString', '\0', '\n'),
);
const few = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(arbitrary, { maxLength: 2 });
const texts = few(text);
const labels = fc.array(fc.tuple(text, text), { maxLength: 3 }).map((pairs) => Object.fromEntries(pairs));
/** Each field may be absent; the shape is the journal's, so that the compiler knows when one is added. */
const some = <T extends object>(
  fields: { readonly [K in keyof Required<T>]: fc.Arbitrary<Required<T>[K]> },
): fc.Arbitrary<T> =>
  fc.record(fields, {
    requiredKeys: [],
    noNullPrototype: true,
  }) as fc.Arbitrary<T>;

const idMapping = some<domain.IDMapping>({ hostId: number, containerId: number, length: number });
const usernsOptions = some<domain.UserNamespace>({ mode: number, uids: few(idMapping), gids: few(idMapping) });
const namespaceOptions = some<domain.NamespaceOption>({
  network: number,
  pid: number,
  ipc: number,
  targetId: text,
  usernsOptions,
});
const resources = some<domain.LinuxContainerResources>({
  cpuPeriod: int64Text,
  cpuQuota: int64Text,
  cpuShares: int64Text,
  memoryLimitInBytes: int64Text,
  oomScoreAdj: int64Text,
  cpusetCpus: text,
  cpusetMems: text,
  hugepageLimits: few(some<domain.HugepageLimit>({ pageSize: text, limit: int64Text })),
  unified: labels,
  memorySwapLimitInBytes: int64Text,
});
const spec = some<domain.ImageSpec>({
  image: text,
  annotations: labels,
  userSpecifiedImage: text,
  runtimeHandler: text,
  imageRef: text,
});
const mount = some<domain.Mount>({
  containerPath: text,
  hostPath: text,
  readonly: fc.boolean(),
  selinuxRelabel: fc.boolean(),
  propagation: number,
  uidMappings: few(idMapping),
  gidMappings: few(idMapping),
  recursiveReadOnly: fc.boolean(),
  image: spec,
  imageSubPath: text,
  mountOptions: texts,
});

const pods: fc.Arbitrary<PodSandbox> = fc
  .record({
    metadata: some<domain.PodSandboxMetadata>({ name: text, uid: text, namespace: text, attempt: number }),
    labels,
    annotations: labels,
    namespaceOptions,
    createdAtNs: int64Text,
    runtimeHandler: text,
    ips: texts,
    phase: fc.constantFrom('ready' as const, 'notReady' as const),
    networkResult: fc.jsonValue(),
  })
  .map(({ metadata, labels: own, annotations, namespaceOptions: options, ...rest }) =>
    podSandbox(idOf('a'), {
      ...rest,
      config: {
        metadata,
        labels: own,
        annotations,
        linux: { securityContext: { namespaceOptions: options } },
      },
    }),
  );

const containers: fc.Arbitrary<Container> = fc
  .record({
    metadata: some<domain.ContainerMetadata>({ name: text, attempt: number }),
    spec,
    labels,
    annotations: labels,
    mounts: few(mount),
    logPath: text,
    stopSignal: number,
    resources,
    createdAtNs: int64Text,
    startedAtNs: fc.option(int64Text),
    imageStopSignal: text,
    user: fc.record({ uid: number, gid: number, additionalGids: few(number) }),
    exit: fc.option(
      fc.record({
        exitStatus: number,
        finishedAtNs: int64Text,
        reason: fc.constantFrom('Completed' as const, 'Unknown' as const),
        message: text,
      }),
    ),
  })
  .map((one) =>
    container(idOf('c'), idOf('a'), {
      config: {
        metadata: one.metadata,
        image: one.spec,
        labels: one.labels,
        annotations: one.annotations,
        mounts: one.mounts,
        logPath: one.logPath,
        stopSignal: one.stopSignal,
        linux: { resources: one.resources },
      },
      imageConfig: { stopSignal: one.imageStopSignal },
      createdAtNs: one.createdAtNs,
      facts: { user: one.user, devices: [], mounts: [] },
      phase: phaseOf(one),
    }),
  );

function phaseOf({ startedAtNs, exit }: { startedAtNs: string | null; exit: ContainerExit | null }): ContainerPhase {
  if (exit !== null && startedAtNs === null) return { kind: 'exited', exit, run: null, taskLeft: 'none' };
  if (exit !== null && startedAtNs !== null) return exited(exit, { startedAtNs });
  return startedAtNs === null ? CREATED : running({ startedAtNs });
}

const images: fc.Arbitrary<Image> = fc
  .record({ user: fc.oneof(text, int64Text), sizeBytes: number, repoTags: texts, repoDigests: texts })
  .map(({ user, ...rest }) => {
    const plain = image('sha256:i1');
    return { ...plain, content: { ...plain.content, ...rest, config: { user } } };
  });

const USAGE = { cpu: undefined, memory: undefined, swap: undefined, io: undefined, process: undefined };

describe('whatever the journal holds', { timeout: 60_000 }, () => {
  it('every message that is made of the state can be encoded, and read again', () => {
    fc.assert(
      fc.property(pods, containers, images, (pod, one, found) => {
        const { state, put } = testModel();
        put({ sandboxes: [pod], containers: [one], images: [found] });
        const { CONTAINER_EXITED } = wire.ContainerState;
        wire.PodSandbox.decode(wire.PodSandbox.encode(podSandboxEntry(pod)).finish());
        wire.PodSandboxStatus.decode(wire.PodSandboxStatus.encode(podSandboxStatus(pod)).finish());
        wire.Container.decode(wire.Container.encode(containerEntry(one, CONTAINER_EXITED)).finish());
        wire.ContainerStatus.decode(
          wire.ContainerStatus.encode(containerStatus(state, one, CONTAINER_EXITED)).finish(),
        );
        wire.Image.decode(wire.Image.encode(imageEntry(found, false)).finish());
        wire.ContainerStats.decode(wire.ContainerStats.encode(containerStats(one, USAGE, undefined)).finish());
        const podUsage = { timestamp: '0', usage: USAGE, interfaces: null, containers: [] };
        wire.PodSandboxStats.decode(wire.PodSandboxStats.encode(podSandboxStats(pod, podUsage)).finish());
        // With facts there are specs to be shown, of whatever a journal says.
        state.facts = FACTS;
        JSON.parse(
          JSON.stringify([podSandboxInfo(state, pod), containerInfo(state, one), imageInfo(found.content, null)]),
        );
      }),
      { numRuns: 1_000 },
    );
  });

  it('every function that puts the state into messages is among them', () => {
    const used = new Set(Object.keys(toWire));
    // Each of these is called by what the property above encodes.
    for (const name of [
      'labelsOf',
      'podSandboxMetadata',
      'containerMetadata',
      'imageSpec',
      'namespaceOption',
      'mount',
      'linuxContainerResources',
      'containerUser',
      'signal',
    ])
      used.delete(name);
    assert.deepEqual([...used], [], 'add it to the property, then to this list');
  });

  it('numbers that a field can hold stay what they are, and others give the nearest or what C gives', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 0, max: 2 ** 32 - 1 }), (signed, unsigned) => {
        assert.equal(int32(signed), signed);
        assert.equal(uint32(unsigned), unsigned);
      }),
    );
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        assert.equal(int64(String(value)), String(value));
      }),
    );
    assert.equal(int32(2 ** 32 - 1), -1);
    assert.equal(int64('99999999999999999999'), String(2n ** 63n - 1n));
    assert.equal(int64('-99999999999999999999'), String(-(2n ** 63n)));
    assert.equal(uint64(String(2n ** 64n - 1n)), String(2n ** 64n - 1n));
    assert.equal(uint64('-1'), '0');
    assert.equal(int64('x'), '0');
  });

  it('an image of a user that no id can be, and a container that ended with a status above 2³¹, are listed and told', async (t) => {
    const view = testModel();
    const odd = image('sha256:i1');
    const exit = { exitStatus: 2 ** 32 - 1, finishedAtNs: '5', reason: 'Error', message: '' } as const;
    view.put({
      sandboxes: [podSandbox(idOf('a'))],
      containers: [container(idOf('c'), idOf('a'), { phase: exited(exit) })],
      images: [{ ...odd, content: { ...odd.content, config: { user: '9223372036854775808' } } }, image('sha256:i2')],
    });
    const { cri } = await startServer(t, { view });
    const { images: listed } = await cri.image.listImages({});
    assert.deepEqual(
      listed.map(({ id, uid, username }) => [id, uid?.value, username]),
      [
        ['sha256:i1', undefined, '9223372036854775808'],
        ['sha256:i2', '1000', ''],
      ],
    );
    assert.equal((await cri.runtime.containerStatus({ containerId: 'c' })).status?.exitCode, -1);
    assert.equal((await cri.runtime.podSandboxStatus({ podSandboxId: 'a' })).containersStatuses[0]?.exitCode, -1);
  });

  it('one that cannot be encoded is missing in its list, is told of, and nothing else is missing', () => {
    const view = testModel();
    const broken = image('sha256:broken');
    view.put({
      // No journal gives an image without a list of names.
      images: [{ ...broken, content: { ...broken.content, repoTags: null as unknown as [] } }, image('sha256:i2')],
    });
    const told: string[] = [];
    const lists = createLists(view, undefined, (id) => void told.push(id));
    const { images: listed } = wire.ListImagesResponse.decode(lists.images());
    assert.deepEqual(
      listed.map(({ id }) => id),
      ['sha256:i2'],
    );
    assert.deepEqual(told, ['sha256:broken']);
  });
});
