/**
 * Recovery, as decisions (C19): what the last life left in doubt is undone, finished or asked about.
 * Assumptions: (1) nothing of the last life is performing effects any more; (2) evolve has marked what was under way
 * as failed, and shims as not asked; (3) pids in deadTasks are dead for certain. With a journal that is doubted itself,
 * creations under way are left alone until somebody has acknowledged that.
 */
import { containerStream, imageStream, NODE_STREAM, type RequestOf, sandboxStream } from '../model/records.ts';
import { holderOf } from '../pod-sandbox/sandboxer.ts';
import { containerExitOf, isCreated } from '../model/container-state.ts';
import type { Container, NodeState, OpenCall, PodSandbox } from '../model/state.ts';
import { letCreationsWait } from '../deciding/awaited-plugins.ts';
import { decidingFor } from '../deciding/turn-failed.ts';
import { complete, emit, OK, request, type Turn, wake } from '../deciding/turn.ts';
import { waitForClaimOfContainer, waitForClaimOfPod } from './claims.ts';
import { REBOOTED } from './evolve.ts';
import { recoverLater } from './failed-turns.ts';
import { isDoubted } from '../model/journal-doubt.ts';
import { rulesOf } from '../model/rules.ts';
import { refused } from '../model/result.ts';

export function daemonStarted(turn: Turn, leftAlone: ReadonlySet<string>): void {
  const { state } = turn;
  for (const call of [...state.calls.values()])
    complete(turn, call, refused({ reason: 'Interrupted', message: 'The daemon ended while the call was under way.' }));
  const isHeld = isDoubted(state);
  for (const sandbox of [...state.sandboxes.values()]) {
    const stream = sandboxStream(sandbox.id);
    if (leftAlone.has(stream) || (isHeld && isHalfMade(state, sandbox))) continue;
    decidingFor(stream, () => resumeSandbox(turn, sandbox));
  }
  for (const container of [...state.containers.values()]) {
    const stream = containerStream(container.id);
    if (leftAlone.has(stream) || (isHeld && isHalfMadeContainer(state, container))) continue;
    decidingFor(stream, () => resumeContainer(turn, container));
  }
  letCreationsWait(turn);
  wakeImages(turn);
  if (rulesOf(state) >= 3) recoverLater(turn, [...leftAlone]);
}

export function updateRuntimeConfig(turn: Turn, call: OpenCall, { podCidr }: RequestOf<'UpdateRuntimeConfig'>): void {
  emit(turn, NODE_STREAM, { type: 'node.configured', body: { podCidr } });
  complete(turn, call, OK);
}

/** Nothing of the node's state: who set it, and when, is all there is to keep. */
export function setLogLevel(turn: Turn, call: OpenCall): void {
  complete(turn, call, OK);
}

/** What was left alone since the daemon started, because the journal is doubted, is taken up now. */
export function acknowledgeJournal(turn: Turn, call: OpenCall): void {
  const { state } = turn;
  if (!isDoubted(state)) {
    const message = 'Nothing shows that the journal is not all that was written here: there is nothing to acknowledge.';
    return complete(turn, call, refused({ reason: 'WrongState', message }));
  }
  emit(turn, NODE_STREAM, { type: 'journal.acknowledged', body: {} });
  complete(turn, call, OK);
  for (const sandbox of [...state.sandboxes.values()])
    if (isHalfMade(state, sandbox)) resumeSandbox(turn, sandbox);
    else waitForClaimOfPod(turn, sandbox);
  for (const container of [...state.containers.values()])
    if (isHalfMadeContainer(state, container)) resumeContainer(turn, container);
    else waitForClaimOfContainer(turn, container);
  wakeImages(turn);
}

const isHalfMade = (state: NodeState, { phase, goal }: PodSandbox): boolean =>
  goal === 'undo' || (phase === 'creating' && mayBeLeft(state, goal));

const isHalfMadeContainer = (state: NodeState, container: Container): boolean =>
  container.goal === 'undo' || (!isCreated(container) && mayBeLeft(state, container.goal));

/** What somebody has asked to be stopped or removed goes on, however far it was made. */
const mayBeLeft = (state: NodeState, goal: PodSandbox['goal'] | Container['goal']): boolean =>
  goal === 'run' || rulesOf(state) < 11;

/** Those of which something is owed: their removal, or that they are on the disk. */
function wakeImages(turn: Turn): void {
  for (const image of turn.state.images.values())
    if (image.removing || image.unsynced !== undefined) wake(turn, imageStream(image.id));
}

/** The start itself says that the pod fell over; clients hear of it by a record of its own. */
function tellLost(turn: Turn, { id, phase, goal, sandboxer }: PodSandbox): void {
  const { state, input, stood } = turn;
  if (rulesOf(state) < 2 || phase === 'ready' || goal !== 'run' || !stood.sandboxes.has(id)) return;
  const rebooted = input.type === 'daemon.started' && input.body.rebooted;
  const message = rebooted ? REBOOTED : `${holderOf(sandboxer) ?? 'what pins its namespaces'} was found gone`;
  emit(turn, sandboxStream(id), { type: 'sandbox.lost', body: { message } });
}

/** A reboot ends all containers at once; how one ended otherwise its shim is asked for. */
function tellExited(turn: Turn, container: Container): void {
  const { id } = container;
  const exit = containerExitOf(container);
  if (rulesOf(turn.state) < 2 || exit === null || !turn.stood.containers.has(id)) return;
  const { exitStatus, finishedAtNs: exitedAtNs, reason, message } = exit;
  emit(turn, containerStream(id), { type: 'container.exited', body: { exitStatus, exitedAtNs, reason, message } });
}

function resumeSandbox(turn: Turn, sandbox: PodSandbox): void {
  const stream = sandboxStream(sandbox.id);
  tellLost(turn, sandbox);
  if (sandbox.owedFailure !== null) emit(turn, stream, { type: 'undo.retried', body: {} });
  if (sandbox.shimContact === 'unknown') request(turn, stream, { kind: 'ReconnectShim' });
  waitForClaimOfPod(turn, sandbox);
  wake(turn, stream);
}

function resumeContainer(turn: Turn, container: Container): void {
  const stream = containerStream(container.id);
  tellExited(turn, container);
  if (container.owedFailure !== null) emit(turn, stream, { type: 'undo.retried', body: {} });
  waitForClaimOfContainer(turn, container);
  wake(turn, stream);
}
