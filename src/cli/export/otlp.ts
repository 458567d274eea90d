/** Posts records to a receiver of OTLP over HTTP, and judges its answer (OTLP 1.x, "OTLP/HTTP Response"). Tries once. */
import { isObject, type JsonObject } from '../../domain/values/json.ts';
import { CliError, failure } from '../command.ts';
import { retryAfterMsIn } from '../../platform/rpc/retry.ts';
import { printable } from '../format.ts';

const POST_TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 65_536;
const WORDS_MAX = 200;
/** Whoever names a longer wait is asked again before that. */
const WAIT_MS_MAX = 60_000;

export interface Refusal {
  readonly count: number;
  /** The receiver's words for it; '' for none. */
  readonly words: string;
}

export type Posted =
  /** `refused`: records of it that the receiver will not have, and that must not be sent again; null: it has all. */
  | { readonly kind: 'taken'; readonly refused: Refusal | null }
  /** Another try may do better, after so long if the receiver has said; 0: it has not. */
  | { readonly kind: 'not taken'; readonly problem: string; readonly afterMs: number };

const objectIn = (text: string): JsonObject | null => {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
};

const notTaken = (problem: string, afterMs = 0): Posted => ({ kind: 'not taken', problem, afterMs });

const isRedirect = (status: number): boolean => status >= 300 && status < 400;
const isFinal = (status: number): boolean => status >= 400 && status < 500 && status !== 429;

/** Whoever has taken records answers an ExportLogsServiceResponse, or nothing; a page of a proxy is neither. */
const judged = (text: string): Posted => {
  const answer = text.trim() === '' ? {} : objectIn(text);
  if (answer === null) return notTaken('its answer is no OTLP (no object in JSON), so it is no receiver of OTLP');
  const partial = isObject(answer['partialSuccess']) ? answer['partialSuccess'] : {};
  const count = Number(partial['rejectedLogRecords'] ?? 0);
  const words = partial['errorMessage'];
  if (!(count > 0)) return { kind: 'taken', refused: null };
  return { kind: 'taken', refused: { count, words: typeof words === 'string' ? words : '' } };
};

/** As much of it as an answer of OTLP may have. */
const textOf = async ({ body }: Response): Promise<string> => {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.length > ANSWER_BYTES_MAX) break;
  }
  return text;
};

/** Throws for an answer that another try will not change. */
export const post = async (url: string, body: string): Promise<Posted> => {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      // Records go where the operator sends them, and nowhere else.
      redirect: 'manual',
      signal: AbortSignal.timeout(POST_TIMEOUT_MS),
    });
    if (response.ok) return judged(await textOf(response));
    await response.body?.cancel();
    const { status } = response;
    if (isRedirect(status))
      throw failure(`${url} sends elsewhere (HTTP status ${status}): name the receiver's own address as --endpoint.`);
    if (isFinal(status)) throw failure(`${url} refused the records: HTTP status ${status}.`);
    return notTaken(
      `it answered HTTP status ${status}`,
      Math.min(retryAfterMsIn(response.headers.get('retry-after') ?? ''), WAIT_MS_MAX),
    );
  } catch (thrown) {
    if (thrown instanceof CliError) throw thrown;
    const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
    return notTaken(cause instanceof Error ? cause.message : String(cause));
  }
};

/** What is said of records that a receiver will never have. */
export const refusalText = (url: string, { count, words }: Refusal): string => {
  const why = words === '' ? '' : `: ${printable(words.slice(0, WORDS_MAX))}`;
  return `${url} refused ${count} of the records, and must not be sent them again${why}`;
};
