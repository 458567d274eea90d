/** What plugins are sent: every field of the protocol, and the values of secrets. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { writtenSecrets } from '../../../../src/adapters/nri/messages/secrets.ts';
import { containerToWire, ownersToWire, podSandboxToWire } from '../../../../src/adapters/nri/messages/to-wire.ts';
import type { NriResources } from '../../../../src/domain/model/nri.ts';
import type { NriContainer, NriPodSandbox } from '../../../../src/domain/model/nri-views.ts';
import { NO_RLIMIT } from '../../../../src/domain/oci/rlimits.ts';
import * as wire from '../../../../src/wire/nri/api.ts';
import { sent, valueOf } from './arbitrary.ts';

const everything: NriResources = {
  memory: {
    limit: '1',
    reservation: '2',
    swap: '3',
    kernel: '4',
    kernelTcp: '5',
    swappiness: '6',
    disableOomKiller: true,
    useHierarchy: true,
  },
  cpu: { shares: '1', quota: '2', period: '3', realtimeRuntime: '4', realtimePeriod: '5', cpus: '0-1', mems: '0-1' },
  hugepageLimits: [{ pageSize: '2MB', limit: '1' }],
  blockioClass: 'slow',
  rdtClass: 'gold',
  unified: { 'memory.high': '1' },
  devices: [{ allow: true, type: 'c', major: 1, minor: 2, access: 'r' }],
  pids: { limit: '7' },
};
const map = { a: 'b' };
const namespaces = [{ type: 'network', path: '/ns' }];

const pod: NriPodSandbox = {
  id: 'pod',
  name: 'web',
  uid: 'uid',
  namespace: 'ns',
  labels: map,
  annotations: map,
  runtimeHandler: 'runc',
  linux: {
    podOverhead: everything,
    podResources: everything,
    cgroupParent: '/kubepods',
    cgroupsPath: '/kubepods/pod',
    namespaces,
    resources: everything,
  },
  pid: 7,
  ips: ['10.0.0.2'],
};

const hook = { path: '/hook', args: ['hook'], env: [{ name: 'KEY', token: 'token:key' }], timeout: 2 };
const container: NriContainer = {
  id: 'container',
  podSandboxId: 'pod',
  name: 'app',
  state: 'CONTAINER_RUNNING',
  labels: map,
  annotations: map,
  args: ['run', { token: 'token:arg' }],
  env: ['PATH=/bin', { name: 'PASSWORD', token: 'token:password' }],
  mounts: [{ destination: '/data', type: 'bind', source: '/srv', options: ['ro'] }],
  hooks: {
    prestart: [hook],
    createRuntime: [hook],
    createContainer: [hook],
    startContainer: [hook],
    poststart: [hook],
    poststop: [hook],
  },
  linux: {
    namespaces,
    devices: [{ path: '/dev/x', type: 'c', major: 1, minor: 3, fileMode: 0o600, uid: 1, gid: 2 }],
    resources: everything,
    oomScoreAdj: -5,
    cgroupsPath: '/kubepods/pod/container',
    ioPriority: { class: 'IOPRIO_CLASS_BE', priority: 3 },
    seccompProfile: { profileType: 2, localhostRef: '/profile.json' },
    seccompPolicy: {
      defaultAction: 'SCMP_ACT_ERRNO',
      defaultErrnoRet: 1,
      architectures: ['SCMP_ARCH_X86_64'],
      flags: ['SECCOMP_FILTER_FLAG_LOG'],
      listenerPath: '/listener',
      listenerMetadata: 'data',
      syscalls: [
        { names: ['a'], action: 'b', errnoRet: 2, args: [{ index: 1, value: 2, valueTwo: 3, op: 'SCMP_CMP_EQ' }] },
      ],
    },
    sysctl: map,
    netDevices: { eth1: { name: 'net1' } },
    scheduler: {
      policy: 'SCHED_FIFO',
      nice: 1,
      priority: 2,
      flags: ['SCHED_FLAG_RECLAIM'],
      runtimeNs: '1',
      deadlineNs: '2',
      periodNs: '3',
    },
    rdt: { closId: 'gold', schemata: ['L3:0=f'], enableMonitoring: true, remove: true },
  },
  pid: 8,
  rlimits: [{ type: 'RLIMIT_CORE', hard: String(NO_RLIMIT), soft: '1' }],
  createdAtNs: '1',
  startedAtNs: '2',
  finishedAtNs: '3',
  exitCode: 4,
  statusReason: 'Error',
  statusMessage: 'why',
  cdiDevices: ['vendor.com/net=eth0'],
  user: { uid: 1, gid: 2, additionalGids: [3] },
  image: { name: 'app:1', digest: 'sha256:1', configDigest: 'sha256:2' },
};

/** Fields, however deep, that say nothing: the protocol's default. */
function silent(message: unknown, at = ''): string[] {
  if (Array.isArray(message)) return message.length === 0 ? [at] : message.flatMap((one) => silent(one, `${at}[]`));
  if (typeof message === 'object' && message !== null) {
    const fields = Object.entries(message);
    return fields.length === 0 ? [at] : fields.flatMap(([name, field]) => silent(field, `${at}.${name}`));
  }
  return message === undefined || message === '' || message === 0 || message === '0' || message === false ? [at] : [];
}

describe('what plugins are told', () => {
  it('has every field of the protocol, and survives the wire', () => {
    const podMessage = podSandboxToWire(pod);
    const containerMessage = containerToWire(container, valueOf);
    assert.deepEqual([...silent(podMessage), ...silent(containerMessage)], []);
    assert.deepEqual(sent(wire.PodSandbox, podMessage), podMessage);
    assert.deepEqual(sent(wire.Container, containerMessage), containerMessage);
  });

  it('has no limit of a process where there is none, in the words of the kernel', () => {
    assert.deepEqual(containerToWire(container, valueOf).rlimits, [
      { type: 'RLIMIT_CORE', hard: '18446744073709551615', soft: '1' },
    ]);
  });

  it('has the values of secrets', () => {
    const { args, env, hooks } = containerToWire(container, valueOf);
    assert.deepEqual(args, ['run', 'arg']);
    assert.deepEqual(env, ['PATH=/bin', 'PASSWORD=password']);
    assert.deepEqual(hooks?.poststop[0]?.env, ['KEY=key']);
  });

  it('leaves out what nobody knows any more, and keeps arguments in their places', () => {
    const { args, env } = containerToWire({ ...container, args: [{ token: 'x' }, 'run'] }, () => null);
    assert.deepEqual([args, env], [['', 'run'], ['PATH=/bin']]);
  });

  it('has what the bundle has once the values are known nowhere else', () => {
    const view: NriContainer = { ...container, hooks: { prestart: [hook] } };
    const valueInBundle = writtenSecrets(view, {
      process: { args: ['run', 'a=b'], env: ['PATH=/bin', 'PASSWORD=p=q'] },
      hooks: { prestart: [{ env: ['KEY=k'] }] },
    });
    const { args, env, hooks } = containerToWire(view, valueInBundle);
    assert.deepEqual([args, env, hooks?.prestart[0]?.env], [['run', 'a=b'], ['PATH=/bin', 'PASSWORD=p=q'], ['KEY=k']]);
    assert.equal(valueInBundle('another'), null);
    assert.equal(writtenSecrets(view, { process: { args: [], env: [] } })('token:arg'), null);
  });

  it('of what is known of nothing but its id is that', () => {
    assert.deepEqual(silent(podSandboxToWire({ id: 'pod' })).length, 9);
    const { id, state, linux } = containerToWire(
      { id: 'c', podSandboxId: 'pod', name: 'app', state: 'CONTAINER_UNKNOWN' },
      valueOf,
    );
    assert.deepEqual([id, state, linux], ['c', 0, undefined]);
  });

  it('names owners by the numbers of the protocol', () => {
    const { owners } = ownersToWire({
      c: { simple: { Args: '10-a', MemLimit: '20-b' }, compound: { Env: { A: '10-a' }, Namespace: { ipc: '-20-b' } } },
    });
    assert.deepEqual(owners, {
      c: {
        simple: { [wire.Field.Args]: '10-a', [wire.Field.MemLimit]: '20-b' },
        compound: { [wire.Field.Env]: { owners: { A: '10-a' } }, [wire.Field.Namespace]: { owners: { ipc: '-20-b' } } },
      },
    });
  });
});
