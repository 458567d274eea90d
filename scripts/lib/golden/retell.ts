/**
 * Tells turns of a journal anew, as if they had been all that happened: records are numbered from 1, what they say is changed by
 * whoever shrinks or redacts, and what follows from each input is what is decided on it. It has to be what was recorded, but for
 * numbers and for what is redacted; where it already was not (a mistake that the journal shows), what was recorded stays.
 */
import type { Event, Input, Sequenced } from '../../../src/domain/model/records.ts';
import { copyState, initialState } from '../../../src/domain/model/state.ts';
import { decide } from '../../../src/domain/turn/decide.ts';
import { evolve } from '../../../src/domain/turn/evolve.ts';
import { saysTheSame } from '../../../src/domain/turn/redecide.ts';
import { requestsInTurn } from '../../../src/engine/made-requests.ts';
import { requestDigest } from '../../../src/engine/request-digest.ts';
import { digestOf } from '../../../test/support/redecided.ts';
import type { Turn } from './turns.ts';

/** Where the journal is decided otherwise today, by the numbers that it has. */
export interface Known {
  /** Inputs on which something else is decided today than was recorded. */
  readonly differing: ReadonlySet<number>;
  /** Effects whose requests are other ones today. */
  readonly otherRequests: ReadonlySet<string>;
  /** The newest input, on which the daemon could not decide, with what is decided on it today; null: it could on all. */
  readonly undecided: { readonly seq: number; readonly today: readonly Sequenced<Event>[] | null } | null;
}

export interface Told {
  readonly records: readonly Sequenced[];
  /** The input, by the number that it had, on which something else is decided now; null: there is none. */
  readonly otherwise: number | null;
}

export interface Telling {
  readonly known: Known;
  /** A record as it is to be told. */
  readonly tell: <R extends Sequenced>(record: R) => R;
  /** Whether two records say the same, as far as one can tell of what is told. */
  readonly isSame: (told: Sequenced, decided: Sequenced) => boolean;
}

export const AS_IT_WAS: Pick<Telling, 'tell' | 'isSame'> = { tell: (record) => record, isSame: saysTheSame };

export const retold = (turns: readonly Turn[], { known, tell, isSame }: Telling): Told => {
  const state = initialState();
  const records: Sequenced[] = [];
  const numbers = new Map<number, number>();
  const requests = new Map<string, string>();
  const requestsOf = requestsInTurn();
  const next = (): number => records.length + 1;
  const renumber = <R extends Sequenced>(record: R, seq: number): R => renumbered(tell(record), seq, numbers);

  for (const { input, events } of turns) {
    const seq = next();
    numbers.set(input.seq, seq);
    const told = withDigest(renumber(input, seq), input, known, requests);
    const { undecided } = known;
    const following = undecided?.seq === input.seq ? undecided.today : events;
    for (const [index, event] of (following ?? []).entries()) numbers.set(event.seq, seq + 1 + index);
    const wanted = following?.map((event, index) => renumber(event, seq + 1 + index)) ?? null;
    const decided = decidedOn(state, told);
    const isKnown = known.differing.has(input.seq) && undecided?.seq !== input.seq;
    if (!isKnown && !areSame(wanted, decided, isSame)) return { records, otherwise: input.seq };
    const after = (isKnown ? wanted : decided) ?? [];
    for (const record of [told, ...after]) {
      records.push(record);
      evolve(state, record);
    }
    for (const { id, request } of requestsOf(told, after, state))
      if (request.ok) requests.set(id, requestDigest(request.value, digestOf));
  }
  return { records, otherwise: null };
};

/** null: deciding throws. */
const decidedOn = (
  state: ReturnType<typeof initialState>,
  input: Sequenced<Input>,
): readonly Sequenced<Event>[] | null => {
  try {
    return decide(copyState(state), input);
  } catch {
    return null;
  }
};

const areSame = (
  wanted: readonly Sequenced[] | null,
  decided: readonly Sequenced[] | null,
  isSame: Telling['isSame'],
): boolean => {
  if (wanted === null || decided === null) return wanted === decided;
  return (
    wanted.length === decided.length &&
    wanted.every((record, index) => {
      const other = decided[index];
      return other !== undefined && isSame(record, other);
    })
  );
};

const EFFECT_ID = /^(\d+)\.(\d+)$/;

/** Numbers of records are in columns, in ids of effects, and in `received` of a call.detached. */
const renumbered = <R extends Sequenced>(record: R, seq: number, numbers: ReadonlyMap<number, number>): R => {
  const numberOf = (old: number | null): number | null => (old === null ? null : (numbers.get(old) ?? null));
  const inside = (value: unknown, key: string): unknown => {
    if (key === 'effect' && typeof value === 'string') {
      const [, asked, index] = EFFECT_ID.exec(value) ?? [];
      return asked === undefined ? value : `${numberOf(Number(asked)) ?? 0}.${index}`;
    }
    if (key === 'received' && typeof value === 'number') return numberOf(value) ?? 0;
    if (Array.isArray(value)) return value.map((item) => inside(item, ''));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inside(inner, name)]));
  };
  const body = inside(record.body, '') as R['body'];
  return { ...record, seq, cause: numberOf(record.cause), call: numberOf(record.call), body };
};

/** The request is another one once it is redacted: where it was the one that is made today, it still is. */
const withDigest = (
  told: Sequenced<Input>,
  { type, body }: Sequenced<Input>,
  { otherRequests }: Known,
  requests: ReadonlyMap<string, string>,
): Sequenced<Input> => {
  if (told.type !== 'effect.ended' || type !== 'effect.ended' || body.request === undefined) return told;
  const request = otherRequests.has(body.effect) ? body.request : requests.get(told.body.effect);
  return request === undefined ? told : { ...told, body: { ...told.body, request } };
};
