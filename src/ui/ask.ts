/** Asks the server, and says in words why it did not answer. */
import type { ErrorAnswer } from './answers.ts';

/** Another server answers under this address, which does not know its token: it was made anew when that started. */
export class Refused extends Error {}

/** scribe ui has said that it ends. */
class Ended extends Error {}

const UNAUTHORIZED = 401;
/** Of servers in general, which have no words of ours for it. */
const TOO_LONG = [414, 431];

/** Over which all is asked. */
let way = new AbortController();

/** Ends all that is under way as unanswered: connections that are half open would never say so themselves. */
export const endUnanswered = (why: string): void => {
  way.abort(new TypeError(why));
  way = new AbortController();
};

/** The same, and for all that is asked from now on. */
export const endForGood = (): void =>
  way.abort(new Ended('scribe ui has ended: what is not here already can be asked of another one.'));

/** Nobody answered: what was asked may be right. */
export const isUnanswered = (error: unknown): boolean =>
  [TypeError, Refused, Ended].some((kind) => error instanceof kind);

/** Browsers say that they were not answered by a TypeError, in words of their own. */
export const sentenceOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error);
  if (!(error instanceof TypeError)) return text;
  return `scribe ui does not answer: it has ended, or the way to it is broken (${text}).`;
};

/** The server's answer, whatever it says; rejects where there is none. */
export const reached = async (path: string, signal?: AbortSignal): Promise<Response> => {
  const signals = [way.signal, ...(signal === undefined ? [] : [signal])];
  const response = await fetch(path, { signal: AbortSignal.any(signals) });
  if (response.status === UNAUTHORIZED)
    throw new Refused('this scribe ui has ended, and another one has its port. Open the address that it printed.');
  return response;
};

/** What the server says where it does not answer what was asked. */
export const refusalOf = async (response: Response): Promise<Error> => {
  if (TOO_LONG.includes(response.status))
    return new Error('That is too long to be asked: the address has no room for it.');
  return new Error(((await response.json()) as ErrorAnswer).error);
};

/** Rejects with the server's sentence, or with what kept it from answering. */
export const ask = async <Answer>(path: string, query: Readonly<Record<string, string>> = {}, signal?: AbortSignal) => {
  const words = new URLSearchParams(query).toString();
  const response = await reached(words === '' ? path : `${path}?${words}`, signal);
  if (!response.ok) throw await refusalOf(response);
  return (await response.json()) as Answer;
};
