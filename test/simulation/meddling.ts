/**
 * Others on the same node, in some histories: they do to any pod and container of any client whatever can be asked for, at
 * any moment and several things at once, name them by the beginning of their ids, and ask for what can't be.
 */
import type { CallReply } from '../../src/engine/ports.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import type { CallResponse } from '../../src/domain/model/records.ts';
import type { History } from './history.ts';
import { beginningOf } from './ids.ts';
import { IMAGE, PAUSE_IMAGE } from './images.ts';
import { AMBIGUOUS, NOBODY } from './model/words.ts';
import { Violation } from './violation.ts';

interface Meddler {
  readonly call: (
    draft: CallDraft,
    patienceMs: number,
    named: (draft: CallDraft) => CallDraft,
  ) => Promise<CallReply | null>;
  readonly create: (draft: CallDraft) => Promise<CallResponse | null>;
  readonly pause: (ms: number) => Promise<void>;
  readonly isOver: () => boolean;
  /** Somebody was told of the container. */
  readonly isAnswered: (containerId: string) => boolean;
}

type Known = 'pod' | 'container' | 'node';

const PAUSE_MS = 150;
const TOGETHER_MAX = 3;
const PATIENCES_MS = [30, 400, 60_000] as const;
const BY_BEGINNING_RATE = 0.5;
const BAD_RATE = 0.2;
const CONTAINERS = 4;
const UNREADABLE = { reason: 'InvalidField', message: 'The configuration cannot be read.' } as const;

export async function meddle(history: History, meddler: Meddler): Promise<void> {
  const { random } = history;
  const chooses = choices(history, meddler);
  while (!meddler.isOver()) {
    await meddler.pause(random.below(PAUSE_MS));
    const kind = random.pick(['pod', 'container', 'container', 'node'] as const);
    const id = random.pick([...idsOf(history, meddler, kind), NOBODY]);
    const together = 1 + random.below(TOGETHER_MAX);
    await Promise.all(Array.from({ length: together }, () => chooses(kind, id)));
    if (random.chance(BAD_RATE)) await askBadly(history, random.pick(badDrafts(id)));
  }
}

function idsOf({ daemon }: History, { isAnswered }: Meddler, kind: Known): readonly string[] {
  const { sandboxes, containers } = daemon?.view.state ?? {};
  return kind === 'pod' ? [...(sandboxes?.keys() ?? [])] : [...(containers?.keys() ?? [])].filter(isAnswered);
}

/** Asks for something of whom it is told. */
function choices(history: History, { call, create }: Meddler): (kind: Known, id: string) => Promise<unknown> {
  const { random } = history;
  let sessions = 0;

  function byBeginning<D extends CallDraft>(draft: D): D {
    if (!random.chance(BY_BEGINNING_RATE)) return draft;
    const short = (id: string): string => (id === NOBODY ? id : beginningOf(id));
    return {
      ...draft,
      ...('podSandboxId' in draft ? { podSandboxId: short(draft.podSandboxId) } : {}),
      ...('containerId' in draft ? { containerId: short(draft.containerId) } : {}),
    };
  }

  const draftOf: { readonly [K in Known]: (id: string) => readonly CallDraft[] } = {
    pod: (podSandboxId) => [
      { method: 'StopPodSandbox', podSandboxId },
      { method: 'RemovePodSandbox', podSandboxId },
      { method: 'UpdatePodSandboxResources', podSandboxId, resources: { cpuShares: '300' } },
      { method: 'CheckpointPod', podSandboxId, outputPath: '/p', containerIds: [] },
      { method: 'PortForward', podSandboxId, ports: [80], newId: `of-others-${sessions++}` },
      { method: 'PortForwardSession', podSandboxId, port: 80, allowedBy: '', newId: `of-others-${sessions++}` },
    ],
    container: (containerId) => [
      { method: 'StartContainer', containerId },
      { method: 'StartContainer', containerId },
      { method: 'StopContainer', containerId, timeoutSeconds: random.pick(['0', '1', '30']) },
      { method: 'RemoveContainer', containerId },
      { method: 'ReopenContainerLog', containerId },
      { method: 'UpdateContainerResources', containerId, resources: { cpuShares: String(2 + random.below(1000)) } },
      { method: 'CheckpointContainer', containerId, location: '/c.tar', timeoutSeconds: '0' },
      { method: 'ExecSync', containerId, cmd: ['true'], timeoutSeconds: '5' },
    ],
    node: () => [
      { method: 'PullImage', image: 'registry.test/app:1', credentials: random.pick([null, 'token']) },
      { method: 'LoadImages' },
      { method: 'RemoveImage', image: random.pick([IMAGE.id.slice(0, 20), ...IMAGE.repoDigests, PAUSE_IMAGE.id]) },
      { method: 'UpdateRuntimeConfig', podCidr: '10.0.0.0/16' },
      { method: 'SetLogLevel', level: 'debug' },
      { method: 'AcknowledgeJournal', reason: 'known' },
      { method: 'ReloadConfig', changes: [], ...(random.chance(0.5) ? { failure: UNREADABLE } : {}) },
      { method: 'ClearStrays', strays: ['a shim'], count: 1 },
    ],
  };

  return async (kind, id) => {
    if (kind === 'pod' && random.chance(0.2)) {
      const name = `c${random.below(CONTAINERS)}`;
      const config = { metadata: { name, attempt: 0 }, image: { image: IMAGE.id }, linux: {} };
      return await create({ method: 'CreateContainer', podSandboxId: id, config });
    }
    return await call(random.pick(draftOf[kind](id)), random.pick(PATIENCES_MS), byBeginning);
  };
}

const METADATA = { name: 'bad', namespace: 'ns', uid: 'bad', attempt: 0 };
const PAUSED = { metadata: METADATA, linux: {} };

const badDrafts = (id: string): readonly CallDraft[] => [
  { method: 'RunPodSandbox', config: {}, runtimeHandler: '' },
  { method: 'RunPodSandbox', config: { ...PAUSED, metadata: { ...METADATA, name: '' } }, runtimeHandler: '' },
  { method: 'RunPodSandbox', config: { ...PAUSED, linux: { cgroupParent: '../../x' } }, runtimeHandler: '' },
  { method: 'RunPodSandbox', config: { ...PAUSED, hostname: 'a'.repeat(70) }, runtimeHandler: '' },
  { method: 'RunPodSandbox', config: PAUSED, runtimeHandler: 'nobody' },
  { method: 'RestorePod', config: PAUSED, runtimeHandler: '', containerConfigs: [], checkpointPath: 'p/../q' },
  { method: 'CreateContainer', podSandboxId: id, config: {} },
  { method: 'CreateContainer', podSandboxId: AMBIGUOUS, config: {} },
  { method: 'StartContainer', containerId: '' },
  { method: 'UpdateContainerResources', containerId: id, resources: { cpuShares: '-5' } },
  { method: 'UpdatePodSandboxResources', podSandboxId: id, resources: { cpuPeriod: '-5' } },
  { method: 'CheckpointContainer', containerId: id, location: 'c.tar', timeoutSeconds: '0' },
  { method: 'CheckpointContainer', containerId: id, location: '/c.tar', timeoutSeconds: '-1' },
  { method: 'CheckpointPod', podSandboxId: id, outputPath: '/p', containerIds: [NOBODY, AMBIGUOUS] },
  { method: 'ExecSync', containerId: id, cmd: [], timeoutSeconds: '0' },
  { method: 'ExecSync', containerId: id, cmd: ['true'], timeoutSeconds: '-1' },
  { method: 'Exec', containerId: id, cmd: ['sh'], tty: true, stdin: false, stdout: false, stderr: true },
  { method: 'Attach', containerId: id, tty: false, stdin: false, stdout: false, stderr: false },
  { method: 'PortForward', podSandboxId: id, ports: [0] },
  { method: 'PortForwardSession', podSandboxId: id, port: 65_536, allowedBy: '' },
  { method: 'PullImage', image: 'UPPER:/', credentials: null },
];

/** Whatever the object is like, it is refused, and in words. */
async function askBadly({ daemon, dimensions, guard, violate }: History, draft: CallDraft): Promise<void> {
  if (daemon === null || daemon.dead) return;
  const answered = daemon.engine.call(draft, { caller: null, deadlineNs: null });
  // A daemon that dies answers nobody.
  answered.then(
    guard(({ outcome }: CallReply) => {
      if (outcome.ok) throw new Violation(`${JSON.stringify(draft)} was answered with OK.`);
      if (outcome.failure.reason === 'Bug' && !dimensions.turnsThrow)
        throw new Violation(`${JSON.stringify(draft)} was answered with ${outcome.failure.message}`);
    }),
    violate,
  );
  await Promise.resolve();
}
