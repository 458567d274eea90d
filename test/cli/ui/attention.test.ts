/**
 * What the page asks of whoever uses it, in a real Chromium: what screen readers read out and what they don't, that Back gives the focus
 * to where it was, and that a long word takes no room from the rest. Runs alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordsOf, rootWith, startNode } from '../support.ts';
import { hasFocus, openRecord, pageAt, says } from './looking.ts';
import { serveJournal } from './served.ts';
import { growingJournal, storyInChromium } from './story-in-chromium.ts';

const given = storyInChromium();

test('what comes by itself, perhaps all the time, is not read out; what somebody asked for is', async (t) => {
  const growing = await growingJournal(t, given.story, 30);
  const { journal } = growing;
  const { url } = await serveJournal(t, growing.journalPath);
  const page = await pageAt(t, given.chromium, `${url}#filter=uid%3D0`);
  const readOut = (id: string, how: 'polite' | 'off') => page.locator(`#${id}[aria-live=${how}]`).waitFor();
  await says(page, '#filter-note', /^\d+ records$/);
  await readOut('filter-note', 'polite');
  await journal.append(given.story.records.slice(30));
  await page.locator('#rows tr').filter({ hasText: 'unlucky' }).first().waitFor();
  await readOut('filter-note', 'off');
  await readOut('status', 'off');
  await page.keyboard.press('+');
  await readOut('status', 'polite');
  await page.getByRole('searchbox', { name: 'Filter' }).fill('failed');
  await page.keyboard.press('Enter');
  await readOut('filter-note', 'polite');
});

test('Back out of an open record leads to where it was opened', async (t) => {
  const { journalPath } = await rootWith(t, given.story.records);
  const page = await pageAt(t, given.chromium, (await serveJournal(t, journalPath)).url);
  const seq = Number(await page.locator('#rows tr').nth(3).getAttribute('data-seq'));
  await openRecord(page, seq);
  await hasFocus(page, '#panel-title');
  await page.goBack({ waitUntil: 'commit' });
  await hasFocus(page, `#rows [aria-label="Record ${seq}"]`);
});

test('a word of 4 kB is broken, and takes no room from the other rows', async (t) => {
  const node = await startNode();
  const config = { metadata: { name: 'web', namespace: 'd', uid: 'u' } };
  await node.ask({ method: 'RunPodSandbox', config, runtimeHandler: 'x'.repeat(4096) });
  const { journalPath } = await rootWith(t, recordsOf(node));
  const { url } = await serveJournal(t, journalPath, 'request-response');
  const page = await pageAt(t, given.chromium, url);
  await page.locator('#rows tr').filter({ hasText: 'xxxx' }).waitFor();
  const widths = await page.evaluate<[number, number]>(`(() => {
    const { scrollWidth, clientWidth } = document.querySelector('#list .scrolls');
    return [scrollWidth, clientWidth];
  })()`);
  assert.equal(widths[0], widths[1]);
});
