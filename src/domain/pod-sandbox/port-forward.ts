/**
 * Forwarded ports: PortForward, which allows them, and each connection that a client makes then, a call of its own so
 * that a record says to which port, how long and how much.
 */
import type { Failure } from '../model/errors.ts';
import { type RequestOf, type EffectEnded, sandboxStream } from '../model/records.ts';
import type { OpenCall } from '../model/state.ts';
import { refused, succeeded } from '../model/result.ts';
import { callBehind, complete, emit, OK, type Turn } from '../deciding/turn.ts';

const PORT_MAX = 65_535;

/** Clients may name their ports only when they connect: none is no mistake. */
export function portForward(turn: Turn, call: OpenCall, request: RequestOf<'PortForward'>): void {
  const { podSandboxId, ports } = request;
  const failure = ports.reduce<Failure | null>((found, port) => found ?? portFailure(port), null);
  const refusal = missing(turn, podSandboxId) ?? failure ?? notReady(turn, podSandboxId);
  complete(turn, call, refusal === null ? OK : refused(refusal));
}

export function portForwardSession(turn: Turn, call: OpenCall, request: RequestOf<'PortForwardSession'>): void {
  const { podSandboxId, port, newId: sessionId } = request;
  const failure = missing(turn, podSandboxId) ?? portFailure(port) ?? notReady(turn, podSandboxId);
  if (failure !== null) return complete(turn, call, refused(failure));
  const effects = [{ kind: 'StreamPort', sessionId, port }] as const;
  emit(turn, sandboxStream(podSandboxId), { type: 'effects.requested', body: { effects } }, call.seq);
}

function missing({ state }: Turn, podSandboxId: string): Failure | null {
  const sandbox = state.sandboxes.get(podSandboxId);
  if (sandbox !== undefined && sandbox.phase !== 'creating') return null;
  return { reason: 'PodSandboxNotFound', message: `pod_sandbox_id ${podSandboxId} names no pod sandbox.` };
}

function notReady({ state }: Turn, podSandboxId: string): Failure | null {
  const sandbox = state.sandboxes.get(podSandboxId);
  if (sandbox?.goal === 'run' && sandbox.phase === 'ready') return null;
  return {
    reason: 'WrongState',
    message: `Pod sandbox ${podSandboxId} is not READY; ports are forwarded to a READY one only.`,
  };
}

const portFailure = (port: number): Failure | null =>
  Number.isInteger(port) && port > 0 && port <= PORT_MAX
    ? null
    : { reason: 'InvalidField', message: `port ${port} is no TCP port; use 1 to ${PORT_MAX}.` };

/** A connection has ended. */
export function afterStreamPort(turn: Turn, { result, failure }: Extract<EffectEnded, { kind: 'StreamPort' }>): void {
  const call = callBehind(turn);
  if (call === undefined) return;
  if (result !== undefined) return complete(turn, call, succeeded(result));
  const unknown: Failure = { reason: 'Bug', message: 'StreamPort ended without a result.' };
  complete(turn, call, refused(failure ?? unknown));
}
