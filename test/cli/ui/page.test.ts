/**
 * The page of `scribe ui` in a real Chromium: it loads, zooms, filters, opens what led to a record, has every view in its
 * address, follows a journal that is written, and can be used by keys alone and with a screen reader. Runs alone.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, describe, test, type TestContext } from 'node:test';
import { openJournal } from '../../../src/journal/open.ts';
import { type Chromium, type Page, startChromium } from '../../support/chromium.ts';
import { cleanupAfterAll, onCleanup } from '../../support/cleanup.ts';
import { startProcess } from '../../support/process.ts';
import { type Story, tell } from '../story.ts';
import { type Root, rootWith } from '../support.ts';
import { faintTexts, inkOn, openRecord, panelOf, rowTexts, textOf } from './looking.ts';
import { type Served, serveJournal } from './served.ts';

const owner = cleanupAfterAll();
let chromium: Chromium;
let story: Story;
let root: Root;
let served: Served;

before(async () => {
  [chromium, story] = await Promise.all([startChromium(owner), tell()]);
  root = await rootWith(owner, story.records);
  served = await serveJournal(owner, root.journalPath);
});

/** A page that has been drawn, with this in its address. */
const opened = async (t: TestContext, hash = '', scheme: 'light' | 'dark' = 'light'): Promise<Page> => {
  const page = await chromium.page({ scheme });
  onCleanup(t, () => page.close());
  await page.goto(`${served.url}${hash}`);
  await page.until("document.querySelectorAll('#rows tr').length > 0", 'the list of what is in view');
  return page;
};

const seqOf = (type: string, id: string): number =>
  story.records.find((record) => record.type === type && record.stream.endsWith(id))?.seq ?? Number.NaN;

describe('the page', () => {
  test('loads from its own server alone, says what is in view, and draws it', async (t) => {
    const page = await opened(t);
    assert.match(await page.evaluate(textOf('#status')), /^2027-01-15 .* UTC: \d+ calls and events, 7 lanes\.$/);
    const rows = await page.evaluate<string[]>(rowTexts);
    assert.ok(
      rows.some((row) => /ExecSync.*default\/web nginx.*crictl pid 4711 uid 1000.*exit 3/.test(row)),
      rows.join('\n'),
    );
    for (const id of ['histogram', 'lane-canvas']) assert.ok((await page.evaluate<number>(inkOn(id))) > 500, id);
    const loaded = await page.evaluate<string[]>("performance.getEntriesByType('resource').map(({ name }) => name)");
    assert.ok(loaded.length > 5 && loaded.every((name) => name.startsWith(served.url)), loaded.join('\n'));
    assert.deepEqual(page.problems(), []);
  });

  test('is light or dark as the browser is', async (t) => {
    const colour = 'getComputedStyle(document.documentElement).backgroundColor';
    assert.equal(await (await opened(t)).evaluate(colour), 'rgb(255, 255, 255)');
    assert.equal(await (await opened(t, '', 'dark')).evaluate(colour), 'rgb(22, 24, 29)');
  });

  test('zooms and pans by buttons, wheel and mouse, and the address follows', async (t) => {
    const page = await opened(t);
    const window = async (before: string): Promise<string> => {
      await page.until(`location.hash !== ${JSON.stringify(before)}`, 'another address');
      return page.evaluate<string>('location.hash');
    };
    const widthOf = (hash: string): number => {
      const given = new URLSearchParams(hash.slice(1));
      return Date.parse(given.get('until') ?? '') - Date.parse(given.get('since') ?? '');
    };
    await page.click('#in');
    const zoomed = await window('');
    await page.wheel('#histogram', 0, -400);
    const closer = await window(zoomed);
    assert.ok(widthOf(closer) < widthOf(zoomed) && widthOf(closer) > 0, `${zoomed} ${closer}`);
    await page.click('#forth');
    const later = await window(closer);
    assert.ok(Math.abs(widthOf(later) - widthOf(closer)) <= 2);
    assert.ok(later > closer);
    await page.click('#whole');
    assert.equal(await window(later), '');
  });

  test('filters by the words of scribe history, and says what is wrong with them', async (t) => {
    const page = await opened(t);
    await page.press('f');
    await page.type('pod=test/web failed');
    await page.press('Enter');
    await page.until(`/^\\d+ records$/.test(${textOf('#filter-note')})`, 'how many records there are');
    await page.until(`${rowTexts}.every((row) => row.includes('test/web'))`, 'only rows of the pod');
    assert.equal(
      await page.evaluate('new URLSearchParams(location.hash.slice(1)).get("filter")'),
      'pod=test/web failed',
    );
    await page.evaluate("document.querySelector('#filter').value = '--no-such'");
    await page.press('Enter');
    await page.until(`${textOf('#filter-note')}.startsWith('There is no option --no-such')`);
    assert.equal(await page.evaluate("document.querySelector('#filter').getAttribute('aria-invalid')"), 'true');
  });

  test('a record opens with what led to it and the state then; its causes open, too, and Back goes back', async (t) => {
    const page = await opened(t);
    const exited = seqOf('container.exited', story.nginx);
    await openRecord(page, exited);
    const panel = await page.evaluate<string>(textOf('#panel-body'));
    assert.match(panel, /Container nginx of pod default\/web .* was ended by SIGKILL \(exit code 137\)/);
    assert.match(panel, /kubelet \(pid 812, uid 0\) called StartContainer/);
    assert.match(panel, /default\/web.*SANDBOX_READY.*nginx.*CONTAINER_EXITED/);
    await page.click('#panel li button');
    await page.until(`${textOf('#panel-title')} !== 'Record ${exited}'`, 'the record of a cause');
    await page.evaluate('history.back()');
    await panelOf(page, exited);
    await page.press('Escape');
    await page.until("document.querySelector('#panel').hidden");
  });

  test('another browser with the same address shows the same', async (t) => {
    const first = await opened(t, '#filter=pod%3Ddefault%2Fweb');
    await first.until(`/^\\d+ records$/.test(${textOf('#filter-note')})`, 'how many records there are');
    await first.click('#in');
    await openRecord(first, seqOf('container.exited', story.nginx));
    await first.until("location.hash.includes('record') && location.hash.includes('since')");
    await first.until(
      `${textOf('#status')}!== '' && !${textOf('#status')}.includes(' 7 lanes')`,
      'the lanes of the pod, and no others',
    );
    const second = await opened(t, await first.evaluate<string>('location.hash'));
    await panelOf(second, seqOf('container.exited', story.nginx));
    for (const shown of [textOf('#status'), textOf('#panel-body'), "document.querySelector('#filter').value"]) {
      const wanted = await first.evaluate<string>(shown);
      await second.until(`${shown} === ${JSON.stringify(wanted)}`, wanted);
    }
  });

  test('everything by keys: to a lane, along its records, into one, and out again', async (t) => {
    const page = await opened(t);
    await page.evaluate("document.querySelector('#lanes').focus()");
    await page.until(`(${inkOn('lane-canvas')}) > 0`);
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown']) await page.press(key);
    await page.until(`/^container nginx of default\\/web$/.test(${textOf('#lane-note')})`);
    await page.press('.');
    await page.until(`/^default\\/web nginx: .*record \\d+/.test(${textOf('#lane-note')})`);
    await page.press('Enter');
    await page.until("document.activeElement.id === 'panel-title'");
    await page.press('Escape');
    await page.until("document.activeElement.id === 'lanes'");
    await page.press('?');
    await page.until("document.querySelector('#help').open");
  });

  test('whoever opened a record from the list is there again when it is closed, and the skip link changes no view', async (t) => {
    const page = await opened(t, '#filter=pod%3Ddefault%2Fweb&steps=no');
    const exited = seqOf('container.exited', story.nginx);
    const hash = await page.evaluate<string>('location.hash');
    await page.evaluate("document.querySelector('#skip').focus()");
    await page.press('Enter');
    await page.until("document.activeElement.id === 'list'");
    assert.equal(await page.evaluate('location.hash'), hash);
    await openRecord(page, exited);
    await page.press('Escape');
    await page.until(`document.activeElement.getAttribute('aria-label') === 'Record ${exited}'`);
  });

  for (const scheme of ['light', 'dark'] as const)
    test(`all text stands out from what is behind it, ${scheme}`, async (t) => {
      const page = await opened(t, '', scheme);
      await openRecord(page, seqOf('container.exited', story.nginx));
      // WCAG 2.2, 1.4.3.
      assert.deepEqual(await page.evaluate(faintTexts(4.5)), []);
    });

  test('screen readers are told what there is: every control and table has a name, and what changes is said', async (t) => {
    const page = await opened(t);
    await openRecord(page, seqOf('container.exited', story.nginx));
    interface Node {
      readonly ignored: boolean;
      readonly role?: { readonly value: string };
      readonly name?: { readonly value: string };
    }
    const { nodes } = await page.send<{ nodes: Node[] }>('Accessibility.getFullAXTree');
    const named = nodes
      .filter(({ ignored }) => !ignored)
      .map(({ role, name }) => `${role?.value}: ${name?.value ?? ''}`);
    const bare = named.filter((text) =>
      /^(button|searchbox|table|region|list|application|image|dialog|toolbar|columnheader): $/.test(text),
    );
    assert.deepEqual(bare, []);
    for (const wanted of [
      ...[
        'searchbox: Filter',
        'toolbar: What is in view',
        'button: Zoom in',
        'image: How many records there are over time',
      ],
      ...[
        'application: Pods and containers over time',
        'columnheader: Outcome',
        'link: To the list of what is in view',
      ],
      ...['complementary: Record ', 'heading: Why', 'button: Close', 'group: In view', 'list: What led to it'],
    ])
      assert.ok(
        named.some((text) => text.startsWith(wanted)),
        `${wanted}\n${named.join('\n')}`,
      );
    assert.equal(await page.evaluate("document.querySelectorAll('[role=status]').length"), 3);
  });
});

test('what is written comes by itself, and live goes with it', async (t) => {
  const growing = await rootWith(owner, story.records.slice(0, 30));
  const { journal } = openJournal({ path: growing.journalPath });
  onCleanup(t, () => journal.close());
  const ui = await startProcess(t, [join(import.meta.dirname, '../../../bin/scribe'), 'ui', '--root', growing.dir]);
  const [, url = ''] = await ui.until(/(http:\/\/127\.0\.0\.1:\d+\/\S+\/)\n/);
  const page = await chromium.page();
  await page.goto(`${url}#live=yes&since=2027-01-15T08:00:00Z&until=2027-01-15T08:00:20Z`);
  await page.until("document.querySelectorAll('#rows tr').length > 0");
  await journal.append(story.records.slice(30));
  await page.until(`${rowTexts}.some((row) => row.includes('unlucky'))`, 'the row of a call that came later');
  assert.equal(await page.evaluate("document.querySelector('#live').getAttribute('aria-pressed')"), 'true');
  const status = await page.evaluate<string>(textOf('#status'));
  assert.doesNotMatch(status, /08:00:20\.000/);
});
