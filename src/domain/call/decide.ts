/** What follows from a call's arrival: it is refused when its ids can't be meant for one object, else decided. */
import { complete, type Turn } from '../deciding/turn.ts';
import type { Input, Sequenced } from '../model/records.ts';
import { refused } from '../model/result.ts';
import { decideRequest } from './decisions.ts';
import { requestIdFailure } from './ids.ts';

type CallReceived = Sequenced<Extract<Input, { type: 'call.received' }>>;

export function decideCall(turn: Turn, { seq }: CallReceived): void {
  const call = turn.state.calls.get(seq);
  if (call === undefined) return;
  const failure = requestIdFailure(turn.state, call.request);
  if (failure === null) decideRequest(turn, call);
  else complete(turn, call, refused(failure));
}
