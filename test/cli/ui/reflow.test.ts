/**
 * The page in windows of many sizes and at the browser's zooms, in a real Chromium: all of it is in the width, can be reached and read,
 * and is one page to screen readers (WCAG 1.4.10). Runs alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problemsOf } from '../../support/chromium.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { seqOf } from '../story.ts';
import { rootWith } from '../support.ts';
import { blankPage, hasFocus, openRecord, pageAt, says } from './looking.ts';
import { type Served, serveJournal } from './served.ts';
import { storyInChromium } from './story-in-chromium.ts';

const owner = cleanupAfterAll();
let served: Served;
let exited: number;

const given = storyInChromium(owner, async ({ story }) => {
  served = await serveJournal(owner, (await rootWith(owner, story.records)).journalPath);
  exited = seqOf(story, 'container.exited', story.nginx);
});

for (const [what, width, height, deviceScaleFactor] of [
  ['a window of 400 px', 400, 700, 1],
  ['a small window at 200 %', 640, 400, 2],
  ['a window of 1280 px at 400 %', 320, 256, 4],
  ['a window of 4000 px', 4000, 1000, 1],
] as const)
  test(`${what} has all of it in its width, lanes and list with room, and an open record can be read`, async (t) => {
    const page = await pageAt(t, given.chromium, served.url, { viewport: { width, height }, deviceScaleFactor });
    const sizeOf = async (selector: string) => (await page.locator(selector).boundingBox()) ?? { width: 0, height: 0 };
    const fits = async () =>
      assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= width, 'the page scrolls');
    await fits();
    const box = page.getByRole('searchbox', { name: 'Filter' });
    await box.fill('method=nothing');
    await box.press('Enter');
    await says(
      page,
      '#filter-note',
      /^--method nothing: there is no such method; there are .* Still shown: all records$/,
    );
    await fits();
    assert.ok((await sizeOf('#filter')).width > 250);
    assert.ok((await sizeOf('#lanes')).height > 90);
    assert.ok((await sizeOf('#list')).height > 90);
    await openRecord(page, exited);
    assert.ok((await sizeOf('#panel')).width >= Math.min(400, width));
    assert.ok((await sizeOf('#panel')).height > 90);
    await fits();
    // Whoever looks for the main part finds the record there, and it alone where there is no room for more.
    await page
      .getByRole('main')
      .getByRole('region', { name: `Record ${exited}` })
      .waitFor();
    assert.equal(await page.getByRole('main').count(), 1);
    assert.equal(await page.locator('#list').isVisible(), width > 800);
    await page.keyboard.press('Escape');
    await hasFocus(page, `[aria-label="Record ${exited}"]`);
  });

test('the page has an icon of its own, which its policy takes, so that no browser asks for one', async (t) => {
  const page = await blankPage(t, given.chromium);
  const problems = problemsOf(page);
  await page.goto(served.url);
  const width = await page.evaluate<number>(`(async () => {
    const icon = new Image();
    icon.src = document.querySelector('link[rel=icon]').href;
    await icon.decode();
    return icon.width;
  })()`);
  assert.ok(width > 0);
  assert.deepEqual(problems, []);
});
