/**
 * Clients as kubelets are: they run pods, repeat calls, give up on slow ones, forget what they began, come back after
 * a restart and clean up. At the end one of them removes everything it can see.
 */
import type { CallReply } from '../../src/engine/ports.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import type { ContainerConfig, NamespaceOption, PodSandboxConfig } from '../../src/domain/model/cri.ts';
import type { CallResponse } from '../../src/domain/model/records.ts';
import { CHECKPOINT, CHECKPOINT_ARCHIVE, CHECKPOINT_PATH } from './checkpoint.ts';
import { containerStateOf } from '../../src/domain/model/container-state.ts';
import type { History } from './history.ts';
import { PAUSE_IMAGE } from './images.ts';
import { AMBIGUOUS, NOBODY } from './model/words.ts';
import { meddle } from './meddling.ts';
import { askedOf, replyOf } from './seen.ts';

export interface Clients {
  /** No new work; remove all. */
  readonly windDown: () => void;
  readonly done: () => boolean;
}

const DATA_IMAGE_NAME = 'registry.test/data:1';
const IMAGE_MOUNT = {
  ...{ containerPath: '/data', readonly: true, image: { image: DATA_IMAGE_NAME }, imageSubPath: 'sub' },
};
const IMAGE_MOUNT_RATE = 0.3;
const OWN_SANDBOX_RATE = 0.3;
const OWN_NETWORK_RATE = 0.2;
/** Without a draw of its own, so that seeds mean what they meant. */
const OWN_USERS_EVERY = 3;
/** The one of a pod's containers that is made from a checkpoint, but where the pod has users of its own. */
const FROM_ARCHIVE = 1;
const OWN_IDS = [{ hostId: 65_536, length: 65_536 }];
const OWN_USERS = { uids: OWN_IDS, gids: OWN_IDS };
const SHARED_NAMES = 3;
const PATIENCE_MS = 4000;
const LONG_PATIENCE_MS = 60_000;
const NS_PER_MS = 1_000_000n;

interface MadePod {
  readonly podSandboxId: string;
  /** Of containers that it was restored with. */
  readonly containerIds: readonly string[];
}

/** null: no daemon answered, or it died, or the client gave up. */
type Answer = CallReply | null;

export function startClients(history: History, count: number): Clients {
  const { random, scheduler, model } = history;
  let winding = false;
  let active = 0;
  /** By the ids that creations were answered with. */
  const podOf = new Map<string, string>();
  let cleaning = false;
  let cleaned = false;
  let pod = 0;
  let sessions = 0;
  let commands = 0;

  /** Nobody calls in quiet periods. */
  const mayCall = (): Promise<void> | null =>
    history.held === null ? null : new Promise((resolve) => history.held?.push(resolve));

  /** `named`: how the daemon is told whom it is about. */
  async function call(
    asked: CallDraft,
    patienceMs = PATIENCE_MS,
    named: (draft: CallDraft) => CallDraft = (draft) => draft,
  ): Promise<Answer> {
    await mayCall();
    // Whatever a client was about to do, it does not do it any more.
    if (winding && !cleaning) return null;
    const draft = asked.method === 'ExecSync' ? { ...asked, newId: `command-${commands++}` } : asked;
    return await new Promise((resolve) => {
      const { daemon } = history;
      if (daemon === null || daemon.dead) return void scheduler.after(100, () => resolve(null));
      const modelled = model.called(askedOf(draft), scheduler.nowNs());
      noteRemoval(draft);
      const abort = new AbortController();
      let over = false;
      const finish = (answer: Answer): void => {
        if (over) return;
        over = true;
        if (answer !== null) history.guard(() => model.replied(modelled, replyOf(answer)))();
        resolve(answer);
      };
      scheduler.after(patienceMs, () => {
        if (over) return;
        // Without a reason, one is made, with its stack.
        if (!daemon.dead) abort.abort('the client has gone');
        finish(null);
      });
      const deadlineNs = history.dimensions.sessionsLast ? scheduler.nowNs() + BigInt(patienceMs) * NS_PER_MS : null;
      daemon.engine.call(named(draft), { caller: null, deadlineNs, signal: abort.signal }).then(
        (reply) => (daemon.dead ? undefined : finish(reply)),
        () => finish(null),
      );
    });
  }

  const pause = (ms: number): Promise<void> => new Promise((resolve) => scheduler.after(ms, resolve));
  /** Where sessions last, whoever has one does something else beside it. */
  const meanwhile = async (session: Promise<unknown>): Promise<void> => {
    if (!history.dimensions.sessionsLast) await session;
  };
  const sessionPatience = (): number => {
    const patienceMs = impatient();
    return history.dimensions.sessionsLast && random.chance(0.3) ? LONG_PATIENCE_MS : patienceMs;
  };
  const impatient = (): number => (random.chance(0.2) ? 30 : PATIENCE_MS);

  /** Where others meddle, names are used again, by several at once too. */
  function podName(): PodSandboxConfig['metadata'] {
    const number = history.dimensions.clientsMeddle && random.chance(0.5) ? random.below(SHARED_NAMES) : pod;
    pod += 1;
    return { name: `pod${number}`, namespace: 'ns', uid: `uid${number + 1}`, attempt: 0 };
  }

  async function runPod(): Promise<void> {
    await call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null }, impatient());
    if (random.chance(0.3)) await call({ method: 'LoadImages' }, impatient());
    if (random.chance(IMAGE_MOUNT_RATE))
      await call({ method: 'PullImage', image: DATA_IMAGE_NAME, credentials: null }, impatient());
    if (random.chance(0.2)) await call({ method: 'RemoveImage', image: 'registry.test/app:1' });
    if (random.chance(0.1)) await call({ method: 'RemoveImage', image: PAUSE_IMAGE.id });
    const network = random.chance(0.15) ? 2 : 0;
    const usernsOptions = pod % OWN_USERS_EVERY === 1 && network === 0 ? { usernsOptions: OWN_USERS } : {};
    const config: PodSandboxConfig = {
      metadata: podName(),
      logDirectory: '/logs',
      linux: {
        securityContext: {
          namespaceOptions: { network, pid: random.chance(0.5) ? 1 : 0, ...usernsOptions },
        },
      },
    };
    const runtimeHandler = random.chance(OWN_SANDBOX_RATE) ? 'own' : random.chance(OWN_NETWORK_RATE) ? 'net' : '';
    const made =
      pod % history.restoredEvery === 0
        ? await restorePod(config, runtimeHandler, usernsOptions)
        : await runEmptyPod(config, runtimeHandler);
    if (made === null) return;
    const { podSandboxId } = made;
    const containers = await Promise.all([
      ...made.containerIds.map((containerId) => useContainer(podSandboxId, containerId)),
      ...Array.from({ length: random.below(3) }, (_, index) =>
        runContainer(podSandboxId, made.containerIds.length + index, usernsOptions),
      ),
    ]);
    if (random.chance(0.8))
      await call({ method: 'CheckpointPod', podSandboxId, outputPath: '/p', containerIds: [] }, impatient());
    if (random.chance(IMAGE_MOUNT_RATE)) await call({ method: 'RemoveImage', image: DATA_IMAGE_NAME });
    if (random.chance(0.3))
      await call({ method: 'UpdatePodSandboxResources', podSandboxId, resources: { cpuShares: '100' } }, impatient());
    if (random.chance(0.2)) await askForNobody();
    if (random.chance(0.25)) return; // Forgotten: somebody else cleans up.
    for (const containerId of containers)
      if (containerId !== null && random.chance(0.7)) await removeContainer(containerId);
    await removePod(podSandboxId);
  }

  /** Ids that are nobody's, and beginnings that are of several. */
  async function askForNobody(): Promise<void> {
    const containerId = random.chance(0.5) ? NOBODY : AMBIGUOUS;
    await call({ method: 'ReopenContainerLog', containerId });
    await call({ method: 'StopContainer', containerId: NOBODY, timeoutSeconds: '0' });
    await call({ method: 'RemovePodSandbox', podSandboxId: NOBODY });
  }

  async function runEmptyPod(config: PodSandboxConfig, runtimeHandler: string): Promise<MadePod | null> {
    const made = await create({ method: 'RunPodSandbox', config, runtimeHandler });
    return made === null ? null : { podSandboxId: made.id ?? '', containerIds: [] };
  }

  async function restorePod(
    config: PodSandboxConfig,
    runtimeHandler: string,
    namespaceOptions: NamespaceOption,
  ): Promise<MadePod | null> {
    for (const image of ['registry.test/app:1', DATA_IMAGE_NAME])
      await call({ method: 'PullImage', image, credentials: null });
    const containerConfigs = CHECKPOINT.containers.map((_, index) => containerConfig(index, namespaceOptions));
    const draft = { method: 'RestorePod', config, runtimeHandler, containerConfigs } as const;
    const made = await create({ ...draft, checkpointPath: CHECKPOINT_PATH });
    if (made === null) return null;
    const containerIds = Object.values(made.containerIds ?? {});
    const podSandboxId = made.id ?? '';
    for (const containerId of containerIds) noteContainer(containerId, podSandboxId);
    return { podSandboxId, containerIds };
  }

  /** Creates, repeating the same call as long as it is not answered. */
  async function create(draft: CallDraft): Promise<CallResponse | null> {
    const repeats = 1 + random.below(3);
    for (let attempt = 0; attempt < repeats; attempt += 1) {
      const calls = random.chance(0.1) ? [call(draft, impatient()), call(draft)] : [call(draft, impatient())];
      for (const answer of await Promise.all(calls)) {
        if (answer === null || !answer.outcome.ok) continue;
        const id = answer.outcome.value.id ?? '';
        if (draft.method === 'CreateContainer') noteContainer(id, draft.podSandboxId);
        else noteCreated(id, 'sandbox');
        return answer.outcome.value;
      }
      await pause(50);
    }
    return null;
  }

  async function runContainer(
    podSandboxId: string,
    index: number,
    namespaceOptions: NamespaceOption,
  ): Promise<string | null> {
    const fresh = containerConfig(index, namespaceOptions);
    const config = index === FROM_ARCHIVE ? { ...fresh, image: { image: CHECKPOINT_ARCHIVE } } : fresh;
    const made = await create({ method: 'CreateContainer', podSandboxId, config });
    return made === null ? null : await useContainer(podSandboxId, made.id ?? '');
  }

  const containerConfig = (index: number, namespaceOptions: NamespaceOption): ContainerConfig => ({
    metadata: { name: `c${index}`, attempt: 0 },
    image: { image: 'registry.test/app:1' },
    logPath: `c${index}.log`,
    mounts: random.chance(IMAGE_MOUNT_RATE) ? [IMAGE_MOUNT] : [],
    linux: { securityContext: { namespaceOptions } },
  });

  /** Starts it, and does with it what can be done with one that runs. */
  async function useContainer(podSandboxId: string, containerId: string): Promise<string> {
    const updates = [updateContainer(containerId), updateContainer(containerId)];
    const started = await call({ method: 'StartContainer', containerId }, impatient());
    await Promise.all([...updates, updateContainer(containerId)]);
    if (started?.outcome.ok) history.ledger.started.add(containerId);
    // What comes late in a pod's life comes early where the history is about it.
    if (history.target.includes('ReopenLog')) await call({ method: 'ReopenContainerLog', containerId });
    if (history.target.includes('CheckpointPod'))
      await call({ method: 'CheckpointPod', podSandboxId, outputPath: '/p', containerIds: [] });
    if (random.chance(0.8)) {
      const timeoutSeconds = history.dimensions.sessionsLast && random.chance(0.5) ? '0' : '5';
      await meanwhile(call({ method: 'ExecSync', containerId, cmd: ['true'], timeoutSeconds }, sessionPatience()));
    }
    await meanwhile(stream(podSandboxId, containerId));
    if (random.chance(0.5)) await call({ method: 'ReopenContainerLog', containerId });
    if (random.chance(0.8))
      await call({ method: 'CheckpointContainer', containerId, location: '/c.tar', timeoutSeconds: '0' }, impatient());
    if (random.chance(0.5)) {
      const stops = Array.from({ length: 1 + random.below(2) }, () =>
        call({ method: 'StopContainer', containerId, timeoutSeconds: String(random.below(3)) }, impatient()),
      );
      // What was not started yet, others may still start.
      const isStarted = !history.dimensions.clientsMeddle || history.ledger.started.has(containerId);
      for (const stopped of await Promise.all(stops))
        if (stopped?.outcome.ok && isStarted) history.ledger.stopped.add(containerId);
    }
    return containerId;
  }

  /** Asks for a session and begins it, as the streaming server does when a client comes with the token. */
  async function stream(podSandboxId: string, containerId: string): Promise<void> {
    const wanted = { containerId, tty: false, stdin: true, stdout: true, stderr: true };
    const allowedBy = `allowed-${sessions++}`;
    const session = async (allow: CallDraft, begin: CallDraft): Promise<void> => {
      const allowed = await call(allow);
      if (allowed?.outcome.ok) await meanwhile(call(begin, sessionPatience()));
    };
    const command = { ...wanted, cmd: ['sh'] };
    if (random.chance(history.sessionRate))
      await session({ method: 'Exec', ...command, newId: allowedBy }, { method: 'ExecSession', ...command, allowedBy });
    if (random.chance(history.sessionRate))
      await session(
        { method: 'Attach', ...wanted, newId: allowedBy },
        { method: 'AttachSession', ...wanted, allowedBy },
      );
    if (random.chance(history.sessionRate))
      await session(
        { method: 'PortForward', podSandboxId, ports: [80], newId: allowedBy },
        { method: 'PortForwardSession', podSandboxId, port: 80, allowedBy },
      );
  }

  async function updateContainer(containerId: string): Promise<void> {
    if (random.chance(0.5)) return;
    await pause(random.below(60));
    const resources = { cpuShares: String(2 + random.below(1000)) };
    await call({ method: 'UpdateContainerResources', containerId, resources }, impatient());
  }

  async function removeContainer(containerId: string): Promise<void> {
    const removed = await call({ method: 'RemoveContainer', containerId }, impatient());
    if (removed?.outcome.ok) history.ledger.removed.add(containerId);
  }

  async function removePod(podSandboxId: string): Promise<void> {
    if (random.chance(0.8)) await call({ method: 'StopPodSandbox', podSandboxId }, impatient());
    const removed = await call({ method: 'RemovePodSandbox', podSandboxId }, impatient());
    if (removed?.outcome.ok) history.ledger.removed.add(podSandboxId);
  }

  const { created, removalAsked } = history.ledger;

  /** Removing a pod removes its containers with it. What a daemon shows of them is not asked: there may be none now. */
  function noteRemoval(draft: CallDraft): void {
    if (draft.method !== 'RemoveContainer' && draft.method !== 'RemovePodSandbox') return;
    const id = 'containerId' in draft ? draft.containerId : draft.podSandboxId;
    removalAsked.add(id);
    created.delete(id);
    for (const [containerId, pod] of podOf) if (pod === id) created.delete(containerId);
  }

  function noteCreated(id: string, kind: 'sandbox' | 'container'): void {
    if (!removalAsked.has(id) && !removalAsked.has(podOf.get(id) ?? '')) created.set(id, kind);
  }

  function noteContainer(id: string, podSandboxId: string): void {
    podOf.set(id, podSandboxId);
    noteCreated(id, 'container');
  }

  async function client(): Promise<void> {
    active += 1;
    while (!winding) {
      await runPod();
      await pause(20);
    }
    active -= 1;
    if (active === 0) await cleanUp();
  }

  async function cleanUp(): Promise<void> {
    history.ledger.created.clear();
    cleaning = true;
    for (;;) {
      const state = history.daemon?.view.state;
      if (state !== undefined) {
        const busy = [...state.sandboxes.keys(), ...state.containers.keys(), ...state.images.keys()];
        if (busy.length === 0) break;
        for (const container of [...state.containers.values()])
          if (containerStateOf(container) !== null)
            await call({ method: 'RemoveContainer', containerId: container.id });
        for (const podSandboxId of [...state.sandboxes.keys()]) {
          await call({ method: 'StopPodSandbox', podSandboxId });
          await call({ method: 'RemovePodSandbox', podSandboxId });
        }
        for (const image of [...state.images.values()])
          if (!image.removing) await call({ method: 'RemoveImage', image: image.id });
      }
      await pause(500);
    }
    cleaned = true;
  }

  for (let index = 0; index < count; index += 1) void client();
  if (history.dimensions.clientsMeddle)
    void meddle(history, { call, create, pause, isOver: () => winding, isAnswered: (id) => podOf.has(id) });
  return { windDown: () => void (winding = true), done: () => cleaned };
}
