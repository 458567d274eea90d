/**
 * The page of `scribe ui` in a real Chromium: it loads, zooms, filters, opens what led to a record, has every view in its
 * address, follows a journal that is written, and can be used by keys alone and with a screen reader. Runs alone.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { openJournal } from '../../../src/journal/open.ts';
import { problemsOf } from '../../support/chromium.ts';
import { cleanupAfterAll, onCleanup } from '../../support/cleanup.ts';
import { startProcess } from '../../support/process.ts';
import { pruneSeqs } from '../../journal/support.ts';
import { seqOf } from '../story.ts';
import { recordsOf, rootWith, startNode } from '../support.ts';
import {
  blankPage,
  coloursOn,
  faintTexts,
  hasFocus,
  hashOf,
  inkOn,
  nextHash,
  openRecord,
  pageAt,
  panelOf,
  rowTexts,
  says,
  textOf,
} from './looking.ts';
import { ROW_PX } from '../../../src/ui/layout.ts';
import { type Served, serveJournal } from './served.ts';
import { growingJournal, storyInChromium } from './story-in-chromium.ts';

const owner = cleanupAfterAll();
let served: Served;

const given = storyInChromium(owner, async ({ story: { records } }) => {
  served = await serveJournal(owner, (await rootWith(owner, records)).journalPath);
});

/** A page that has been drawn, with this in its address. */
const opened = (t: TestContext, hash = '', colorScheme: 'light' | 'dark' = 'light'): Promise<Page> =>
  pageAt(t, given.chromium, `${served.url}${hash}`, { colorScheme });

describe('the page', () => {
  test('loads from its own server alone, says what is in view, and draws it', async (t) => {
    // The command says in which time zone times are shown, wherever the browser is.
    const page = await blankPage(t, given.chromium, { timezoneId: 'Asia/Tokyo' });
    const problems = problemsOf(page);
    await page.goto(served.url);
    await says(page, '#status', /^2027-01-15 .* UTC: \d+ calls and events, 7 lanes\.$/);
    const exec = /ExecSync.*default\/web nginx.*crictl pid 4711 uid 1000.*exit 3/;
    await page.locator('#rows tr').filter({ hasText: exec }).waitFor();
    for (const id of ['histogram', 'lane-canvas']) assert.ok((await inkOn(page, id)) > 500, id);
    const loaded = await page.evaluate<string[]>("performance.getEntriesByType('resource').map(({ name }) => name)");
    assert.ok(loaded.length > 5 && loaded.every((name) => name.startsWith(served.url)), loaded.join('\n'));
    assert.deepEqual(problems, []);
  });

  test('is light or dark as the browser is', async (t) => {
    const colour = 'getComputedStyle(document.documentElement).backgroundColor';
    const page = await opened(t);
    assert.equal(await page.evaluate(colour), 'rgb(255, 255, 255)');
    await page.emulateMedia({ colorScheme: 'dark' });
    assert.equal(await page.evaluate(colour), 'rgb(22, 24, 29)');
  });

  test('where its user forces colours, all that is drawn can be told apart in those', async (t) => {
    const page = await opened(t);
    await page.emulateMedia({ forcedColors: 'active' });
    await page.locator('#lanes').focus();
    for (const key of ['ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
    // The chosen row's name is seen on it.
    const name = { x: 0, y: 2 * ROW_PX, width: 60, height: ROW_PX };
    assert.ok((await coloursOn(page, 'lane-canvas', name)).length > 1);
    assert.ok((await coloursOn(page, 'lane-canvas')).length >= 4);
    assert.ok((await coloursOn(page, 'histogram')).length >= 4);
    const background = (button: string) =>
      page.evaluate(`getComputedStyle(document.getElementById('${button}')).backgroundColor`);
    assert.notEqual(await background('steps'), await background('live'));
  });

  test('zooms and pans by buttons, wheel and mouse, and the address follows', async (t) => {
    const page = await opened(t);
    const widthOf = (hash: string): number => {
      const given = new URLSearchParams(hash.slice(1));
      return Date.parse(given.get('until') ?? '') - Date.parse(given.get('since') ?? '');
    };
    await page.getByRole('button', { name: 'Zoom in' }).click();
    const zoomed = await nextHash(page, '');
    await page.locator('#histogram').hover();
    await page.mouse.wheel(0, -400);
    const closer = await nextHash(page, zoomed);
    assert.ok(widthOf(closer) < widthOf(zoomed) && widthOf(closer) > 0, `${zoomed} ${closer}`);
    await page.getByRole('button', { name: 'Forth in time' }).click();
    const later = await nextHash(page, closer);
    assert.ok(Math.abs(widthOf(later) - widthOf(closer)) <= 2);
    assert.ok(later > closer);
    const [x, y] = [700, 300];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 200, y, { steps: 4 });
    await page.mouse.up();
    const dragged = await nextHash(page, later);
    assert.ok(Math.abs(widthOf(dragged) - widthOf(closer)) <= 2);
    assert.ok(dragged < later);
    await page.getByRole('button', { name: 'All of the time' }).click();
    await page.waitForURL((url) => url.hash === '', { waitUntil: 'commit' });
  });

  test('live goes to the newest record at once, wherever somebody looked', async (t) => {
    const page = await opened(t);
    await page.getByRole('button', { name: 'Zoom in' }).click();
    const zoomed = await nextHash(page, '');
    await page.locator('#lanes').press('Home');
    const first = await nextHash(page, zoomed);
    await page.keyboard.press('l');
    const live = new URLSearchParams((await nextHash(page, first)).slice(1));
    const newestMs = Number((given.story.records.at(-1)?.atNs ?? 0n) / 1_000_000n);
    assert.equal(live.get('live'), 'yes');
    assert.ok(Date.parse(live.get('since') ?? '') < newestMs && Date.parse(live.get('until') ?? '') > newestMs);
  });

  test('filters by the words of scribe history, and says what is wrong with them', async (t) => {
    const page = await opened(t);
    await page.keyboard.press('f');
    await page.keyboard.type('pod=test/web failed');
    await page.keyboard.press('Enter');
    await says(page, '#filter-note', /^\d+ records$/);
    await page.locator('#rows tr').filter({ hasNotText: 'test/web' }).first().waitFor({ state: 'detached' });
    assert.ok((await rowTexts(page)).length > 0);
    assert.equal(new URLSearchParams(hashOf(page).slice(1)).get('filter'), 'pod=test/web failed');
    const box = page.getByRole('searchbox', { name: 'Filter' });
    await box.fill('pod=nobody label=a=b');
    await box.press('Enter');
    await says(page, '#filter-note', /^0 records\. The journal knows of no pod nobody with label a=b\.$/);
    await box.fill('--no-such');
    await box.press('Enter');
    await says(page, '#filter-note', /^There is no option --no-such/);
    assert.equal(await box.getAttribute('aria-invalid'), 'true');
  });

  test('what a filter box refuses is said beside it and to screen readers, and what was shown stays', async (t) => {
    const page = await opened(t, '#filter=pod%3Dtest%2Fweb');
    await says(page, '#filter-note', /^\d+ records$/);
    await page.locator('#rows tr').filter({ hasNotText: 'test/web' }).first().waitFor({ state: 'detached' });
    const [rows, status] = [await rowTexts(page), await textOf(page, '#status')];
    const box = page.getByRole('searchbox', { name: 'Filter' });
    await box.fill('method=RunPodSandbx');
    await box.press('Enter');
    const said =
      /^--method RunPodSandbx: there is no such method; did you mean RunPodSandbox\? Still shown: pod=test\/web$/;
    await page.getByRole('status').filter({ hasText: said }).waitFor();
    assert.equal(await box.getAttribute('aria-describedby'), 'filter-note');
    assert.equal(await box.getAttribute('aria-invalid'), 'true');
    assert.deepEqual([await rowTexts(page), await textOf(page, '#status')], [rows, status]);
    await box.fill('method=RunPodSandbox');
    await box.press('Enter');
    await says(page, '#filter-note', /^\d+ records$/);
    assert.equal(await box.getAttribute('aria-invalid'), 'false');
  });

  test('a record opens with what led to it and the state then; its causes open, too, and Back goes back', async (t) => {
    const page = await opened(t);
    const exited = seqOf(given.story, 'container.exited', given.story.nginx);
    await openRecord(page, exited);
    const panel = await textOf(page, '#panel-body');
    assert.match(panel, /Container nginx of pod default\/web .* was ended by SIGKILL \(exit code 137\)/);
    assert.match(panel, /kubelet \(pid 812, uid 0\) called StartContainer/);
    assert.match(panel, /default\/web.*SANDBOX_READY.*nginx.*CONTAINER_EXITED/);
    await page.getByRole('list', { name: 'What led to it' }).getByRole('button').first().click();
    await page
      .locator('#panel-title')
      .filter({ hasNotText: `Record ${exited}` })
      .waitFor();
    await page.goBack({ waitUntil: 'commit' });
    await panelOf(page, exited);
    await page.goForward({ waitUntil: 'commit' });
    await page
      .locator('#panel-title')
      .filter({ hasNotText: `Record ${exited}` })
      .waitFor();
    await page.keyboard.press('Escape');
    await page.locator('#panel').waitFor({ state: 'hidden' });
  });

  test('another browser with the same address shows the same, and so does this one when it loads it again', async (t) => {
    const first = await opened(t, '#filter=pod%3Ddefault%2Fweb');
    await says(first, '#filter-note', /^\d+ records$/);
    const exited = seqOf(given.story, 'container.exited', given.story.nginx);
    await first.getByRole('button', { name: 'Zoom in' }).click();
    await openRecord(first, exited);
    await first.waitForURL(/since.*record/, { waitUntil: 'commit' });
    await first.locator('#status').filter({ hasText: /lanes/ }).filter({ hasNotText: ' 7 lanes' }).waitFor();
    const shownOn = async (page: Page): Promise<string[]> => [
      await textOf(page, '#status'),
      await textOf(page, '#panel-body'),
      await page.locator('#filter').inputValue(),
    ];
    const wanted = await shownOn(first);
    const sameOn = async (page: Page): Promise<void> => {
      await panelOf(page, exited);
      await page.locator('#status', { hasText: wanted[0] ?? '' }).waitFor();
      assert.deepEqual(await shownOn(page), wanted);
    };
    await sameOn(await opened(t, hashOf(first)));
    await first.reload();
    await sameOn(first);
  });

  test('an address with a beginning or an end alone shows what is after or before it', async (t) => {
    const all = await textOf(await opened(t), '#status');
    const [from = '', to = ''] = all.match(/\d{4}-\S+ [\d:.]+/g) ?? [];
    const exitedNs =
      given.story.records.find(({ seq }) => seq === seqOf(given.story, 'container.exited', given.story.nginx))?.atNs ??
      0n;
    const at = new Date(Number(exitedNs / 1_000_000n)).toISOString();
    const middle = at.replace('T', ' ').replace('Z', '');
    await says(await opened(t, `#since=${at}`), '#status', new RegExp(`^${middle} to ${to} UTC`));
    await says(await opened(t, `#until=${at}`), '#status', new RegExp(`^${from} to ${middle} UTC`));
  });

  test('everything by keys: to a lane, along its records, into one, and out again', async (t) => {
    const page = await opened(t);
    await page.locator('#lanes').focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(key);
    await says(page, '#lane-note', /^container nginx of default\/web$/);
    await page.keyboard.press('.');
    await says(page, '#lane-note', /^default\/web nginx: .*record \d+/);
    await page.keyboard.press('Enter');
    await hasFocus(page, '#panel-title');
    await page.keyboard.press('Escape');
    await hasFocus(page, '#lanes');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    const row = page.locator('#rows button:focus');
    for (let tabs = 0; tabs < 5 && (await row.count()) === 0; tabs += 1) await page.keyboard.press('Tab');
    const name = await row.getAttribute('aria-label');
    await page.keyboard.press('Enter');
    await hasFocus(page, '#panel-title');
    await page.keyboard.press('Escape');
    await hasFocus(page, `#rows [aria-label="${name}"]`);
  });

  test('whoever opened a record from the list is there again when it is closed, and the skip link changes no view', async (t) => {
    const page = await opened(t, '#filter=pod%3Ddefault%2Fweb&steps=no');
    const exited = seqOf(given.story, 'container.exited', given.story.nginx);
    const hash = hashOf(page);
    await page.keyboard.press('Tab');
    await hasFocus(page, '#skip');
    await page.keyboard.press('Enter');
    await hasFocus(page, '#list');
    assert.equal(hashOf(page), hash);
    await openRecord(page, exited);
    await page.keyboard.press('Escape');
    await hasFocus(page, `[aria-label="Record ${exited}"]`);
  });

  for (const scheme of ['light', 'dark'] as const)
    test(`all text stands out from what is behind it, ${scheme}`, async (t) => {
      const page = await opened(t, '', scheme);
      await openRecord(page, seqOf(given.story, 'container.exited', given.story.nginx));
      // WCAG 2.2, 1.4.3.
      assert.deepEqual(await faintTexts(page, 4.5), []);
    });

  test('screen readers are told what there is: every control and table has a name, and what changes is said', async (t) => {
    const page = await opened(t);
    await openRecord(page, seqOf(given.story, 'container.exited', given.story.nginx));
    const told = await page.locator('body').ariaSnapshot();
    const lines = told.split('\n').map((line) => line.trim().replace("- '", '- '));
    const bare = lines.filter((line) =>
      /^- (button|searchbox|table|region|list|application|img|dialog|toolbar|columnheader)(:|$)/.test(line),
    );
    assert.deepEqual(bare, []);
    for (const wanted of [
      'link "To the list of what is in view"',
      'searchbox "Filter"',
      'toolbar "What is in view"',
      'button "Zoom in"',
      'img "How many records there are over time"',
      'application "Pods and containers over time"',
      'table "In view',
      'columnheader "Outcome"',
      'region "Record ',
      'heading "Why"',
      'button "Close"',
      'group "In view',
      'list "What led to it"',
    ])
      assert.ok(
        lines.some((line) => line.startsWith(`- ${wanted}`)),
        `${wanted}\n${told}`,
      );
    assert.equal(await page.getByRole('status').count(), 4);
  });
});

test('what is written comes by itself, and live goes with it', async (t) => {
  const growing = await growingJournal(t, given.story, 30);
  const { journal } = growing;
  const ui = await startProcess(t, [join(import.meta.dirname, '../../../bin/scribe'), 'ui', '--root', growing.dir]);
  const [, url = ''] = await ui.until(/(http:\/\/127\.0\.0\.1:\d+\/\S+\/)\n/);
  const hash = '#live=yes&since=2027-01-15T08:00:00Z&until=2027-01-15T08:00:20Z';
  const page = await pageAt(t, given.chromium, `${url}${hash}`);
  await journal.append(given.story.records.slice(30));
  await page.locator('#rows tr').filter({ hasText: 'unlucky' }).first().waitFor();
  assert.equal(await page.locator('#live').getAttribute('aria-pressed'), 'true');
  assert.doesNotMatch(await textOf(page, '#status'), /08:00:20\.000/);
  await ui.stop();
  await says(page, '#connection', /^Connection lost, trying again: scribe ui has ended, or the way to it is broken\./);
  await page.keyboard.press('0');
  await page.waitForURL((url) => url.hash === '', { waitUntil: 'commit' });
  await says(page, '#status', /calls and events, 7 lanes\.$/);
});

test('a journal with nothing in it says so, and shows the first record when there is one', async (t) => {
  const empty = await rootWith(t, []);
  const page = await blankPage(t, given.chromium);
  await page.goto((await serveJournal(t, empty.journalPath)).url);
  await says(page, '#status', /^There are no records yet\.$/);
  const { journal } = openJournal({ path: empty.journalPath });
  onCleanup(t, () => journal.close());
  await journal.append(given.story.records.slice(0, 1));
  await says(page, '#status', /: 1 call or event, 1 lane\.$/);
});

test('names are text whatever they are, and what is pruned is counted', async (t) => {
  const node = await startNode();
  const names = ['<script>alert(1)</script>', 'x'.repeat(253), 'a\u202egnp.exe', `"quotes' &amp;`, '\u{1f433}', 'שלום'];
  for (const name of names)
    await node.ask({
      method: 'RunPodSandbox',
      config: { metadata: { name, namespace: 'd', uid: name } },
      runtimeHandler: '',
    });
  const { journalPath } = await rootWith(t, recordsOf(node), (journal) => pruneSeqs(journal, [1, 2]));
  const page = await blankPage(t, given.chromium);
  const problems = problemsOf(page);
  page.on('dialog', () => assert.fail('A name has run as a script.'));
  await page.goto((await serveJournal(t, journalPath)).url);
  await says(page, '#status', /2 records are pruned\.$/);
  await page.locator('#rows tr').first().waitFor();
  const rows = (await rowTexts(page)).join('\n');
  for (const name of names) assert.ok(rows.includes(`d/${name.replace('\u202e', '\\u{202e}')} `), name);
  await page.locator('#lanes').focus();
  for (const lane of [/^pod d\/<script>alert\(1\)<\/script>$/, /^pod d\/x{253}$/, /^pod d\/a\\u\{202e\}gnp\.exe$/]) {
    await page.keyboard.press('ArrowDown');
    await says(page, '#lane-note', lane);
  }
  assert.deepEqual(problems, []);
});
