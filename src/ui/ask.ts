/** Asks the server: questions that it answers with JSON, and the stream of records. */
import type { ErrorAnswer } from './answers.ts';
import { createFrameReader, type Frame } from './frames.ts';

/** Rejects with the server's sentence, or with what kept it from answering. */
export const ask = async <Answer>(path: string, query: Readonly<Record<string, string>> = {}, signal?: AbortSignal) => {
  const words = new URLSearchParams(query).toString();
  const response = await fetch(words === '' ? path : `${path}?${words}`, signal === undefined ? {} : { signal });
  const answer = (await response.json()) as Answer | ErrorAnswer;
  if (!response.ok) throw new Error((answer as ErrorAnswer).error);
  return answer as Answer;
};

/** Every frame, and those that come as long as the server lives. Resolves when it has ended. */
export const readFrames = async (onFrames: (frames: readonly Frame[]) => void): Promise<void> => {
  const { body } = await fetch('records');
  if (body === null) return;
  const read = createFrameReader();
  for await (const chunk of body) {
    const frames = read(chunk);
    if (frames.length > 0) onFrames(frames);
  }
};
