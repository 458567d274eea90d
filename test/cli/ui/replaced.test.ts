/**
 * The page of `scribe ui`, in a real Chromium, over a journal at whose place another one is put: it says so and what to do, and shows
 * nothing of the other. Runs alone.
 */
import assert from 'node:assert/strict';
import { copyFile, rename, truncate } from 'node:fs/promises';
import { test } from 'node:test';
import { rootWith } from '../support.ts';
import { pageAt, rowTexts, says } from './looking.ts';
import { serveJournal } from './served.ts';
import { storyInChromium } from './story-in-chromium.ts';

const given = storyInChromium();

const REPLACED =
  /^scribe ui has ended; what was read stays, and can be looked at\. .*journal\.db was replaced or removed; start again to follow the new journal\.$/;
const DAMAGED =
  /^scribe ui has ended; what was read stays, and can be looked at\. SQLite cannot read on in the journal: .* scribe verify says/;

for (const [what, put, said] of [
  ['moved to its place', (other: string, path: string) => rename(other, path), REPLACED],
  ['copied over it, where it lies', copyFile, REPLACED],
  ['cut short', (_: string, path: string) => truncate(path, 5000), DAMAGED],
] as const)
  test(`a journal that is ${what} while somebody looks: the page says so, and shows what it had`, async (t) => {
    const { journalPath } = await rootWith(t, given.story.records.slice(0, 30));
    const other = await rootWith(
      t,
      given.story.records.map((record) => ({ ...record, atNs: record.atNs + 1_000_000_000n })),
    );
    const page = await pageAt(t, given.chromium, (await serveJournal(t, journalPath)).url);
    const shown = await rowTexts(page);
    await put(other.journalPath, journalPath);
    await says(page, '#connection:not([data-good])', said);
    assert.deepEqual(await rowTexts(page), shown);
  });
