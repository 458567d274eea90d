/** Posts records to a receiver of OTLP over HTTP, and judges its answer (OTLP 1.x, "OTLP/HTTP Response"). Tries once. */
import { CliError, failure } from '../command.ts';
import { printable } from '../format.ts';

const POST_TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 65_536;
const WORDS_MAX = 200;

export interface Refusal {
  readonly count: number;
  /** The receiver's words for it; '' for none. */
  readonly words: string;
}

export type Posted =
  /** `refused`: records of it that the receiver will not have, and that must not be sent again; null: it has all. */
  | { readonly kind: 'taken'; readonly refused: Refusal | null }
  /** Another try may do better. */
  | { readonly kind: 'not taken'; readonly problem: string };

type JsonObject = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const objectIn = (text: string): JsonObject | null => {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
};

/** Whoever has taken records answers an ExportLogsServiceResponse, or nothing; a page of a proxy is neither. */
const judged = (text: string): Posted => {
  const answer = text.trim() === '' ? {} : objectIn(text);
  if (answer === null)
    return { kind: 'not taken', problem: 'its answer is no OTLP (no object in JSON), so it is no receiver of OTLP' };
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
      redirect: 'error',
      signal: AbortSignal.timeout(POST_TIMEOUT_MS),
    });
    if (response.ok) return judged(await textOf(response));
    await response.body?.cancel();
    const isFinal = response.status >= 400 && response.status < 500 && response.status !== 429;
    if (isFinal) throw failure(`${url} refused the records: HTTP status ${response.status}.`);
    return { kind: 'not taken', problem: `it answered HTTP status ${response.status}` };
  } catch (thrown) {
    if (thrown instanceof CliError) throw thrown;
    const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
    return { kind: 'not taken', problem: cause instanceof Error ? cause.message : String(cause) };
  }
};

/** What is said of records that a receiver will never have. */
export const refusalText = (url: string, { count, words }: Refusal): string => {
  const why = words === '' ? '' : `: ${printable(words.slice(0, WORDS_MAX))}`;
  return `${url} refused ${count} of the records, and must not be sent them again${why}`;
};
