/** What the tests of the page look at, and with: the story in a journal of its own, its server, and a Chromium. */
import { before } from 'node:test';
import type { Browser } from 'playwright-core';
import { openJournal } from '../../../src/journal/open.ts';
import type { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import { startChromium } from '../../support/chromium.ts';
import { cleanupAfterAll, onCleanup, type Owner } from '../../support/cleanup.ts';
import { type Story, tell } from '../story.ts';
import { rootWith } from '../support.ts';

export interface StoryInChromium {
  readonly chromium: Browser;
  readonly story: Story;
}

/**
 * For all tests of a file: what it gives is filled in before the first of them, and then the rest is prepared: of two hooks of
 * a file the second does not wait for the first.
 */
export const storyInChromium = (
  owner: Owner = cleanupAfterAll(),
  prepare: (given: StoryInChromium) => Promise<void> = async () => {},
): StoryInChromium => {
  const given = {} as { -readonly [Name in keyof StoryInChromium]: StoryInChromium[Name] };
  before(async () => {
    [given.chromium, given.story] = await Promise.all([startChromium(owner), tell()]);
    await prepare(given);
  });
  return given;
};

export interface GrowingJournal {
  readonly dir: string;
  readonly journalPath: string;
  /** Open for writing. */
  readonly journal: SqliteJournal;
}

/** A journal with the first so many records of the story, which a test goes on with. */
export const growingJournal = async (owner: Owner, { records }: Story, count: number): Promise<GrowingJournal> => {
  const { dir, journalPath } = await rootWith(owner, records.slice(0, count));
  const { journal } = openJournal({ path: journalPath });
  onCleanup(owner, () => journal.close());
  return { dir, journalPath, journal };
};
