/** What can happen to a node, in the words of specifications: calls, how effects end, exits, restarts. See given.ts. */
import type { CniConfList } from '../../src/domain/model/cni.ts';
import { type ContainerConfig, NamespaceMode, type PodSandboxConfig } from '../../src/domain/model/cri.ts';
import type { DaemonFacts } from '../../src/domain/model/daemon-facts.ts';
import type { EffectKind, EffectResults } from '../../src/domain/model/effects.ts';
import type { FailureReason } from '../../src/domain/model/errors.ts';
import {
  type CallRequest,
  callStream,
  containerStream,
  type EffectEnded,
  NODE_STREAM,
  sandboxStream,
  type Eviction,
} from '../../src/domain/model/records.ts';
import type { OpenEffect } from '../../src/domain/model/state.ts';
import { CONF_LIST, FACTS } from '../simulation/facts.ts';
import { IMAGE } from '../simulation/images.ts';
import type { Happening, Told } from './given.ts';

export const POD = 'pod-id';
export const CONTAINER = 'container-id';
export const IMAGE_NAME = 'registry.test/app:1';

export const nodeStarts = (facts: DaemonFacts = FACTS): Happening => restart({ facts, network: true });

interface Restart {
  readonly facts?: DaemonFacts;
  readonly rebooted?: boolean;
  readonly deadTasks?: readonly string[];
  /** The pod network is found as well. */
  readonly network?: boolean;
}

/** The daemon, or the node with it, ends and comes back. */
export function restart({ facts, rebooted = false, deadTasks = [], network = false }: Restart = {}): Happening {
  return (tell, state) => {
    const body = { facts: facts ?? state.facts ?? FACTS, rebooted, deadTasks, crash: null };
    tell({ type: 'daemon.started', body, stream: NODE_STREAM, call: null });
    if (network) networkIs(CONF_LIST)(tell, state);
  };
}

/** null: there is none. */
export const networkIs =
  (confList: CniConfList | null): Happening =>
  (tell) => {
    const body = { confList, problem: confList === null ? 'There is no file.' : null };
    tell({ type: 'network.configured', body, stream: NODE_STREAM, call: null });
  };

let calls = 0;

export const call =
  (request: CallRequest): Happening =>
  (tell) => {
    const body = { request, caller: null, deadlineNs: null };
    tell({ type: 'call.received', body, stream: callStream(String((calls += 1))), call: null });
  };

/** Whoever made the newest call that is under way does not wait for it any more. */
export const callerGoes: Happening = (tell, { calls }) => {
  const newest = [...calls.values()].at(-1);
  if (newest === undefined) throw new Error('No call is under way.');
  tell({ type: 'call.detached', body: { received: newest.seq }, stream: newest.stream, call: newest.seq });
};

/** As kubelet asks for pods: each container has a PID namespace of its own. So the pod needs no pause task. */
export const podConfig = (
  more: Partial<PodSandboxConfig> = {},
  pid: NamespaceMode = NamespaceMode.CONTAINER,
): PodSandboxConfig => ({
  metadata: { name: 'pod', namespace: 'ns', uid: 'uid' },
  linux: { securityContext: { namespaceOptions: { pid } } },
  ...more,
});
export const containerConfig = (more: Partial<ContainerConfig> = {}): ContainerConfig => ({
  metadata: { name: 'app' },
  image: { image: IMAGE_NAME },
  ...more,
});

export const runPod = (config = podConfig(), newId = POD): Happening =>
  call({ method: 'RunPodSandbox', newId, config, runtimeHandler: '' });
/** One whose containers share their PID namespace. */
export const runPodWithPause = runPod(podConfig({}, NamespaceMode.POD));
export const createContainer = (config = containerConfig(), newId = CONTAINER): Happening =>
  call({ method: 'CreateContainer', newId, podSandboxId: POD, config });
export const startContainer = call({ method: 'StartContainer', containerId: CONTAINER });
export const stopContainer = (timeoutSeconds = '30'): Happening =>
  call({ method: 'StopContainer', containerId: CONTAINER, timeoutSeconds });
/** An NRI plugin wants it gone. */
export const evictContainer = (evicted: Eviction): Happening =>
  call({ method: 'StopContainer', containerId: CONTAINER, timeoutSeconds: '0', evicted });
export const removeContainer = call({ method: 'RemoveContainer', containerId: CONTAINER });
export const stopPod = call({ method: 'StopPodSandbox', podSandboxId: POD });
export const removePod = call({ method: 'RemovePodSandbox', podSandboxId: POD });
export const pullImage = call({ method: 'PullImage', image: IMAGE_NAME, credentials: null });

type Results = { readonly [K in EffectKind]?: EffectResults[K] };

/** What effects give that succeed; the others give nothing. */
const RESULTS: Results = {
  PreparePodSandbox: { rootfs: [] },
  AttachNetwork: { ips: ['10.0.0.2'], result: {} },
  StartShim: { shim: { address: 'unix:///shim', taskApi: 3, pid: 10, startTicks: '10' } },
  ReconnectShim: { gone: false, tasks: [] },
  InspectContainer: { facts: { user: { uid: 0, gid: 0, additionalGids: [] }, devices: [], mounts: [] } },
  PrepareContainer: { rootfs: [] },
  CreateTask: { task: { pid: 12, startTicks: '12' } },
  StartTask: { task: { pid: 12, startTicks: '12' } },
  KillTask: { alreadyGone: false },
  RunExec: { exitStatus: 0, timedOut: false, stdoutBytes: 2, stderrBytes: 0 },
  PullImage: { image: IMAGE },
  DeleteImageContent: { freedBytes: 1 },
  CallPlugins: { answers: [] },
  SynchronizePlugin: { answers: [] },
};

export const end = (tell: (input: Told) => void, { id, stream, call, intent }: OpenEffect, outcome: object): void =>
  tell({ type: 'effect.ended', body: { effect: id, kind: intent.kind, ...outcome } as EffectEnded, stream, call });

const endAll =
  (kind: EffectKind, outcome: object): Happening =>
  (tell, { effects }) => {
    const open = [...effects.values()].filter(({ intent }) => intent.kind === kind);
    if (open.length === 0) throw new Error(`No ${kind} is under way.`);
    for (const effect of open) end(tell, effect, outcome);
  };

/** Every effect of this kind that is under way succeeds, with this result. */
export const succeeds = <K extends EffectKind>(kind: K, result?: EffectResults[K]): Happening =>
  endAll(kind, { result: result ?? RESULTS[kind] ?? {} });

export const fails = (kind: EffectKind, reason: FailureReason = 'HostFailed'): Happening =>
  endAll(kind, { failure: { reason, message: `${kind} failed.` } });

/** All that is asked for succeeds, and what is asked for then, until nothing but timers is left. */
export const allSucceeds: Happening = (tell, { effects }) => {
  for (;;) {
    const open = [...effects.values()].find(({ intent }) => intent.kind !== 'WaitUntil');
    if (open === undefined) return;
    end(tell, open, { result: RESULTS[open.intent.kind] ?? {} });
  }
};

/** What was waited for is due. */
export const isDue =
  (purpose: string): Happening =>
  (tell, { effects }) => {
    for (const { id, intent, stream, call: of } of effects.values()) {
      if (intent.kind !== 'WaitUntil' || intent.purpose !== purpose) continue;
      const body = { effect: id, kind: 'WaitUntil', result: {} } as const;
      return tell({ type: 'effect.ended', body, stream, call: of, atNs: BigInt(intent.dueAtNs) });
    }
    throw new Error(`Nothing waits for ${purpose}.`);
  };

const exitOf = (exitStatus: number, pid: number) => ({
  exit: { pid, exitStatus, exitedAtNs: '1800000000000000001', oomKills: 0 },
});

export const exits =
  (exitStatus = 0, id = CONTAINER): Happening =>
  (tell) =>
    tell({ type: 'task.exited', body: exitOf(exitStatus, 12), stream: containerStream(id), call: null });

/** The pod's pause task ends. */
export const pauseExits: Happening = (tell) =>
  tell({ type: 'task.exited', body: exitOf(137, 12), stream: sandboxStream(POD), call: null });

export const shimIsLost: Happening = (tell) =>
  tell({ type: 'shim.lost', body: {}, stream: sandboxStream(POD), call: null });

/** Several happenings as one, for what is often given. */
export const inTurn =
  (...happenings: readonly Happening[]): Happening =>
  (tell, state) => {
    for (const happening of happenings) happening(tell, state);
  };

export const readyPod = inTurn(runPod(), allSucceeds);
export const readyPodWithPause = inTurn(runPodWithPause, allSucceeds);
export const pulledImage = inTurn(pullImage, allSucceeds);
export const createdContainer = inTurn(pulledImage, readyPod, createContainer(), allSucceeds);
export const runningContainer = inTurn(createdContainer, startContainer, allSucceeds);
export const exitedContainer = inTurn(runningContainer, exits(), allSucceeds);

/** The pod's shim answers again after a restart of the daemon, and says this of the container's task. */
export const shimSays = (task: Partial<EffectResults['ReconnectShim']['tasks'][number]>): Happening =>
  succeeds('ReconnectShim', {
    gone: false,
    tasks: [{ containerId: CONTAINER, status: 'running', pid: 12, startTicks: '12', ...task }],
  });
export const shimIsGone = succeeds('ReconnectShim', { gone: true, tasks: [] });
