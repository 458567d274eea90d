/**
 * Recovery, as decisions (C19): what the last life left in doubt is undone, finished or asked about.
 * Assumptions: (1) nothing of the last life is performing effects any more; (2) evolve has marked what was under way
 * as failed, and shims as not asked; (3) pids in deadTasks are dead for certain.
 */
import { sandboxStream, containerStream, imageStream } from '../records.ts';
import { holderOf } from '../pod-sandbox/sandboxer.ts';
import type { Container, PodSandbox } from '../state.ts';
import { decidingFor } from '../turn-failed.ts';
import { afterMs, CLAIM_MS, complete, emit, request, setTimer, type Turn, wake } from '../turn.ts';
import { REBOOTED } from './evolve.ts';
import { rulesOf } from './rules.ts';

export function daemonStarted(turn: Turn, leftAlone: ReadonlySet<string>): void {
  const { state } = turn;
  for (const call of [...state.calls.values()])
    complete(turn, call, {
      ok: false,
      failure: { reason: 'Interrupted', message: 'The daemon ended while the call was under way.' },
    });
  for (const sandbox of [...state.sandboxes.values()]) {
    const stream = sandboxStream(sandbox.id);
    if (!leftAlone.has(stream)) decidingFor(stream, () => resumeSandbox(turn, sandbox));
  }
  for (const container of [...state.containers.values()]) {
    const stream = containerStream(container.id);
    if (!leftAlone.has(stream)) decidingFor(stream, () => resumeContainer(turn, container));
  }
  for (const image of state.images.values()) if (image.removing) wake(turn, imageStream(image.id));
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
function tellExited(turn: Turn, { id, exit }: Container): void {
  if (rulesOf(turn.state) < 2 || exit === null || !turn.stood.containers.has(id)) return;
  const { exitStatus, finishedAtNs: exitedAtNs, reason, message } = exit;
  emit(turn, containerStream(id), { type: 'container.exited', body: { exitStatus, exitedAtNs, reason, message } });
}

function resumeSandbox(turn: Turn, sandbox: PodSandbox): void {
  const stream = sandboxStream(sandbox.id);
  tellLost(turn, sandbox);
  if (sandbox.owedFailure !== null) emit(turn, stream, { type: 'undo.retried', body: {} });
  if (sandbox.shimContact === 'unknown') request(turn, stream, { kind: 'ReconnectShim' });
  // Also of one that is NOTREADY: nobody else will take down what nobody asked for.
  const isMade = rulesOf(turn.state) < 2 ? sandbox.phase === 'ready' : sandbox.phase !== 'creating';
  if (sandbox.goal === 'run' && isMade && !sandbox.claimed) setTimer(turn, stream, 'claim', afterMs(turn, CLAIM_MS));
  wake(turn, stream);
}

function resumeContainer(turn: Turn, container: Container): void {
  const stream = containerStream(container.id);
  tellExited(turn, container);
  if (container.owedFailure !== null) emit(turn, stream, { type: 'undo.retried', body: {} });
  if (
    container.goal === 'run' &&
    container.created &&
    !container.claimed &&
    !container.starting &&
    container.exit === null
  )
    setTimer(turn, stream, 'claim', afterMs(turn, CLAIM_MS));
  wake(turn, stream);
}
