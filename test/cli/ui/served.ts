/** The page's server over a journal, in this process, for tests that ask it what a browser would. */
import { openFeed } from '../../../src/cli/ui/feed.ts';
import { newToken } from '../../../src/cli/ui/guard.ts';
import { openQuestions } from '../../../src/cli/ui/questions.ts';
import { findMatches } from '../../../src/cli/ui/matches.ts';
import { type ServerParts, startServer } from '../../../src/cli/ui/server.ts';
import { shortUtcTime } from '../../../src/cli/format.ts';
import type { Level } from '../../../src/cli/export/level.ts';
import { createFrameReader, type Frame } from '../../../src/ui/frames.ts';
import { onCleanup, type Owner } from '../../support/cleanup.ts';

export interface Served {
  readonly url: string;
  readonly get: <Answer>(path: string) => Promise<Answer>;
  /** The stream of records: frames as they come. */
  readonly frames: () => AsyncGenerator<Frame, undefined>;
}

/** @param matches  what a filter chooses, instead of that which the journal has */
export const serveJournal = async (
  owner: Owner,
  path: string,
  level: Level = 'metadata',
  matches: ServerParts['matches'] = (chosen, signal) => findMatches(chosen, { path, level, live: true, signal }),
): Promise<Served> => {
  const questions = openQuestions(path, level, shortUtcTime);
  const quiet = { onProgress: () => undefined, onUnreadable: () => undefined, onRead: () => undefined };
  const feed = openFeed({ path, live: true, ...quiet });
  const about = { journal: path, level, timeZone: 'UTC' };
  const server = await startServer({ token: newToken(), port: 0, feed, questions, matches, about });
  onCleanup(owner, async () => {
    feed.close();
    await server.close();
    await feed.ended;
    questions.close();
  });
  return {
    url: server.url,
    get: async <Answer>(path: string) => {
      const response = await fetch(`${server.url}${path}`);
      return (await response.json()) as Answer;
    },
    async *frames() {
      const { body } = await fetch(`${server.url}records`);
      const read = createFrameReader();
      for await (const chunk of body ?? []) yield* read(chunk as Uint8Array);
      return undefined;
    },
  };
};
