/**
 * All that the engine does with inputs but for time and the world, done again: decisions, and the requests of the
 * effects that they let out, held against what was recorded. Performs nothing and writes nothing.
 */
import { aboutDecision, type Difference, differencesOf } from '../domain/turn/differences.ts';
import { type RedecideOptions, type Redecision, redecide } from '../domain/turn/redecide.ts';
import type { Effect } from '../domain/model/effects.ts';
import type { Sequenced } from '../domain/model/records.ts';
import { type MadeRequest, requestsInTurn } from './made-requests.ts';
import type { DigestOf } from './ports.ts';
import { requestDigest } from './request-digest.ts';

export interface ReplayOptions extends RedecideOptions {
  /** As the daemon had it; absent: requests of effects are not made, nor compared. */
  readonly digestOf?: DigestOf;
}

export interface Replayed extends Redecision {
  /** Those of a request's come with the decision that its outcome was recorded for. */
  readonly differences: readonly Difference[];
  /** Requests that were compared. */
  readonly requestsChecked: number;
  /** Those that are made after this decision; none where they are not to be made. */
  readonly requests: readonly MadeRequest[];
}

export function* replay(
  records: Iterable<Sequenced>,
  { digestOf, ...options }: ReplayOptions = {},
): Generator<Replayed> {
  /** Those whose outcome has not been met yet. */
  const made = new Map<string, MadeRequest>();
  const requestsOf = requestsInTurn();
  for (const redecision of redecide(records, options)) {
    const differences = differencesOf(redecision);
    if (digestOf === undefined) {
      yield { ...redecision, differences, requestsChecked: 0, requests: [] };
      continue;
    }
    const request = requestCheck(redecision.input, made, digestOf);
    const requests = requestsOf(redecision.input, redecision.recorded, redecision.state);
    for (const one of requests) if (one.kind !== 'WaitUntil') made.set(one.id, one);
    yield {
      ...redecision,
      differences: request?.difference ? [...differences, request.difference] : differences,
      requestsChecked: request === null ? 0 : 1,
      requests,
    };
  }
}

/** null: there is nothing to compare. */
function requestCheck(
  input: Redecision['input'],
  made: Map<string, MadeRequest>,
  digestOf: DigestOf,
): { readonly difference: Difference | null } | null {
  // What was under way then has no outcome any more.
  if (input.type === 'daemon.started') made.clear();
  if (input.type !== 'effect.ended') return null;
  const { effect, kind, request: expected } = input.body;
  const known = made.get(effect);
  made.delete(effect);
  // Asked for before the first record that is there.
  if (expected === undefined || known === undefined) return null;
  const { request: actual, asked, by } = known;
  if (actual.ok && requestDigest(actual.value, digestOf) === expected) return { difference: null };
  const { seq, stream, type } = asked;
  const index = Number(effect.slice(effect.indexOf('.') + 1));
  return {
    difference: {
      kind: 'request',
      seq,
      stream,
      type,
      ...aboutDecision(by),
      expected: { kind, digest: expected },
      actual: actual.ok
        ? { kind, digest: requestDigest(actual.value, digestOf), request: actual.value satisfies Effect }
        : { kind, failure: actual.failure },
      path: `body.effects[${index}]`,
    },
  };
}
