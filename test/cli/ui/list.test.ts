/**
 * The list of the page of `scribe ui` while records come, in a real Chromium: who is at a row stays there, what cannot be shown is
 * counted, names of any length leave room, and an empty journal is followed from its first record. Runs alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openJournal } from '../../../src/journal/open.ts';
import { pruneSeqs } from '../../journal/support.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { recordsOf, rootWith, startNode } from '../support.ts';
import { blankPage, hasFocus, hashOf, pageAt, rowTexts, says, textOf } from './looking.ts';
import { serveJournal } from './served.ts';
import { growingJournal, storyInChromium } from './story-in-chromium.ts';

const given = storyInChromium();

test('who is at a row stays at it while records come, and at the list when it is out of it', async (t) => {
  const growing = await growingJournal(t, given.story, 30);
  const { journal } = growing;
  const page = await pageAt(t, given.chromium, (await serveJournal(t, growing.journalPath)).url);
  const button = page.locator('#rows tr button').last();
  const seq = (await button.textContent()) ?? '';
  await button.focus();
  await page.evaluate('window.before = document.activeElement');
  await journal.append(given.story.records.slice(30));
  await page.locator('#rows tr').filter({ hasText: 'unlucky' }).first().waitFor();
  assert.equal(await page.evaluate('document.activeElement === window.before'), true);
  const last = given.story.records.at(-1);
  assert.ok(last !== undefined);
  // More than the list takes, each by itself.
  const stopped = Array.from({ length: 120 }, (_, index) => ({
    ...{ ...last, seq: last.seq + 1 + index, type: 'daemon.stopped', v: 1, stream: 'node', cause: null, call: null },
    body: JSON.stringify({ reason: `number ${index}.` }),
  }));
  await journal.append(stopped);
  await page.locator(`#rows [aria-label="Record ${seq}"]`).waitFor({ state: 'detached' });
  await hasFocus(page, '#list-box');
  assert.deepEqual((await rowTexts(page)).length, 100);
});

test('records that are pruned after the page has read them are counted where they would be listed', async (t) => {
  const { journalPath } = await rootWith(t, given.story.records);
  const served = await serveJournal(t, journalPath);
  const before = await pageAt(t, given.chromium, served.url);
  const count = (await rowTexts(before)).length;
  await before.close();
  const { journal } = openJournal({ path: journalPath });
  await pruneSeqs(journal, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  await journal.close();
  const page = await pageAt(t, given.chromium, served.url);
  await says(page, '#list-title', /; \d+ of them cannot be shown, for they are pruned by now, or damaged$/);
  const [, told = '', unshown = ''] = /: (\d+) calls.*; (\d+) of/.exec(await textOf(page, '#list-title')) ?? [];
  assert.equal((await rowTexts(page)).length, Number(told) - Number(unshown));
  assert.ok(Number(unshown) > 0 && Number(told) >= count);
});

test('a name of a megabyte is cut, and a filter that is too long is refused in words', async (t) => {
  const node = await startNode();
  const config = { metadata: { name: `web${'x'.repeat(1_000_000)}`, namespace: 'd', uid: 'u' } };
  await node.ask({ method: 'RunPodSandbox', config, runtimeHandler: '' });
  const { journalPath } = await rootWith(t, recordsOf(node));
  const served = await serveJournal(t, journalPath);
  const page = await pageAt(t, given.chromium, served.url);
  for (const text of await rowTexts(page)) assert.ok(text.length < 2000, String(text.length));
  const { value } = await served.frames().next();
  assert.deepEqual(
    value?.head.lanes.filter(({ label }) => label.length > 1100),
    [],
  );
  const box = page.getByRole('searchbox', { name: 'Filter' });
  await box.fill('x'.repeat(20_000));
  await box.press('Enter');
  await says(page, '#filter-note', /^That is too long to be asked: .* Still shown: all records$/);
});

test('an empty journal, zoomed or followed, has its first records in view when they come', async (t) => {
  const { journalPath } = await rootWith(t, []);
  const { journal } = openJournal({ path: journalPath });
  onCleanup(t, () => journal.close());
  const page = await blankPage(t, given.chromium);
  await page.goto((await serveJournal(t, journalPath)).url);
  await says(page, '#status', /^There are no records yet\.$/);
  for (const key of ['+', '+', 'l']) await page.keyboard.press(key);
  await page.waitForURL((url) => url.hash === '#live=yes', { waitUntil: 'commit' });
  await journal.append(given.story.records);
  await page.locator('#rows tr').first().waitFor();
  assert.equal(hashOf(page), '#live=yes');
});
