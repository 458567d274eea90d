/** Which effects were requested and have no outcome yet: folded from effects.requested, effect.ended and the ends of objects. */
import type { TimerPurpose } from '../model/effects.ts';
import type { Int64 } from '../model/cri.ts';
import { effectId, type RecordType, type Sequenced } from '../model/records.ts';
import type { NodeState, OpenEffect } from '../model/state.ts';

export function evolveEffects(state: NodeState, record: Sequenced): void {
  switch (record.type) {
    case 'effects.requested':
      record.body.effects.forEach((intent, index) => {
        const id = effectId(record.seq, index);
        state.effects.set(id, { id, stream: record.stream, intent, call: record.call });
      });
      return;
    case 'effect.ended':
      state.effects.delete(record.body.effect);
      return;
    case 'daemon.started':
      // Whatever was under way ended with the daemon; what it left is in doubt and asked for anew.
      state.effects.clear();
      return;
    default:
      forgetTimers(state, record);
  }
}

/** Timers whose purpose is fulfilled by another record need not fire. */
const fulfilledBy: { readonly [T in RecordType]?: readonly TimerPurpose[] } = {
  'container.exited': ['grace', 'exit'],
  'task.exited': ['exit'],
  'sandbox.claimed': ['claim'],
  'container.claimed': ['claim'],
  'undo.retried': ['retry'],
  'container.starting': ['claim'],
  'sandbox.stopping': ['claim'],
  'sandbox.removing': ['claim'],
  'container.removing': ['claim'],
  'sandbox.removed': ['exit', 'claim', 'retry'],
  'container.removed': ['grace', 'exit', 'claim', 'retry'],
  'image.removed': ['retry'],
};

function forgetTimers(state: NodeState, record: Sequenced): void {
  const purposes = fulfilledBy[record.type];
  if (purposes === undefined) return;
  for (const [id, { stream, intent }] of state.effects) {
    if (stream === record.stream && intent.kind === 'WaitUntil' && purposes.includes(intent.purpose))
      state.effects.delete(id);
  }
}

/** The open effects on one object. */
export function openEffectsOn(state: NodeState, stream: string): OpenEffect[] {
  const open: OpenEffect[] = [];
  for (const effect of state.effects.values()) if (effect.stream === stream) open.push(effect);
  return open;
}

/** With `dueAtNs`: one that fires at exactly that time. */
export function hasTimer(state: NodeState, stream: string, purpose: TimerPurpose, dueAtNs?: Int64): boolean {
  return openEffectsOn(state, stream).some(
    ({ intent }) =>
      intent.kind === 'WaitUntil' &&
      intent.purpose === purpose &&
      (dueAtNs === undefined || intent.dueAtNs === dueAtNs),
  );
}
