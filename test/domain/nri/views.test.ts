/** What NRI plugins are told of pods and containers, at every point of their lives. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NamespaceMode } from '../../../src/domain/model/cri.ts';
import type { ContainerConfig, PodSandboxConfig } from '../../../src/domain/model/cri.ts';
import type { OciSpec } from '../../../src/domain/model/oci.ts';
import type { NodeState } from '../../../src/domain/model/state.ts';
import { containerView, podSandboxView, type ShownContainer } from '../../../src/domain/nri/views.ts';
import { containerSpecOf } from '../../../src/domain/oci/specs.ts';
import { plugin, registers, requested } from './plugin-happenings.ts';
import { FACTS } from '../../simulation/facts.ts';
import { IMAGE } from '../../simulation/images.ts';
import { given, type Happening } from '../given.ts';
import {
  allSucceeds,
  CONTAINER,
  containerConfig,
  createContainer,
  createdContainer,
  exitedContainer,
  IMAGE_NAME,
  POD,
  podConfig,
  pulledImage,
  pauseExits,
  readyPod,
  readyPodWithPause,
  runningContainer,
  runPod,
  startContainer,
  stopPod,
  succeeds,
} from '../happenings.ts';

const sandboxOf = ({ sandboxes }: NodeState) => sandboxes.get(POD) ?? assert.fail('there is no pod');
const podAfter = (...happenings: readonly Happening[]) => {
  const { state } = given(...happenings);
  return podSandboxView(FACTS, sandboxOf(state));
};

function containerAfter(happenings: readonly Happening[], more: Partial<ShownContainer> = {}) {
  const { state } = given(...happenings);
  const container = state.containers.get(CONTAINER) ?? assert.fail('there is no container');
  const built = containerSpecOf(state, FACTS, container);
  const spec = built.ok ? built.value : null;
  return containerView(state, { container, sandbox: state.sandboxes.get(POD), spec, ...more });
}

const limits = { cpuShares: '512', memoryLimitInBytes: '1000', cpusetCpus: '0-1' };
const fullPod: PodSandboxConfig = podConfig(
  {
    labels: { app: 'web' },
    annotations: { mine: 'yes', 'io.kubernetes.cri.sandbox-id': 'forged' },
    linux: {
      cgroupParent: '/kubepods/pod1',
      overhead: { cpuQuota: '7000' },
      resources: limits,
      securityContext: { namespaceOptions: { pid: NamespaceMode.POD } },
    },
  },
  NamespaceMode.POD,
);

describe('a pod, as plugins see it', () => {
  it('with a pause task: its process, and the namespaces, limits and cgroup of its spec', () => {
    const view = podAfter(runPod(fullPod), allSucceeds);
    const { annotations, linux, ...rest } = view;
    assert.deepEqual(rest, {
      id: POD,
      name: 'pod',
      uid: 'uid',
      namespace: 'ns',
      labels: { app: 'web' },
      runtimeHandler: '',
      pid: 12,
      ips: ['10.0.0.2'],
    });
    assert.equal(annotations?.['mine'], 'yes');
    assert.equal(annotations['io.kubernetes.cri.sandbox-id'], POD, "the spec's annotations lie over the config's");
    assert.deepEqual(linux?.podOverhead, {
      memory: { limit: '0' },
      cpu: { shares: '0', quota: '7000', period: '0' },
    });
    assert.deepEqual(linux.podResources, {
      memory: { limit: '1000' },
      cpu: { shares: '512', quota: '0', period: '0', cpus: '0-1' },
    });
    assert.equal(linux.cgroupParent, '/kubepods/pod1');
    assert.equal(linux.cgroupsPath, `/kubepods/pod1/${POD}`);
    assert.deepEqual(linux.resources?.cpu, { shares: '2' });
    assert.deepEqual(
      linux.namespaces?.map(({ type, path }) => [type, path]),
      [
        ['pid', undefined],
        ['network', `${FACTS.stateDir}/netns/${POD}`],
        ['ipc', undefined],
        ['uts', undefined],
        ['mount', undefined],
      ],
    );
  });

  it('without a pause task: no process, and the files that pin its namespaces', () => {
    const view = podAfter(readyPod);
    assert.ok(!('pid' in view));
    assert.deepEqual(view.linux, {
      namespaces: [
        { type: 'network', path: `${FACTS.stateDir}/netns/${POD}` },
        { type: 'ipc', path: `${FACTS.stateDir}/ipcns/${POD}` },
        { type: 'uts', path: `${FACTS.stateDir}/utsns/${POD}` },
      ],
    });
  });

  it('that is stopped has no namespaces that are gone, and no process', () => {
    assert.deepEqual(podAfter(readyPod, stopPod, allSucceeds).linux, { namespaces: [] });
    const held = podAfter(readyPodWithPause, stopPod, allSucceeds, pauseExits, allSucceeds);
    assert.ok(!('pid' in held));
    assert.ok(held.linux?.namespaces?.every(({ type }) => type !== 'network'));
  });

  it('has the limits that hold, and not only those that it was made with', () => {
    const view = podAfter(readyPod, (tell) =>
      tell({
        type: 'call.received',
        body: {
          request: { method: 'UpdatePodSandboxResources', podSandboxId: POD, resources: { cpuShares: '99' } },
          caller: null,
          deadlineNs: null,
        },
        stream: 'call/update',
        call: null,
      }),
    );
    assert.equal(view.linux?.podResources?.cpu?.shares, '99');
  });
});

const fullContainer: ContainerConfig = containerConfig({
  labels: { tier: 'front' },
  annotations: { mine: 'yes', 'io.kubernetes.cri.container-name': 'own', 'io.kubernetes.cri.blockio-class': 'slow' },
  envs: [{ key: 'PASSWORD', token: 'secret:1' }, { key: 'EMPTY' }],
  command: ['run'],
  CDIDevices: [{ name: 'vendor.com/net=eth0' }],
  linux: {
    resources: limits,
    securityContext: { seccompProfilePath: 'runtime/default' },
  },
});
const facts = { user: { uid: 5, gid: 6, additionalGids: [7] }, devices: [], mounts: [], cdi: [], blockIO: [] };
const createdFull = [
  pulledImage,
  pauseExits,
  readyPod,
  createContainer(fullContainer),
  succeeds('InspectContainer', { facts }),
  allSucceeds,
];

describe('a container, as plugins see it', () => {
  it('has what its spec, its config and its image say, and its secrets stay tokens', () => {
    const { annotations, mounts, linux, env, ...rest } = containerAfter(createdFull);
    assert.deepEqual(rest, {
      id: CONTAINER,
      podSandboxId: POD,
      name: 'app',
      state: 'CONTAINER_CREATED',
      labels: { tier: 'front' },
      args: ['run'],
      createdAtNs: rest.createdAtNs,
      cdiDevices: ['vendor.com/net=eth0'],
      user: { uid: 5, gid: 6, additionalGids: [7] },
      image: { name: IMAGE_NAME, digest: IMAGE.manifestDigest, configDigest: IMAGE.id },
    });
    assert.match(rest.createdAtNs ?? '', /^18/);
    assert.equal(annotations?.['io.kubernetes.cri.sandbox-id'], POD);
    assert.equal(annotations['io.kubernetes.cri.container-name'], 'own', "the config's lie over the spec's");
    assert.deepEqual(env?.slice(-2), [{ name: 'PASSWORD', token: 'secret:1' }, 'EMPTY=']);
    assert.ok(mounts?.some(({ destination }) => destination === '/proc'));
    assert.equal(linux?.cgroupsPath, `/scribe/${CONTAINER}`);
    assert.equal(linux.oomScoreAdj, 0);
    assert.equal(linux.resources?.blockioClass, 'slow');
    assert.deepEqual(linux.resources.cpu, { shares: '512' });
    assert.deepEqual(linux.seccompProfile, { profileType: 0 });
    assert.ok((linux.seccompPolicy?.syscalls?.length ?? 0) > 0);
    assert.ok(linux.namespaces?.some(({ type }) => type === 'mount'));
  });

  it('has all that the spec may have', () => {
    const { state } = given(...createdFull);
    const container = state.containers.get(CONTAINER) ?? assert.fail('there is no container');
    const built = containerSpecOf(state, FACTS, container);
    assert.ok(built.ok);
    const spec: OciSpec = {
      ...built.value,
      hooks: { prestart: [{ path: '/hook' }] },
      process: {
        ...built.value.process,
        rlimits: [{ type: 'RLIMIT_CORE', hard: 2, soft: 1 }],
        ioPriority: { class: 'IOPRIO_CLASS_RT', priority: 1 },
        scheduler: { policy: 'SCHED_DEADLINE', runtime: 1, deadline: 2, period: 3 },
      },
      linux: {
        ...built.value.linux,
        devices: [{ path: '/dev/fuse', type: 'c', major: 10, minor: 229 }],
        sysctl: { a: '1' },
        netDevices: { eth1: { name: 'net1' } },
        intelRdt: { closID: 'gold', schemata: ['L3:0=f'], enableMonitoring: true },
      },
    };
    const view = containerView(state, { container, sandbox: undefined, spec, blockioClass: 'fast' });
    assert.deepEqual(view.hooks, spec.hooks);
    assert.deepEqual(view.rlimits, [{ type: 'RLIMIT_CORE', hard: '2', soft: '1' }]);
    const { linux } = view;
    assert.deepEqual(linux?.ioPriority, { class: 'IOPRIO_CLASS_RT', priority: 1 });
    assert.deepEqual(linux.scheduler, { policy: 'SCHED_DEADLINE', runtimeNs: '1', deadlineNs: '2', periodNs: '3' });
    assert.deepEqual(linux.devices, spec.linux.devices);
    assert.deepEqual(linux.sysctl, { a: '1' });
    assert.deepEqual(linux.netDevices, { eth1: { name: 'net1' } });
    assert.deepEqual(linux.rdt, { closId: 'gold', schemata: ['L3:0=f'], enableMonitoring: true });
    assert.equal(linux.resources?.rdtClass, 'gold');
    assert.equal(linux.resources.blockioClass, 'fast', 'what plugins gave wins over the annotation');
  });

  it('is of an unknown state until it is created', () => {
    const view = containerAfter([pulledImage, readyPod, createContainer(), succeeds('InspectContainer')]);
    assert.equal(view.state, 'CONTAINER_UNKNOWN');
    assert.ok(!('createdAtNs' in view));
  });

  it('has a process from the moment that its task is made', () => {
    const task = { pid: 77, startTicks: '1' };
    const made = containerAfter([createdContainer, startContainer], { task });
    assert.deepEqual([made.state, made.pid, made.startedAtNs], ['CONTAINER_CREATED', 77, undefined]);
    const runs = containerAfter([runningContainer]);
    assert.deepEqual([runs.state, runs.pid], ['CONTAINER_RUNNING', 12]);
    assert.match(runs.startedAtNs ?? '', /^18/);
  });

  it('is stopped while its exit is told of, and of an unknown state after that', () => {
    const told = containerAfter([exitedContainer], { handlesExit: true });
    assert.deepEqual([told.state, told.pid, told.statusReason], ['CONTAINER_STOPPED', 12, 'Completed']);
    assert.match(told.finishedAtNs ?? '', /^18/);
    const later = containerAfter([exitedContainer]);
    assert.deepEqual([later.state, later.pid, later.finishedAtNs], ['CONTAINER_UNKNOWN', undefined, told.finishedAtNs]);
  });

  it('without a spec says what is known without it', () => {
    const view = containerAfter([createdContainer], { spec: null, sandbox: undefined });
    assert.deepEqual([view.name, view.linux, view.env], ['app', undefined, undefined]);
  });
});

describe('what a plugin is told when it comes', () => {
  const told = (...happenings: readonly Happening[]) => {
    const { state } = given(...happenings, registers(plugin('10', 'late')));
    const { pods, containers } = requested(state, 'SynchronizePlugin');
    return [[...pods].map(({ id }) => id), [...containers].map(({ id, state: word }) => [id, word])];
  };

  it('is every pod that clients may know of, and every container that is created or runs', () => {
    assert.deepEqual(told(), [[], []]);
    assert.deepEqual(told(runPod()), [[], []], 'it is being made');
    assert.deepEqual(told(readyPod), [[POD], []]);
    assert.deepEqual(told(createdContainer), [[POD], [[CONTAINER, 'CONTAINER_CREATED']]]);
    assert.deepEqual(told(runningContainer), [[POD], [[CONTAINER, 'CONTAINER_RUNNING']]]);
    assert.deepEqual(told(exitedContainer), [[POD], []]);
    assert.deepEqual(told(readyPod, stopPod, allSucceeds), [[POD], []], 'also where it is NOTREADY');
  });

  it('is in the order in which it was made', () => {
    const more = createContainer(containerConfig({ metadata: { name: 'second' } }), 'another');
    assert.deepEqual(told(createdContainer, more, allSucceeds)[1], [
      [CONTAINER, 'CONTAINER_CREATED'],
      ['another', 'CONTAINER_CREATED'],
    ]);
  });
});
