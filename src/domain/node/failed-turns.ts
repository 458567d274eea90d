/**
 * The least that follows from an input whose own turn threw: how a task ended is shown, and nobody waits for what will
 * not come. Must stay so plain that it does not meet the same bug: no process manager runs.
 */
import type { TaskExit } from '../tasks.ts';
import { writeExit } from '../container/process.ts';
import type { Failure } from '../errors.ts';
import { markLost } from '../pod-sandbox/process.ts';
import { type Input, type InputType, type Sequenced, subjectOf } from '../records.ts';
import { failureOfTurn } from '../turn-failed.ts';
import { callBehind, complete, type Turn } from '../turn.ts';

type Failed = Sequenced<Extract<Input, { type: 'turn.failed' }>>;

export function afterFailedTurn(turn: Turn, { stream, body }: Failed): void {
  const { handling, input, error } = body;
  if (handling === 'refused' || handling === 'failed') return;
  const failure = failureOfTurn(input.type, error);
  switch (input.type as InputType) {
    case 'daemon.started':
      for (const call of [...turn.state.calls.values()]) complete(turn, call, { ok: false, failure });
      return;
    case 'task.exited':
      if (handling === 'noted') showExit(turn, stream, (input.body as { readonly exit: TaskExit }).exit);
      return tellWaiting(turn, stream, failure);
    case 'effect.ended':
    case 'shim.lost':
      return tellWaiting(turn, stream, failure);
    default:
      // Nobody waits for it.
      return;
  }
}

function showExit(turn: Turn, stream: string, exit: TaskExit): void {
  const { kind, id } = subjectOf(stream);
  if (kind === 'container') writeExit(turn, id, exit);
  else markLost(turn, id, `it ended with status ${exit.exitStatus}`);
}

/** Whoever waits for this object, or for the same thing as the call behind the effect, would wait for ever. */
function tellWaiting(turn: Turn, stream: string, failure: Failure): void {
  const behind = callBehind(turn);
  for (const call of [...turn.state.calls.values()]) {
    const waits = call === behind || call.target === stream || (call.target !== '' && call.target === behind?.target);
    if (waits) complete(turn, call, { ok: false, failure });
  }
}
