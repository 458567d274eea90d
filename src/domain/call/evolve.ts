/** Which calls wait for an answer. */
import type { Sequenced } from '../model/records.ts';
import type { NodeState } from '../model/state.ts';
import { targetOf } from './catalogue.ts';

export function evolveCall(state: NodeState, record: Sequenced): void {
  switch (record.type) {
    case 'call.received':
      state.calls.set(record.seq, {
        seq: record.seq,
        stream: record.stream,
        request: record.body.request,
        target: targetOf(record.body.request),
        monoNs: String(record.monoNs),
        detached: false,
      });
      return;
    case 'call.joined':
      return change(state, record.call, { target: record.body.target });
    case 'call.detached':
      return change(state, record.body.received, { detached: true });
    case 'call.completed':
      return endCall(state, record);
    default:
  }
}

/** Which call it ends stands in its columns: what it was answered changes nothing. */
export function endCall(state: NodeState, { call }: Pick<Sequenced, 'call'>): void {
  if (call !== null) state.calls.delete(call);
}

function change(state: NodeState, seq: number | null, part: { target?: string; detached?: boolean }): void {
  if (seq === null) return;
  const call = state.calls.get(seq);
  if (call !== undefined) state.calls.set(seq, { ...call, ...part });
}
