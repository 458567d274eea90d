/**
 * The least that follows from an input whose own turn threw: how a task ended is shown, nobody waits for what will not
 * come, and who is concerned is looked at again soon. Must stay so plain that it does not meet the same bug: no process
 * manager runs.
 */
import type { TaskExit } from '../model/tasks.ts';
import { EXIT_OVERDUE_MS } from '../container/advance.ts';
import { askShimForExit } from '../container/contact.ts';
import { waitingForDeletion } from '../image/advance.ts';
import { recordUpdate } from '../container/update.ts';
import { writeExit, writeStart } from '../container/starts-and-exits.ts';
import type { Failure } from '../model/errors.ts';
import { markLost } from '../pod-sandbox/advance.ts';
import {
  containerStream,
  type EffectEnded,
  imageStream,
  type Input,
  type InputType,
  sandboxStream,
  type Sequenced,
  subjectOf,
} from '../model/records.ts';
import { containersOf, type NodeState } from '../model/state.ts';
import { failureOfTurn } from '../deciding/turn-failed.ts';
import {
  afterMs,
  callBehind,
  CLAIM_MS,
  complete,
  ensureTimer,
  request,
  retryDelayMs,
  setTimer,
  type Turn,
} from '../deciding/turn.ts';
import { rulesOf } from '../model/rules.ts';
import { refused } from '../model/result.ts';
import { waitForClaimOfContainer, waitForClaimOfPod } from './claims.ts';

/** After so long an object is looked at again that could not be decided about twice. */
const LOOK_MS = 120_000;

type Failed = Sequenced<Extract<Input, { type: 'turn.failed' }>>;

export function afterFailedTurn(turn: Turn, { stream, body }: Failed): void {
  const { handling, input, error } = body;
  const { state } = turn;
  if (handling === 'refused' || handling === 'failed') return;
  const failure = failureOfTurn(input.type, error);
  switch (input.type as InputType) {
    case 'daemon.started':
      return recoverAllLater(turn, failure);
    case 'task.exited':
      if (handling === 'noted') showExit(turn, stream, (input.body as { readonly exit: TaskExit }).exit);
      tellWaiting(turn, stream, failure);
      break;
    case 'effect.ended':
      if (handling === 'noted') showDone(turn, stream, input.body as EffectEnded);
      if (rulesOf(state) >= 3) {
        goOnWaiting(turn, stream);
        tellFetchers(turn, failure);
      }
      tellWaiting(turn, stream, failure);
      break;
    case 'shim.lost':
      tellWaiting(turn, stream, failure);
      break;
    default:
      // Nobody waits for it.
      return;
  }
  if (handling === 'interrupted') askShim(turn, stream);
  if (handling === 'noted' || handling === 'interrupted') lookAgain(turn, concerned(state, stream));
}

/** What the effect was to be followed by in time. One that is looked for every two minutes loops no node. */
function goOnWaiting(turn: Turn, stream: string): void {
  const intent = turn.ended?.intent;
  if (intent?.kind === 'KillTask') ensureTimer(turn, stream, 'exit', afterMs(turn, EXIT_OVERDUE_MS));
  if (intent?.kind !== 'WaitUntil') return;
  if (intent.purpose === 'claim') setTimer(turn, stream, 'claim', afterMs(turn, CLAIM_MS));
  if (intent.purpose === 'exit') askShim(turn, stream);
}

/** The deletion is tried again, unless a pull makes that pointless: then nothing would take up who waits for its end. */
function tellFetchers(turn: Turn, failure: Failure): void {
  if (turn.ended?.intent.kind !== 'DeleteImageContent') return;
  for (const call of waitingForDeletion(turn.state)) complete(turn, call, refused(failure));
}

/** It knows what runs and how what ran ended. */
function askShim(turn: Turn, stream: string): void {
  const { id } = subjectOf(stream);
  askShimForExit(turn, turn.state.containers.get(id)?.podSandboxId ?? id);
}

function recoverAllLater(turn: Turn, failure: Failure): void {
  const { state } = turn;
  for (const call of [...state.calls.values()]) complete(turn, call, refused(failure));
  const streams = [
    ...[...state.sandboxes.keys()].map(sandboxStream),
    ...[...state.containers.keys()].map(containerStream),
  ];
  recoverLater(turn, [...streams, ...owedImages(state)]);
}

/** Removed ones wait for fetches, and for each other; what is not on the disk yet is owed, too. */
const owedImages = (state: NodeState): string[] =>
  rulesOf(state) < 3
    ? []
    : [...state.images.values()]
        .filter(({ removing, unsynced }) => removing || unsynced !== undefined)
        .map(({ id }) => imageStream(id));

/** Each object by itself, so that only the one that can't be decided about stays as it is. */
export function recoverLater(turn: Turn, streams: readonly string[]): void {
  const { sandboxes, containers } = turn.state;
  for (const stream of streams) {
    const { id } = subjectOf(stream);
    const [sandbox, container] = [sandboxes.get(id), containers.get(id)];
    if (sandbox?.shimContact === 'unknown') request(turn, stream, { kind: 'ReconnectShim' });
    if (rulesOf(turn.state) < 3) continue;
    if (sandbox !== undefined) waitForClaimOfPod(turn, sandbox);
    if (container !== undefined) waitForClaimOfContainer(turn, container);
  }
  lookAgain(turn, streams);
}

/** A look that itself threw is repeated much later: nobody waits for good, and no object keeps the node busy. */
function lookAgain(turn: Turn, streams: readonly string[]): void {
  const { ended, state } = turn;
  const hasThrownToo = ended?.intent.kind === 'WaitUntil' && ended.intent.purpose === 'retry';
  if (hasThrownToo && rulesOf(state) < 3) return;
  const delayMs = hasThrownToo ? LOOK_MS : retryDelayMs(1);
  for (const stream of streams) ensureTimer(turn, stream, 'retry', afterMs(turn, delayMs));
}

/** The object itself, and those that may wait for it. */
function concerned(state: NodeState, stream: string): string[] {
  const { kind, id } = subjectOf(stream);
  switch (kind) {
    case 'sandbox':
      if (!state.sandboxes.has(id)) return [];
      return [stream, ...containersOf(state, id).map((container) => containerStream(container.id))];
    case 'container': {
      const container = state.containers.get(id);
      return container === undefined ? [] : [stream, sandboxStream(container.podSandboxId)];
    }
    case 'image':
      return state.images.has(id) ? [stream] : [];
    case 'call':
      return owedImages(state);
    case 'node':
      return [];
  }
}

function showExit(turn: Turn, stream: string, exit: TaskExit): void {
  const { kind, id } = subjectOf(stream);
  if (kind === 'container') writeExit(turn, id, exit);
  else markLost(turn, id, `it ended with status ${exit.exitStatus}`);
}

/** What is so since then, and is shown from a record of its own. */
function showDone(turn: Turn, stream: string, outcome: EffectEnded): void {
  const { kind, id } = subjectOf(stream);
  if (kind !== 'container' || outcome.result === undefined || turn.ended === null) return;
  if (outcome.kind === 'StartTask') writeStart(turn, id, outcome.result.task);
  if (outcome.kind === 'UpdateContainer') recordUpdate(turn, id, undefined, turn.ended.intent);
}

/** Whoever waits for this object, or for the same thing as the call behind the effect, would wait for ever. */
function tellWaiting(turn: Turn, stream: string, failure: Failure): void {
  const behind = callBehind(turn);
  for (const call of [...turn.state.calls.values()]) {
    const waits = call === behind || call.target === stream || (call.target !== '' && call.target === behind?.target);
    if (waits) complete(turn, call, refused(failure));
  }
}
