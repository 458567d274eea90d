/**
 * decide(state, input): all that follows from one input, as events, in one synchronous turn (C1). Pure: the same
 * state and input always give the same events, which is what replay rests on (C13). The state is evolved on the way.
 */
import { decideRequest } from '../call/decisions.ts';
import { decideCall } from '../call/decide.ts';
import { afterReadCheckpoint } from '../container/restore.ts';
import { afterContainerEffect } from '../container/outcomes.ts';
import { advanceContainer, loseContainer, recordExit } from '../container/advance.ts';
import { afterDelete, afterFetch, afterSync, advanceImage, type Fetched } from '../image/advance.ts';
import { daemonStarted } from '../node/decide.ts';
import { afterFailedTurn } from '../node/failed-turns.ts';
import { wakeCreations } from '../node/plugins.ts';
import { afterSandboxEffect } from '../pod-sandbox/outcomes.ts';
import { advancePodSandbox, losePodSandbox } from '../pod-sandbox/advance.ts';
import { afterReadPodCheckpoint } from '../pod-sandbox/restore.ts';
import { holderOf } from '../pod-sandbox/sandboxer.ts';
import type { EffectEnded, Event, Input, Sequenced } from '../model/records.ts';
import { NODE_STREAM, type Subject, type SubjectKind, subjectOf } from '../model/records.ts';
import { containersOf, type NodeState } from '../model/state.ts';
import { refused } from '../model/result.ts';
import { beginTurn, complete, request, type Turn } from '../deciding/turn.ts';
import { evolve } from './evolve.ts';
import { decidingFor } from '../deciding/turn-failed.ts';

export function decide(state: NodeState, input: Sequenced<Input>): readonly Sequenced<Event>[] {
  const turn = beginTurn(state, input, evolve);
  react(turn, input);
  settle(turn);
  return turn.events;
}

function react(turn: Turn, input: Sequenced<Input>): void {
  const subject = subjectOf(input.stream);
  const { kind, id } = subject;
  switch (input.type) {
    case 'daemon.started':
      return daemonStarted(turn, streamsLeftAlone(input));
    case 'call.received':
      return decideCall(turn, input);
    case 'effect.ended':
      return afterEffect(turn, input.body, subject);
    case 'task.exited':
      if (kind === 'container') return recordExit(turn, id, input.body.exit);
      return afterHolderExit(turn, id, input.body.exit.exitStatus);
    case 'shim.lost':
      losePodSandbox(turn, id, SHIM_LOST);
      for (const container of containersOf(turn.state, id)) loseContainer(turn, container.id, SHIM_LOST);
      return;
    case 'nri.plugin.registered':
      return request(turn, NODE_STREAM, { kind: 'SynchronizePlugin', plugin: input.body.id });
    case 'turn.failed':
      return afterFailedTurn(turn, input);
    case 'call.detached':
    case 'task.oomed':
    case 'content.damaged':
    case 'journal.doubted':
    case 'disk.filled':
    case 'disk.freed':
    case 'content.collected':
    case 'logkeeper.started':
    case 'logkeeper.ended':
    case 'network.configured':
    case 'nri.plugin.closed':
    case 'daemon.stopped':
      // Written down; it changes what later decisions see.
      return;
  }
}

const SHIM_LOST = 'the shim that ran it is gone';

function afterHolderExit(turn: Turn, podSandboxId: string, exitStatus: number): void {
  const holder = holderOf(turn.state.sandboxes.get(podSandboxId)?.sandboxer ?? 'pause') ?? 'it';
  losePodSandbox(turn, podSandboxId, `${holder} ended with status ${exitStatus}`);
}

function afterEffect(turn: Turn, outcome: EffectEnded, { kind, id }: Subject): void {
  if (turn.ended === null) return;
  switch (kind) {
    case 'sandbox':
      return afterSandboxEffect(turn, id, outcome, turn.ended.intent);
    case 'container':
      return afterContainerEffect(turn, id, outcome, turn.ended.intent);
    case 'image':
      return afterImageEffect(turn, id, outcome);
    case 'call':
      return afterCallEffect(turn, outcome);
    case 'node':
      return wakeCreations(turn);
  }
}

function afterImageEffect(turn: Turn, imageId: string, { kind, failure }: EffectEnded): void {
  if (kind === 'DeleteImageContent') afterDelete(turn, imageId, failure);
  else if (kind === 'SyncImage') afterSync(turn, imageId, failure);
  else advanceImage(turn, imageId);
}

/** What a call had done before there was an object that it could be about. */
function afterCallEffect(turn: Turn, outcome: EffectEnded): void {
  if (outcome.kind === 'PullImage') {
    const { result, failure } = outcome;
    return afterPull(turn, { images: result === undefined ? [] : [result.image], unsynced: result?.unsynced, failure });
  }
  if (outcome.kind === 'LoadImages') {
    const { result, failure } = outcome;
    return afterPull(turn, { images: result?.images ?? [], unsynced: result?.unsynced, failure });
  }
  if (outcome.kind === 'ReadPodCheckpoint') return afterReadPodCheckpoint(turn, outcome);
  if (outcome.kind === 'ReadCheckpoint') return afterReadCheckpoint(turn, outcome);
}

function afterPull(turn: Turn, fetched: Fetched): void {
  afterFetch(turn, turn.input.stream, fetched, (call, pullFailure) => {
    if (pullFailure === undefined) decideRequest(turn, call);
    else complete(turn, call, refused(pullFailure));
  });
}

/** Lets every woken object's process manager run, until none has anything left to ask for. */
function settle(turn: Turn): void {
  const leftAlone = streamsLeftAlone(turn.input);
  for (const stream of turn.woken) {
    turn.woken.delete(stream);
    if (!leftAlone.has(stream)) decidingFor(stream, () => advance(turn, stream));
  }
}

const processManagers: { readonly [K in SubjectKind]: ((turn: Turn, id: string) => void) | null } = {
  sandbox: advancePodSandbox,
  container: advanceContainer,
  image: advanceImage,
  call: null,
  node: null,
};

function advance(turn: Turn, stream: string): void {
  const { kind, id } = subjectOf(stream);
  processManagers[kind]?.(turn, id);
}

const NONE: ReadonlySet<string> = new Set();

const streamsLeftAlone = (input: Input): ReadonlySet<string> =>
  input.type === 'daemon.started' && input.body.leftAlone !== undefined
    ? new Set(input.body.leftAlone.map(({ stream }) => stream))
    : NONE;
