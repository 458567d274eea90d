/** Asks the server: questions that it answers with JSON, and the stream of records. */
import type { ErrorAnswer } from './answers.ts';
import { createFrameReader, type Frame } from './frames.ts';

/** Browsers say that they were not answered by a TypeError, in words of their own. */
export const sentenceOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error);
  if (!(error instanceof TypeError)) return text;
  return `scribe ui does not answer: it has ended, or the way to it is broken (${text}).`;
};

export const reached = (path: string, signal?: AbortSignal): Promise<Response> =>
  fetch(path, signal === undefined ? {} : { signal });

/** Rejects with the server's sentence, or with what kept it from answering. */
export const ask = async <Answer>(path: string, query: Readonly<Record<string, string>> = {}, signal?: AbortSignal) => {
  const words = new URLSearchParams(query).toString();
  const response = await reached(words === '' ? path : `${path}?${words}`, signal);
  const answer = (await response.json()) as Answer | ErrorAnswer;
  if (!response.ok) throw new Error((answer as ErrorAnswer).error);
  return answer as Answer;
};

/** Frames from the one with this number on, and those that come. Resolves when the server has ended. */
const readFrames = async (
  from: number,
  signal: AbortSignal,
  onFrames: (frames: readonly Frame[]) => void,
): Promise<void> => {
  const { body } = await reached(`records?from=${from}`, signal);
  const read = createFrameReader();
  for await (const chunk of body ?? []) {
    const frames = read(chunk);
    if (frames.length > 0) onFrames(frames);
  }
};

const inSight = (): Promise<void> =>
  new Promise((resolve) => {
    if (!document.hidden) resolve();
    else document.addEventListener('visibilitychange', () => resolve(), { once: true });
  });

/**
 * Reads while the page is in sight: a browser has six connections to one server, and pages that nobody looks at must leave
 * them to others. Resolves when the server has ended.
 */
export const followFrames = async (onFrames: (frames: readonly Frame[]) => void): Promise<void> => {
  let count = 0;
  for (;;) {
    await inSight();
    const hidden = new AbortController();
    const leave = (): void => {
      if (document.hidden) hidden.abort();
    };
    document.addEventListener('visibilitychange', leave);
    try {
      await readFrames(count, hidden.signal, (frames) => {
        count += frames.length;
        onFrames(frames);
      });
      return;
    } catch (error) {
      if (!hidden.signal.aborted) throw error;
    } finally {
      document.removeEventListener('visibilitychange', leave);
    }
  }
};
