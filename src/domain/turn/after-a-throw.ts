/**
 * What is done with an input whose turn threw, best way first: each asks for less than the one before. Every way is made
 * of inputs, so that a replay decides the same from the records. Decides only which; guarded-turns.ts tries them.
 */
import { type EffectEnded, type Input, NODE_STREAM, rpcOf } from '../model/records.ts';
import { knownHeadOf } from '../model/error-words.ts';
import { countsAsDone, failureOfTurn, ObjectStuckError } from '../deciding/turn-failed.ts';
import type { TurnFailed } from '../model/turn-failed.ts';

export interface Draft {
  readonly input: Input;
  readonly stream: string;
  readonly cause: number | null;
  readonly call: number | null;
}

/** What is done with an input whose turn threw. */
export interface Way {
  /** After the input was met. */
  readonly words: string;
  /** The first of these stands for the input; false: nothing does. */
  readonly takes: boolean;
  readonly handling: TurnFailed['handling'] | 'left alone';
  readonly drafts: (seq: number) => readonly Draft[];
}

/** What to try after the ways up to `last` threw too; `error` is what the newest try threw. */
export function nextWay(draft: Draft, error: unknown, last: Way | null): Way | null {
  if (draft.input.type === 'daemon.started' && error instanceof ObjectStuckError) {
    const around = leavingAlone(draft.input, last, error);
    if (around !== null) return around;
  }
  const ways = waysFor(draft, shown(error));
  const tried = ways.findIndex(({ handling }) => handling === last?.handling);
  return ways[tried + 1] ?? null;
}

type Started = Extract<Input, { type: 'daemon.started' }>;

/** One object that can't be decided about must not cost the others their recovery (C20). */
function leavingAlone(input: Started, last: Way | null, { stream, cause }: ObjectStuckError): Way | null {
  const [before] = last?.drafts(0) ?? [];
  const leftAlone = (before?.input as Started | undefined)?.body.leftAlone ?? [];
  if (leftAlone.some((object) => object.stream === stream)) return null;
  const body = { ...input.body, leftAlone: [...leftAlone, { stream, error: shown(cause) }] };
  return {
    words: `recovery passes over ${body.leftAlone.map((object) => object.stream).join(', ')}`,
    takes: true,
    handling: 'left alone',
    drafts: () => [{ input: { type: 'daemon.started', body }, stream: NODE_STREAM, cause: null, call: null }],
  };
}

function waysFor(draft: Draft, error: string): Way[] {
  const { input, stream, call } = draft;
  const failure = failureOfTurn(nameOf(input), error);
  const failed = (handling: TurnFailed['handling']): Input => ({
    type: 'turn.failed',
    body: {
      input: writable(input),
      ...(input.type === 'effect.ended' ? { effect: input.body.effect } : {}),
      error,
      handling,
    },
  });
  const alone = (handling: 'noted' | 'interrupted' | 'none', words: string): Way => ({
    words,
    takes: false,
    handling,
    // A call of which nothing else is recorded stands for itself, and is pruned so.
    drafts: (seq) => [{ ...draft, input: failed(handling), call: input.type === 'call.received' ? seq : call }],
  });
  const none = alone('none', 'it was only written down');
  const interrupted = alone('interrupted', 'it counts as cut short');
  switch (input.type) {
    case 'call.received': {
      const refused: Input = {
        ...input,
        body: { ...input.body, request: { method: 'Refused', rpc: rpcOf(input.body.request), failure } },
      };
      const drafts = (seq: number): Draft[] => [
        { ...draft, input: refused },
        { input: failed('refused'), stream, cause: seq, call: seq },
      ];
      return [{ words: 'the call was refused', takes: true, handling: 'refused', drafts }, none];
    }
    case 'effect.ended': {
      const noted = alone('noted', 'it was noted');
      if (input.body.failure !== undefined || countsAsDone(input.body.kind)) return [noted, interrupted, none];
      const { effect, kind } = input.body;
      const drafts = (seq: number): Draft[] => [
        // Of its kind, but the compiler can't see that without the result.
        { ...draft, input: { type: 'effect.ended', body: { effect, kind, failure } as EffectEnded } },
        { input: failed('failed'), stream, cause: seq, call },
      ];
      return [{ words: 'it counts as failed', takes: true, handling: 'failed', drafts }, noted, interrupted, none];
    }
    case 'daemon.started':
      // Without its facts there is no daemon.
      return [alone('noted', 'objects are recovered one by one')];
    case 'task.exited':
    case 'shim.lost':
      return [alone('noted', 'it was noted'), interrupted, none];
    default:
      return [alone('noted', 'it was noted'), none];
  }
}

const thrownBy = (error: unknown): unknown => (error instanceof ObjectStuckError ? error.cause : error);

/** For the log and for whoever asks how the daemon does: less than the record of it has. */
export const told = (error: unknown): string => knownHeadOf(thrownBy(error));

/** For the journal, which has what clients asked for anyway. */
const shown = (error: unknown): string => {
  const cause = thrownBy(error);
  const words = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
  return words.slice(0, ERROR_CHARACTERS_MAX);
};

const ERROR_CHARACTERS_MAX = 1_000;

export const nameOf = (input: Input): string => {
  switch (input.type) {
    case 'call.received':
      return `a call of ${rpcOf(input.body.request)}`;
    case 'effect.ended':
      return `the end of ${input.body.kind}`;
    default:
      return input.type;
  }
};

/** Of a longer input only the type is written down: the record that tells of it must fit. */
const INPUT_CHARACTERS_MAX = 1024 * 1024;

function writable({ type, body }: Input): TurnFailed['input'] {
  try {
    return JSON.stringify(body).length > INPUT_CHARACTERS_MAX ? { type } : { type, body };
  } catch {
    return { type };
  }
}
