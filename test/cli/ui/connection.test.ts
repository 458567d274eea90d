/**
 * The page's connection in a real Chromium, over a way that breaks or goes silent: what is said of it, and that it is made
 * again where it was. Runs alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blankPage, pageAt, says, textOf } from './looking.ts';
import { serveJournal } from './served.ts';
import { growingJournal, storyInChromium } from './story-in-chromium.ts';
import { openWay } from './way.ts';

const given = storyInChromium();

test('a connection that breaks is made again where it was; another scribe ui at its place is told from it', async (t) => {
  const growing = await growingJournal(t, given.story, 30);
  const { journal } = growing;
  const first = await serveJournal(t, growing.journalPath);
  const way = await openWay(t, first.url);
  const page = await blankPage(t, given.chromium);
  await page.goto(`${way.url}#filter=pod%3Dunlucky`);
  await says(page, '#filter-note', /^0 records\. The journal knows of no pod unlucky\.$/);
  assert.equal(await textOf(page, '#connection'), '');
  await way.cut();
  await page
    .getByRole('status')
    .and(page.locator(':not([data-good])'))
    .filter({ hasText: /^Connection lost, trying again: .* can be looked at\.$/ })
    .waitFor();
  assert.equal(await page.getByRole('searchbox', { name: 'Filter' }).getAttribute('aria-invalid'), 'false');
  await journal.append(given.story.records.slice(30));
  await way.mend();
  await says(page, '#connection[data-good]', /^Connected again: what was written meanwhile is here\.$/);
  await says(page, '#filter-note', /^[1-9]\d* records$/);
  await page.locator('#rows tr').filter({ hasText: 'unlucky' }).first().waitFor();
  await page.getByRole('searchbox', { name: 'Filter' }).fill('');
  await page.keyboard.press('Enter');
  const whole = await pageAt(t, given.chromium, first.url);
  await says(page, '#status', new RegExp(`^${(await textOf(whole, '#status')).replaceAll('.', '\\.')}$`));
  await way.cut();
  const second = await serveJournal(t, growing.journalPath);
  await way.mend(second.url);
  await says(page, '#connection', /^Nothing new comes: this scribe ui has ended, and another one has its port\./);
});

test('a connection over which nothing comes any more is given up and made again where it was; beats are enough', async (t) => {
  const growing = await growingJournal(t, given.story, 30);
  const { journal } = growing;
  t.mock.timers.enable({ apis: ['setInterval'] });
  const way = await openWay(t, (await serveJournal(t, growing.journalPath)).url);
  const page = await blankPage(t, given.chromium);
  await page.clock.install();
  await page.goto(`${way.url}#filter=pod%3Dunlucky`);
  await says(page, '#filter-note', /^0 records\. The journal knows of no pod unlucky\.$/);
  for (let beats = 0; beats < 4; beats += 1) {
    t.mock.timers.tick(10_000);
    await page.evaluate("fetch('about').then((answer) => answer.text())");
    await page.clock.fastForward(10_000);
  }
  assert.equal(await textOf(page, '#connection'), '');
  way.hush();
  await journal.append(given.story.records.slice(30));
  // What is asked meanwhile has no answer, either.
  await page.getByRole('searchbox', { name: 'Filter' }).fill('failed');
  await page.keyboard.press('Enter');
  await says(page, '#filter-note', /^…$/);
  await page.clock.fastForward(26_000);
  await says(page, '#connection', /^Connection lost, trying again: /);
  await says(page, '#filter-note', /^scribe ui does not answer: .* \(nothing came for 25 s\)\.$/);
  await page.clock.fastForward(600);
  // That try has no answer, and is given up, too.
  await page.clock.fastForward(26_000);
  await way.mend();
  await page.clock.fastForward(2000);
  await says(page, '#connection', /^Connected again: what was written meanwhile is here\.$/);
  await says(page, '#filter-note', /^[1-9]\d* records$/);
  await page.locator('#rows tr').filter({ hasText: 'unlucky' }).first().waitFor();
});
