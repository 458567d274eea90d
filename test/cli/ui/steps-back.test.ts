/** Back through records that were opened one from the other, in a real Chromium: each is one step, opened again or not. Runs alone. */
import { test } from 'node:test';
import { rootWith } from '../support.ts';
import { openRecord, pageAt, panelOf } from './looking.ts';
import { serveJournal } from './served.ts';
import { storyInChromium } from './story-in-chromium.ts';

const given = storyInChromium();

test('a record that is opened again is no step: Back leads to the one before', async (t) => {
  const { chromium, story } = given;
  const { journalPath } = await rootWith(t, story.records);
  const page = await pageAt(t, chromium, (await serveJournal(t, journalPath)).url);
  const exited = story.records.find(({ type }) => type === 'container.exited')?.seq ?? Number.NaN;
  await openRecord(page, exited);
  const cause = page.getByRole('list', { name: 'What led to it' }).getByRole('button').first();
  const seq = Number(await cause.textContent());
  await cause.click();
  await panelOf(page, seq);
  for (let again = 0; again < 3; again += 1) {
    await page
      .locator('#panel')
      .getByRole('button', { name: `Record ${seq}` })
      .first()
      .click();
    await panelOf(page, seq);
  }
  await page.goBack({ waitUntil: 'commit' });
  await panelOf(page, exited);
  await page.reload();
  await panelOf(page, exited);
  await page.goBack({ waitUntil: 'commit' });
  await page.locator('#panel').waitFor({ state: 'hidden' });
});
