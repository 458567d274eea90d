/**
 * How long the page of `scribe ui` takes to show a journal, and how smoothly it pans, in a real Chromium: with wall times,
 * which other work on the machine lengthens, and processor times, which it does not. All of it, zoomed in, and with a
 * filter on. Can take the pictures of docs/ui.
 *
 *   node bench/ui.ts --help
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Page } from 'playwright-core';
import { openRecord } from '../test/cli/ui/looking.ts';
import { startChromium } from '../test/support/chromium.ts';
import { journalIn, optionsOrEnd } from './options.ts';
import { processorMsOf } from './processor-time.ts';
import { load } from './readers/run.ts';

const PAN_FRAMES = 150;

const usage = `node bench/ui.ts JOURNAL [--filter WORDS] [--pictures DIR]

  --filter WORDS  what is filtered by, in history's words (failed)
  --pictures DIR  also takes light.png and dark.png of a failed record, into DIR

JOURNAL is what node scripts/make-journal.ts JOURNAL made. Needs Chromium, which npm test installs.`;

interface Options {
  readonly journal: string;
  readonly filter: string;
  readonly pictures: string | undefined;
}

/** Throws one sentence for anything that it cannot take. */
const readOptions = (): Options => {
  const { values, positionals } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      pictures: { type: 'string' },
      filter: { type: 'string', default: 'failed' },
    },
    allowPositionals: true,
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  return { journal: journalIn(positionals), filter: values.filter, pictures: values.pictures };
};

const { journal, filter, pictures } = optionsOrEnd('bench/ui.ts', readOptions);

const VIEWPORT = { width: 1280, height: 800 };

/** Waits until all of the journal is on the page. */
const shown = async (page: Page): Promise<void> => {
  await page.locator('#status').filter({ hasText: 'lanes.' }).filter({ hasNotText: 'Reading' }).waitFor();
  await page.locator('#rows tr').first().waitFor();
};

/** Does what changes the view, and waits until the address says so, after which nothing more is due to be drawn. */
const zoomIn = async (page: Page, times: number): Promise<void> => {
  for (let count = 0; count < times; count += 1) {
    const before = page.url();
    await page.keyboard.press('+');
    await page.waitForURL((url) => url.href !== before, { waitUntil: 'commit' });
  }
};

/** Pans by a wheel event for each frame; gives the time of each, and how long the page's own work took. */
const pan = async (page: Page, what: string): Promise<void> => {
  const gaps = await page.evaluate<number[]>(`new Promise((resolve) => {
    const lanes = document.querySelector('#lanes');
    const gaps = [];
    let last = performance.now();
    const step = (now) => {
      gaps.push(now - last);
      last = now;
      if (gaps.length > ${PAN_FRAMES}) return resolve(gaps.slice(1));
      const deltaX = gaps.length % 50 < 25 ? 12 : -12;
      lanes.dispatchEvent(new WheelEvent('wheel', { deltaX, bubbles: true, cancelable: true }));
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  })`);
  const workMs = await page.evaluate<number>(`new Promise((resolve) => {
    const ask = requestAnimationFrame;
    let spent = 0;
    let count = 0;
    window.requestAnimationFrame = (then) => ask((now) => {
      const began = performance.now();
      then(now);
      spent += performance.now() - began;
      count += 1;
      if (count < 50) return;
      window.requestAnimationFrame = ask;
      resolve(spent / count);
    });
    const lanes = document.querySelector('#lanes');
    const again = () => {
      if (window.requestAnimationFrame === ask) return;
      lanes.dispatchEvent(new WheelEvent('wheel', { deltaX: 12, bubbles: true, cancelable: true }));
      setTimeout(again, 20);
    };
    again();
  })`);
  const sum = gaps.reduce((total, gap) => total + gap, 0);
  const rate = ((1000 * gaps.length) / sum).toFixed(0);
  const slowest = Math.max(...gaps).toFixed(0);
  console.log(`panning ${what}: ${rate} frames/s, slowest ${slowest} ms, ${workMs.toFixed(1)} ms of work each`);
};

const panEverywhere = async (page: Page, filtered: string): Promise<void> => {
  await page.keyboard.press('0');
  await pan(page, `all of it${filtered}`);
  await zoomIn(page, 5);
  await pan(page, `a tenth${filtered}`);
  await zoomIn(page, 9);
  await pan(page, `a thousandth${filtered}`);
};

const undos: (() => unknown)[] = [];
try {
  const chromium = await startChromium({ after: (undo) => undos.push(undo) });
  const page = await chromium.newPage({ viewport: VIEWPORT });
  console.log(`load before: ${load()}`);
  const startedMs = performance.now();
  const program = join(import.meta.dirname, '../bin/scribe');
  const ui = spawn(program, ['ui', '--utc', journal], { stdio: ['ignore', 'pipe', 'inherit'] });
  undos.push(() => ui.kill());
  const [said] = (await once(ui.stdout, 'data')) as [Buffer];
  const url = said.toString().trim();
  const openedMs = performance.now();
  await page.goto(url);
  await shown(page);
  const shownMs = performance.now();
  console.log(`from the command to the whole journal shown: ${Math.round(shownMs - startedMs)} ms`);
  console.log(`of these from opening the page: ${Math.round(shownMs - openedMs)} ms`);
  console.log(`processor time of scribe ui: ${ui.pid === undefined ? 0 : processorMsOf(ui.pid, 'itself')} ms`);
  console.log(await page.locator('#status').textContent());
  await panEverywhere(page, '');
  const filteredMs = performance.now();
  await page.locator('#filter').fill(filter);
  await page.locator('#filter').press('Enter');
  const note = page.locator('#filter-note').filter({ hasText: /^[\d,]+ records$/ });
  await note.waitFor();
  console.log(`filter ${filter}: ${await note.textContent()}, ${Math.round(performance.now() - filteredMs)} ms`);
  await page.locator('#lanes').focus();
  await panEverywhere(page, ', filtered');
  console.log(`load after: ${load()}`);
  for (const colorScheme of pictures === undefined ? [] : (['light', 'dark'] as const)) {
    const drawn = await chromium.newPage({ viewport: VIEWPORT, colorScheme });
    const view = new URLSearchParams({ since: '2026-11-20T00:00:00Z', until: '2026-11-20T00:12:00Z' });
    await drawn.goto(`${url}#${view.toString()}`);
    await shown(drawn);
    const seq = Number(await drawn.locator('#rows tr.bad').first().getAttribute('data-seq'));
    await openRecord(drawn, seq);
    await drawn.screenshot({ path: join(pictures ?? '', `${colorScheme}.png`), animations: 'disabled' });
  }
} finally {
  for (const undo of undos.toReversed()) await undo();
}
