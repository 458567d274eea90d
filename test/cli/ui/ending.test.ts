/** How `scribe ui` ends, and what the page says of it then, in a real Chromium: the reason, once. Runs alone. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { onCleanup } from '../../support/cleanup.ts';
import { rootWith } from '../support.ts';
import { openRecord, pageAt, says, textOf } from './looking.ts';
import { serveJournal } from './served.ts';
import { storyInChromium } from './story-in-chromium.ts';

const given = storyInChromium();

test('when scribe ui has ended the page says why once, and nothing else that it does not know', async (t) => {
  const { chromium, story } = given;
  const { journalPath } = await rootWith(t, story.records.slice(0, 30));
  const other = await rootWith(
    t,
    story.records.map((record) => ({ ...record, atNs: record.atNs + 1_000_000_000n })),
  );
  const page = await pageAt(t, chromium, `${(await serveJournal(t, journalPath)).url}#filter=uid%3D0`);
  await says(page, '#filter-note', /^\d+ records$/);
  const found = await textOf(page, '#filter-note');
  const seen: string[] = [];
  await page.exposeFunction('noted', (text: string) => seen.push(text));
  await page.evaluate(
    "new MutationObserver(() => noted(document.querySelector('#filter-note').textContent)).observe(document.querySelector('#filter-note'), { childList: true })",
  );
  await rename(other.journalPath, journalPath);
  await says(page, '#connection', /^scribe ui has ended; .* was replaced or removed; start again/);
  await says(page, '#filter-note', new RegExp(`^${found}$`));
  const box = page.getByRole('searchbox', { name: 'Filter' });
  await box.fill('failed');
  await box.press('Enter');
  await says(page, '#filter-note', /^scribe ui has ended: what is not here already can be asked of another one\.$/);
  assert.deepEqual(
    seen.filter((text) => text.includes('does not answer')),
    [],
  );
  const seq = Number(await page.locator('#rows tr').first().getAttribute('data-seq'));
  await openRecord(page, seq);
  await says(page, '#panel-body', /scribe ui has ended: what is not here already can be asked of another one\./);
});

test('while the connection is lost the note goes on telling of what is shown', async (t) => {
  const { chromium, story } = given;
  const { journalPath } = await rootWith(t, story.records);
  const ui = startUi(t, journalPath);
  const page = await pageAt(t, chromium, `${await ui.url}#filter=uid%3D0`);
  await says(page, '#filter-note', /^\d+ records$/);
  const found = await textOf(page, '#filter-note');
  ui.child.kill('SIGKILL');
  await says(page, '#connection', /^Connection lost, trying again: /);
  await says(page, '#filter-note', new RegExp(`^${found}$`));
});

const startUi = (t: TestContext, journalPath: string) => {
  const child = spawn(join(import.meta.dirname, '../../../bin/scribe'), ['ui', journalPath], { stdio: 'pipe' });
  onCleanup(t, () => void child.kill('SIGKILL'));
  const url = (async () => {
    let said = '';
    for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
      said += String(chunk);
      const [, address] = /(http:\S+)\n/.exec(said) ?? [];
      if (address !== undefined) return address;
    }
    throw new Error(`scribe ui has ended: ${said}`);
  })();
  return { child, url };
};

// As sshd ends what it has started without a terminal: it closes its ends of the pipes, and sends no signal.
test('scribe ui ends when the caller that it has pipes to goes, and with a terminal that goes', {
  timeout: 60_000,
}, async (t) => {
  const { journalPath } = await rootWith(t, given.story.records);
  const piped = startUi(t, journalPath);
  await piped.url;
  const left = once(piped.child, 'exit');
  piped.child.stdin.end();
  piped.child.stdout.destroy();
  assert.deepEqual(await left, [0, null]);
  const hungUp = startUi(t, journalPath);
  await hungUp.url;
  const ended = once(hungUp.child, 'exit');
  hungUp.child.kill('SIGHUP');
  assert.deepEqual(await ended, [0, null]);
});

test('scribe ui goes on when its input ends and somebody still reads what it says', async (t) => {
  const { journalPath } = await rootWith(t, given.story.records);
  const { child, url } = startUi(t, journalPath);
  const address = await url;
  child.stdin.end();
  // It has tried when this comes.
  const [tried] = (await once(child.stdout.resume(), 'data')) as [Buffer];
  assert.equal(String(tried), '\n');
  assert.equal((await fetch(`${address}about`)).status, 200);
});
