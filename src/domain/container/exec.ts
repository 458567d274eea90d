/**
 * Commands in a running container and sessions with it: ExecSync; Exec and Attach, which allow a session; and the
 * sessions themselves, which are calls of their own so that a record says who, what, how long and how much. Their bytes
 * are nowhere in here.
 */
import { openEffectsOn } from '../deciding/open-effects.ts';
import type { Failure } from '../model/errors.ts';
import type { OciArg } from '../model/oci.ts';
import { checkWords } from '../oci/checks.ts';
import { failureIn } from '../oci/refuse.ts';
import { type RequestOf, containerStream, type EffectEnded, type Intent } from '../model/records.ts';
import type { WantedStreams } from '../model/streams.ts';
import type { Container, OpenCall } from '../model/state.ts';
import { afterMs, complete, emit, ensureTimer, OK, request as requestEffects, type Turn } from '../deciding/turn.ts';
import { contactOf, isAskingShim, isUnanswered } from './contact.ts';
import { containerStateOf, isCreated, isRunning, notFound, runOf } from '../model/container-state.ts';
import { refused, succeeded } from '../model/result.ts';
import { rulesOf } from '../model/rules.ts';

/** A year: longer than anybody waits, and far from what a timer can hold. */
const MAX_TIMEOUT_S = 31_536_000n;

export function execSync(turn: Turn, call: OpenCall, request: RequestOf<'ExecSync'>): void {
  const { containerId, cmd, newId, timeoutSeconds } = request;
  const seconds = BigInt(timeoutSeconds);
  const timeoutMs = seconds === 0n ? null : Number(seconds > MAX_TIMEOUT_S ? MAX_TIMEOUT_S : seconds) * 1000;
  const failure =
    missing(turn, containerId) ??
    commandFailure(cmd) ??
    timeoutFailure(timeoutSeconds) ??
    notRunning(turn, containerId, COMMANDS);
  begin(turn, call, containerId, failure, { kind: 'RunExec', execId: newId, args: cmd, timeoutMs });
}

/** Allows a session: the streaming server makes the address of it. */
export function exec(turn: Turn, call: OpenCall, request: RequestOf<'Exec'>): void {
  const { containerId, cmd } = request;
  const failure =
    missing(turn, containerId) ??
    commandFailure(cmd) ??
    streamsFailure(request) ??
    notRunning(turn, containerId, COMMANDS);
  complete(turn, call, failure === null ? OK : refused(failure));
}

export function attach(turn: Turn, call: OpenCall, request: RequestOf<'Attach'>): void {
  const { containerId } = request;
  const failure = missing(turn, containerId) ?? streamsFailure(request) ?? notRunning(turn, containerId, CLIENTS);
  complete(turn, call, failure === null ? OK : refused(failure));
}

export function execSession(turn: Turn, call: OpenCall, request: RequestOf<'ExecSession'>): void {
  const { containerId, cmd: args, newId: execId, tty } = request;
  const failure = missing(turn, containerId) ?? notRunning(turn, containerId, COMMANDS);
  begin(turn, call, containerId, failure, { kind: 'StreamExec', execId, args, tty });
}

export function attachSession(turn: Turn, call: OpenCall, request: RequestOf<'AttachSession'>): void {
  const { containerId, newId: sessionId } = request;
  const failure = missing(turn, containerId) ?? notRunning(turn, containerId, CLIENTS);
  begin(turn, call, containerId, failure, { kind: 'StreamAttach', sessionId });
}

const COMMANDS = 'commands run only in a RUNNING one';
const CLIENTS = 'clients attach only to a RUNNING one';

function missing({ state }: Turn, containerId: string): Failure | null {
  const container = state.containers.get(containerId);
  return container !== undefined && isCreated(container) ? null : notFound(containerId);
}

function notRunning({ state }: Turn, containerId: string, rule: string): Failure | null {
  const container = state.containers.get(containerId);
  const found = container === undefined ? null : containerStateOf(container);
  if (found === 'CONTAINER_RUNNING') return null;
  const message = `Container ${containerId} is ${found ?? 'being made'}; ${rule}.`;
  return { reason: 'WrongState', message };
}

const commandFailure = (cmd: readonly OciArg[]): Failure | null =>
  cmd.length > 0
    ? failureIn(() => checkWords('cmd', cmd))
    : { reason: 'InvalidField', message: 'cmd is empty; name the program to run.' };

const timeoutFailure = (timeoutSeconds: string): Failure | null =>
  BigInt(timeoutSeconds) >= 0n
    ? null
    : {
        reason: 'InvalidField',
        message: `timeout is ${timeoutSeconds}; use 0 for no limit or a positive number of seconds.`,
      };

function streamsFailure({ tty, stdin, stdout, stderr }: WantedStreams): Failure | null {
  if (!stdin && !stdout && !stderr)
    return {
      reason: 'InvalidField',
      message: 'None of stdin, stdout and stderr is set; ask for at least one of them.',
    };
  if (tty && stderr)
    return {
      reason: 'InvalidField',
      message: 'tty and stderr are both set; a terminal has one output, so leave stderr out.',
    };
  return null;
}

function begin(turn: Turn, call: OpenCall, containerId: string, failure: Failure | null, intent: Intent): void {
  if (failure !== null) return complete(turn, call, refused(failure));
  const container = turn.state.containers.get(containerId);
  // Nobody speaks to the shim yet (C18): resumeExecs takes the call up again when it has answered, or will not.
  if (container === undefined || isAskingShim(turn.state, container)) return;
  if (call.detached) {
    const what = intent.kind === 'StreamAttach' ? 'session' : 'command';
    const message = `The caller went away before the ${what} began.`;
    return complete(turn, call, refused({ reason: 'Cancelled', message }));
  }
  emit(turn, containerStream(containerId), { type: 'effects.requested', body: { effects: [intent] } }, call.seq);
}

/** Commands and sessions that wait for the shim of this pod. */
export function resumeExecs(turn: Turn, podSandboxId: string): void {
  resumeExecsIn(turn, (id) => turn.state.containers.get(id)?.podSandboxId === podSandboxId);
}

/** Whatever the shim answers, there is no container any more: who waited for that answer is told so. */
export function refuseExecsOfRemoved(turn: Turn, containerId: string): void {
  resumeExecsIn(turn, (id) => id === containerId);
}

function resumeExecsIn(turn: Turn, isIn: (containerId: string) => boolean): void {
  const begun = new Set([...turn.state.effects.values()].map((effect) => effect.call));
  for (const call of [...turn.state.calls.values()]) {
    const { request } = call;
    if (!('containerId' in request) || begun.has(call.seq) || !isIn(request.containerId)) continue;
    if (request.method === 'ExecSync') execSync(turn, call, request);
    else if (request.method === 'ExecSession') execSession(turn, call, request);
    else if (request.method === 'AttachSession') attachSession(turn, call, request);
  }
}

const END_RETRY_MS = 5_000;

/** Ends what an earlier life of the daemon, or a shim that did not answer, left running; whoever began it was told so. */
export function endStaleExecs(turn: Turn, container: Container): void {
  const stream = containerStream(container.id);
  const ending = openEffectsOn(turn.state, stream).flatMap(({ intent }) =>
    intent.kind === 'EndExec' ? [intent.execId] : [],
  );
  const effects = (runOf(container)?.staleExecs ?? [])
    .filter((execId) => !ending.includes(execId))
    .map((execId): Intent => ({ kind: 'EndExec', execId }));
  if (effects.length > 0) requestEffects(turn, stream, ...effects);
}

/** What could not be ended is tried again, as long as there is a task that it may run in. */
export function afterEndExec(turn: Turn, containerId: string, failure: Failure | undefined): void {
  const container = turn.state.containers.get(containerId);
  const stream = containerStream(containerId);
  if (failure === undefined || container === undefined || !isRunning(container)) return;
  ensureTimer(turn, stream, 'retry', afterMs(turn, END_RETRY_MS));
}

/** Does so: at its shim, when that answers. Otherwise the shim's next answer leads to it. */
export function retryStaleExecs(turn: Turn, containerId: string): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined || !isRunning(container) || contactOf(turn.state, container) !== 'connected') return;
  endStaleExecs(turn, container);
}

/** A command or session has ended: its call is answered with how. One that may run all the same is ended later. */
export function afterExec(turn: Turn, containerId: string, outcome: ExecEnded, intent: Intent): void {
  answerExec(turn, outcome, intent);
  const { failure } = outcome;
  if (failure !== undefined && isUnanswered(failure) && rulesOf(turn.state) >= 6)
    afterEndExec(turn, containerId, failure);
}

type ExecEnded = Extract<EffectEnded, { kind: 'RunExec' | 'StreamExec' | 'StreamAttach' }>;

function answerExec(turn: Turn, outcome: ExecEnded, intent: Intent): void {
  const call = turn.ended === null || turn.ended.call === null ? undefined : turn.state.calls.get(turn.ended.call);
  if (call === undefined) return;
  const { result, failure } = outcome;
  if (result === undefined)
    return complete(
      turn,
      call,
      refused(failure ?? { reason: 'Bug', message: `${outcome.kind} ended without a result.` }),
    );
  if ('timedOut' in result && result.timedOut) {
    const timeoutMs = intent.kind === 'RunExec' ? (intent.timeoutMs ?? 0) : 0;
    const message = `The command did not end within ${timeoutMs} ms and was killed.`;
    return complete(turn, call, refused({ reason: 'TimedOut', message }));
  }
  const { stdoutBytes, stderrBytes } = result;
  complete(
    turn,
    call,
    succeeded({
      ...('exitStatus' in result ? { exitCode: result.exitStatus } : {}),
      ...('stdinBytes' in result ? { stdinBytes: result.stdinBytes } : {}),
      stdoutBytes,
      stderrBytes,
    }),
  );
}
