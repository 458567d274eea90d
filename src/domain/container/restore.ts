/** CreateContainer with a checkpoint for an image: decided once more when what the archive says is known. */
import type { EffectEnded } from '../model/records.ts';
import { refused } from '../model/result.ts';
import { callBehind, complete, type Turn } from '../deciding/turn.ts';
import { createContainer } from './decide.ts';

export function afterReadCheckpoint(
  turn: Turn,
  { result, failure }: Extract<EffectEnded, { kind: 'ReadCheckpoint' }>,
): void {
  const call = callBehind(turn);
  if (call?.request.method !== 'CreateContainer') return;
  if (result !== undefined) return createContainer(turn, call, call.request, result.image);
  if (failure !== undefined) complete(turn, call, refused(failure));
}
