/**
 * A model of CRI: from what clients asked and were answered, and from what really happened on the node, it knows which
 * replies, events, signals and states may be. It is told nothing of what the daemon believes or owes, and knows none of
 * its code.
 */
import { CHANGED, CODES, codeOf, mayFailWith, NODE_FAILED, REFUSED } from './codes.ts';
import { checkNextEvent } from './events.ts';
import { checkShown } from './shown-checks.ts';
import { createSignals, type Signals } from './signals.ts';
import {
  AMBIGUOUS,
  type Asked,
  type Kind,
  NOBODY,
  type Node,
  type Reply,
  type ShownContainer,
  type ToldEvent,
} from './words.ts';

/** One object, as clients can know it. */
interface Thing {
  readonly id: string;
  readonly kind: Kind;
  /** Of a container: its pod. */
  podSandboxId: string;
  /** Somebody asked for its end, or its pod's. */
  removalAsked: boolean;
  stopAsked: boolean;
  startAsked: number;
  /** Of these, the ones without a reply: where the daemon ended in one, it never comes. */
  startsOpen: number;
  startedReply: boolean;
}

/** One call under way. */
export interface Call {
  readonly asked: Asked;
  readonly atNs: bigint;
  readonly failuresBefore: number;
  /** Its container was running, by every account, when the call was made. */
  readonly wasStarted: boolean;
}

export interface Model {
  readonly called: (asked: Asked, atNs: bigint) => Call;
  readonly replied: (call: Call, reply: Reply) => void;
  /** A code that was written down with a reason (none: OK). */
  readonly coded: (method: string, reason: string | undefined, code: number) => void;
  readonly told: (event: ToldEvent) => void;
  readonly looked: (shown: ShownContainer) => void;
  readonly signals: Signals;
}

/** Allowed on a full disk: they make room. */
const ENDINGS: readonly string[] = [
  'StopContainer',
  'RemoveContainer',
  'StopPodSandbox',
  'RemovePodSandbox',
  'RemoveImage',
];

/** What a doubted journal left half made is undone when it is asked for again. */
const MAKING: readonly string[] = ['RunPodSandbox', 'RestorePod', 'CreateContainer'];

/** Failures of the daemon itself, of a configuration that it could not take in, and of what a start passed over. */
const AFTER_BUGS: readonly string[] = ['Bug', 'NetworkNotReady', 'Interrupted'];

export function createModel(node: Node, fail: (message: string) => never): Model {
  const things = new Map<string, Thing>();
  const names = new Map<string, number>();
  const events = new Map<string, ToldEvent[]>();
  const lastShown = new Map<string, ShownContainer>();
  let imageRemovals = 0;

  const thing = (id: string, kind: Kind): Thing => {
    const known = things.get(id);
    if (known !== undefined) return known;
    const made: Thing = {
      id,
      kind,
      podSandboxId: '',
      removalAsked: false,
      stopAsked: false,
      startAsked: 0,
      startsOpen: 0,
      startedReply: false,
    };
    things.set(id, made);
    return made;
  };

  const isEnding = ({ podSandboxId, removalAsked, stopAsked }: Thing): boolean => {
    const pod = things.get(podSandboxId);
    return removalAsked || stopAsked || pod?.removalAsked === true || pod?.stopAsked === true;
  };

  const toldTypes = (id: string): readonly string[] => (events.get(id) ?? []).map(({ type }) => type);
  const signals = createSignals(node, fail);

  function called(asked: Asked, atNs: bigint): Call {
    const { method, containerId = '', podSandboxId = '' } = asked;
    const before = things.get(containerId);
    const wasStarted = before?.startedReply === true;
    note(asked, atNs);
    const name = asked.config?.metadata?.name;
    if (name !== undefined && method !== 'CreateContainer') names.set(name, (names.get(name) ?? 0) + 1);
    if (name !== undefined && method === 'CreateContainer')
      names.set(`${podSandboxId}/${name}`, (names.get(`${podSandboxId}/${name}`) ?? 0) + 1);
    if (method === 'RemoveImage') imageRemovals += 1;
    return { asked, atNs, failuresBefore: node.failures(), wasStarted };
  }

  function note({ method, containerId = '', podSandboxId = '', timeoutSeconds = '0' }: Asked, atNs: bigint): void {
    switch (method) {
      case 'StartContainer':
        thing(containerId, 'container').startAsked += 1;
        thing(containerId, 'container').startsOpen += 1;
        return;
      case 'StopContainer':
        thing(containerId, 'container').stopAsked = true;
        return signals.stopAsked(containerId, atNs, BigInt(timeoutSeconds));
      case 'RemoveContainer':
        thing(containerId, 'container').removalAsked = true;
        return signals.endAsked(containerId);
      case 'StopPodSandbox':
        thing(podSandboxId, 'sandbox').stopAsked = true;
        return signals.podEndAsked(podSandboxId);
      case 'RemovePodSandbox':
        thing(podSandboxId, 'sandbox').removalAsked = true;
        return signals.podEndAsked(podSandboxId);
      default:
    }
  }

  function replied(call: Call, reply: Reply): void {
    const { method } = call.asked;
    const open = things.get(call.asked.containerId ?? '');
    const startsOpen = open?.startsOpen ?? 0;
    if (open !== undefined && method === 'StartContainer') open.startsOpen -= 1;
    if (node.hadBugs() && AFTER_BUGS.includes(reply.reason ?? '')) return;
    if (node.doubtsJournal() && reply.reason === 'Interrupted' && MAKING.includes(method)) return;
    checkNobody(call.asked, reply);
    if (reply.ok) return checkSuccess(call, reply);
    const reason = reply.reason ?? '';
    if (!mayFailWith(method, reason)) fail(`${method} was answered with ${reason}, which it can't be.`);
    if ([...REFUSED, ...CHANGED].includes(reason) && !node.pluginsSaid(reason))
      fail(`${method} was answered with ${reason} and no plugin has said anything of the kind.`);
    if (NODE_FAILED.includes(reason) && reason !== 'HostLacks') checkFailedForReason(call, reason);
    if (reason === 'ContainerNotFound' || reason === 'PodSandboxNotFound') checkNotFound(call.asked, reason);
    if (reason === 'NameTaken') checkNameTaken(call.asked);
    if (reason === 'WrongState') checkWrongState(call.asked);
    if (reason === 'Interrupted') checkInterrupted(method, startsOpen);
    // What goes on needs the image that it was checkpointed with.
    if (reason === 'InvalidField' && method === 'RestorePod' && !node.hadMovingTags())
      fail('RestorePod was answered with InvalidField and nothing else was asked for than was checkpointed.');
    if (reason === 'UnknownRuntimeHandler' && !node.lackedHandler(call.asked.runtimeHandler ?? ''))
      fail(`${method} was told that ${call.asked.runtimeHandler ?? ''} is no runtime handler.`);
    if (reason === 'AmbiguousId' && call.asked.containerId !== AMBIGUOUS)
      fail(`${method} of a whole id was called ambiguous.`);
    if (reason === 'DiskFull' && (ENDINGS.includes(method) || !node.diskWasFull()))
      fail(`${method} was refused for want of space.`);
  }

  /** What is not there is not found, and is as stopped and removed as can be. */
  function checkNobody({ method, containerId, podSandboxId }: Asked, { ok, reason }: Reply): void {
    if (containerId !== NOBODY && podSandboxId !== NOBODY) return;
    if (reason === 'NotServing' || reason === 'DiskFull') return;
    const isEnding = ENDINGS.includes(method);
    if (isEnding !== ok) fail(`${method} of an id that nobody has was answered with ${reason ?? 'OK'}.`);
    const notFound = containerId === NOBODY ? 'ContainerNotFound' : 'PodSandboxNotFound';
    if (!ok && reason !== notFound) fail(`${method} of an id that nobody has was answered with ${reason}.`);
  }

  /** A failure of the node, on a node on which nothing has failed and nothing was cut off. */
  function checkFailedForReason({ asked }: Call, reason: string): void {
    // A command has its own time, and a plugin that is not there is no failure of the node.
    if (node.failures() > 0 || reason === 'PluginMissing' || (asked.method === 'ExecSync' && reason === 'TimedOut'))
      return;
    const found = things.get(asked.containerId ?? '');
    // Its pod has stopped being READY meanwhile, at somebody's wish.
    if (asked.method === 'StartContainer' && found !== undefined && isEnding(found)) return;
    const pod = asked.podSandboxId ?? found?.podSandboxId ?? '';
    if (!node.wasCutOff(pod)) fail(`${asked.method} was answered with ${reason} and nothing has failed.`);
  }

  /** The start that it joined was cut off by the daemon's end. */
  function checkInterrupted(method: string, startsOpen: number): void {
    if (method !== 'StartContainer' || startsOpen < 2) fail(`${method} was interrupted, and no start before it.`);
  }

  function checkNotFound({ method, containerId, podSandboxId }: Asked, reason: string): void {
    const id = (reason === 'ContainerNotFound' ? containerId : podSandboxId) ?? '';
    const found = things.get(id);
    if (found === undefined || toldTypes(id).includes('CONTAINER_DELETED_EVENT')) return;
    if (toldTypes(id).length > 0 && !isEnding(found)) fail(`${method} does not find ${id}, which nobody removed.`);
  }

  function checkNameTaken({ method, config, podSandboxId }: Asked): void {
    const name = config?.metadata?.name ?? '';
    const asked = names.get(method === 'CreateContainer' ? `${podSandboxId}/${name}` : name) ?? 0;
    if (asked < 2 && method !== 'CreateContainer')
      fail(`${method} was told that the name ${name} is taken, and nobody else asked for it.`);
  }

  function checkWrongState({ method, containerId }: Asked): void {
    const found = things.get(containerId ?? '');
    if (method !== 'StartContainer' || found === undefined) return;
    const told = toldTypes(found.id);
    const began =
      found.startAsked > 1 || told.includes('CONTAINER_STARTED_EVENT') || told.includes('CONTAINER_STOPPED_EVENT');
    const podTold = toldTypes(found.podSandboxId);
    const podFell = podTold.includes('CONTAINER_STOPPED_EVENT') || node.wasCutOff(found.podSandboxId);
    if (!began && !podFell && !isEnding(found))
      fail(`Container ${found.id} was made and could not be started: wrong state.`);
  }

  function checkSuccess(call: Call, reply: Reply): void {
    const { method, containerId = '', podSandboxId = '' } = call.asked;
    switch (method) {
      case 'RunPodSandbox':
      case 'RestorePod':
        checkPodMade(reply.id ?? '');
        for (const id of reply.containerIds ?? []) checkContainerMade(id, reply.id ?? '');
        return;
      case 'CreateContainer':
        return checkContainerMade(reply.id ?? '', podSandboxId);
      case 'StartContainer':
        thing(containerId, 'container').startedReply = true;
        if (!node.hasRun(containerId)) fail(`StartContainer of ${containerId} was answered with OK and it never ran.`);
        return mustBeTold(containerId, 'CONTAINER_STARTED_EVENT', method);
      case 'StopContainer':
        if (call.wasStarted && node.runs(containerId))
          fail(`StopContainer of ${containerId} was answered with OK and it runs.`);
        // A reboot ends all containers at once, of which there are no events.
        if (call.wasStarted && !node.wasCutOff(thing(containerId, 'container').podSandboxId))
          mustBeTold(containerId, 'CONTAINER_STOPPED_EVENT', method);
        return;
      case 'RemoveContainer':
        return mustBeGone(containerId, method);
      case 'StopPodSandbox':
        if (node.runsInPod(podSandboxId))
          fail(`StopPodSandbox of ${podSandboxId} was answered with OK and something runs.`);
        if (node.hasAddress(podSandboxId))
          fail(`StopPodSandbox of ${podSandboxId} was answered with OK and it has an address.`);
        if (node.hasNamespaces(podSandboxId))
          fail(`StopPodSandbox of ${podSandboxId} was answered with OK and it has namespaces.`);
        return;
      case 'RemovePodSandbox':
        return mustBeGone(podSandboxId, method);
      case 'ExecSync':
        return checkExec(call.asked, reply);
      case 'PullImage':
        if (reply.imageRefs?.length !== 1) fail(`PullImage was answered with ${reply.imageRefs?.length ?? 0} images.`);
        for (const id of reply.imageRefs)
          if (!node.gave(call.asked.image ?? '', id))
            fail(`PullImage was answered with ${id}, which no registry gave.`);
        if (imageRemovals === 0 && !node.hasLayers()) fail('PullImage was answered with OK and there is no layer.');
        return;
      default:
    }
  }

  function checkPodMade(id: string): void {
    const pod = thing(id, 'sandbox');
    mustBeTold(id, 'CONTAINER_CREATED_EVENT', 'RunPodSandbox');
    mustBeTold(id, 'CONTAINER_STARTED_EVENT', 'RunPodSandbox');
    if (isEnding(pod) || node.wasCutOff(id)) return;
    if (node.traces(id).length === 0) fail(`RunPodSandbox was answered with ${id}, of which there is nothing.`);
  }

  function checkContainerMade(id: string, podSandboxId: string): void {
    const made = thing(id, 'container');
    made.podSandboxId = podSandboxId;
    signals.belongs(id, podSandboxId);
    mustBeTold(id, 'CONTAINER_CREATED_EVENT', 'CreateContainer');
    if (isEnding(made) || node.wasCutOff(podSandboxId)) return;
    if (node.traces(id).length === 0) fail(`CreateContainer was answered with ${id}, of which there is nothing.`);
  }

  function checkExec({ newId = '' }: Asked, { exitCode }: Reply): void {
    const truth = node.exitOfCommand(newId);
    if (truth === undefined) fail('ExecSync was answered with OK and no command has run.');
    if (truth !== exitCode) fail(`A command ended with ${truth} and was said to have ended with ${exitCode}.`);
  }

  function mustBeTold(id: string, type: string, method: string): void {
    if (!toldTypes(id).includes(type)) fail(`${method} of ${id} was answered with OK before ${type}.`);
  }

  function mustBeGone(id: string, method: string): void {
    const traces = node.traces(id);
    if (traces.length > 0) fail(`${method} of ${id} was answered with OK and this is left: ${traces.join(', ')}.`);
    if (toldTypes(id).includes('CONTAINER_CREATED_EVENT')) mustBeTold(id, 'CONTAINER_DELETED_EVENT', method);
  }

  return {
    called,
    replied,
    signals,
    coded(method, reason, code) {
      if (reason !== undefined && !(reason in CODES)) return;
      if (code !== codeOf(reason)) fail(`${method} failed with ${reason ?? 'nothing'} and code ${code}.`);
    },
    told(event) {
      const before = events.get(event.id) ?? [];
      checkNextEvent(node, before, event, fail);
      events.set(event.id, [...before, event]);
    },
    looked(shown) {
      checkShown(node, lastShown.get(shown.id), shown, fail);
      lastShown.set(shown.id, shown);
      if (shown.state === 'CONTAINER_EXITED' && !toldTypes(shown.id).includes('CONTAINER_CREATED_EVENT'))
        fail(`${shown.id} is shown and nobody was told that it was made.`);
    },
  };
}
