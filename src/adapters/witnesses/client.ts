/**
 * Asks a witness to cosign a checkpoint (c2sp.org/tlog-witness, add-checkpoint over HTTP). Writes the request and reads the
 * answer; knows neither trees nor signatures, and does not try again.
 */
import { messageOf } from '../../domain/model/errors.ts';

/** What a witness is shown: a checkpoint, and that it contains the one that it cosigned last. */
export interface Submission {
  /** Leaves of that one; 0: none. */
  readonly oldSize: number;
  readonly proof: readonly Uint8Array[];
  /** The signed note. */
  readonly checkpoint: string;
}

export type Answer =
  /** Lines of signatures, as a note has them. */
  | { readonly kind: 'cosigned'; readonly lines: string }
  /** The checkpoint that it cosigned last has so many leaves. */
  | { readonly kind: 'otherSize'; readonly size: number }
  /** It is another tree than the one that it cosigned: one of the two is forged. */
  | { readonly kind: 'forked' }
  /** It does not know the log or its key, or not the request. */
  | { readonly kind: 'refused'; readonly why: string };

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 16_384;
const WHY_CHARS_MAX = 200;
const CONFLICT = 409;
const UNPROCESSABLE = 422;

const requestText = ({ oldSize, proof, checkpoint }: Submission): string =>
  [`old ${oldSize}`, ...proof.map((hash) => Buffer.from(hash).toString('base64')), '', checkpoint].join('\n');

/** No more than a bound is read of what it says, however much that is. */
const textOf = async (body: ReadableStream<Uint8Array> | null): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let readBytes = 0;
  // Leaving the loop ends the connection.
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    readBytes += chunk.length;
    if (readBytes >= ANSWER_BYTES_MAX) break;
  }
  return Buffer.concat(chunks).toString('utf8', 0, ANSWER_BYTES_MAX);
};

/** Rejects when the witness cannot be reached or fails itself. */
export const addCheckpoint = async (url: string, submission: Submission, signal: AbortSignal): Promise<Answer> => {
  const response = await fetch(`${url.replace(/\/+$/, '')}/add-checkpoint`, {
    method: 'POST',
    body: requestText(submission),
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  }).catch((error: unknown): never => {
    // fetch itself says only that it failed.
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new Error(`${url} cannot be reached: ${messageOf(cause)}`, { cause: error });
  });
  const text = await textOf(response.body);
  if (response.ok) return { kind: 'cosigned', lines: text };
  if (response.status === CONFLICT) {
    const [, size] = /^(0|[1-9]\d{0,14})\n?$/.exec(text) ?? [];
    return size === undefined ? { kind: 'forked' } : { kind: 'otherSize', size: Number(size) };
  }
  if (response.status === UNPROCESSABLE) return { kind: 'forked' };
  const why = `HTTP status ${response.status}: ${text.trim().slice(0, WHY_CHARS_MAX)}`;
  if (response.status >= 400 && response.status < 500) return { kind: 'refused', why };
  throw new Error(why);
};
