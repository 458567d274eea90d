/**
 * How long the page of `scribe ui` takes to show a journal, and how smoothly it pans, in a real Chromium: with wall times,
 * which other work on the machine lengthens, and processor times, which it does not. Can take the pictures of docs/ui.
 *
 *   node bench/ui.ts JOURNAL [--pictures DIR]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Page, startChromium } from '../test/support/chromium.ts';

const PAN_FRAMES = 150;
const TICKS_PER_SECOND = 100;

const { values, positionals } = parseArgs({ options: { pictures: { type: 'string' } }, allowPositionals: true });
const [journal] = positionals;
if (journal === undefined) throw new Error('Name a journal: node bench/ui.ts JOURNAL [--pictures DIR]');

/** Processor time of a process so far. */
const cpuMsOf = (pid: number | undefined): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
};

const isShown =
  "document.querySelectorAll('#rows tr').length > 0 && !document.querySelector('#status').textContent.includes('Reading')";

/** Pans by a wheel event for each frame; gives the time of each, and how long the page's own work took. */
const pan = async (page: Page): Promise<{ framesPerSecond: number; slowestMs: number; workMs: number }> => {
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
  return { framesPerSecond: (1000 * gaps.length) / sum, slowestMs: Math.max(...gaps), workMs };
};

const undos: (() => unknown)[] = [];
try {
  const chromium = await startChromium({ after: (undo) => undos.push(undo) });
  const page = await chromium.page();
  const startedMs = performance.now();
  const program = join(import.meta.dirname, '../bin/scribe');
  const ui = spawn(program, ['ui', '--utc', journal], { stdio: ['ignore', 'pipe', 'inherit'] });
  undos.push(() => ui.kill());
  const [said] = (await once(ui.stdout, 'data')) as [Buffer];
  const url = said.toString().trim();
  const began = performance.now();
  await page.goto(url);
  await page.until(isShown, 'the whole journal');
  const shownMs = performance.now();
  console.log(`from the command to the whole journal shown: ${Math.round(shownMs - startedMs)} ms`);
  console.log(`of these from opening the page: ${Math.round(shownMs - began)} ms`);
  console.log(`processor time of scribe ui: ${cpuMsOf(ui.pid)} ms`);
  console.log(await page.evaluate("document.querySelector('#status').textContent"));
  for (const [what, zooms] of [
    ['all of it', 0],
    ['a tenth', 5],
    ['a thousandth', 9],
  ] as const) {
    for (let count = 0; count < zooms; count += 1) await page.press('+');
    await sleep(500);
    const { framesPerSecond, slowestMs, workMs } = await pan(page);
    const rate = framesPerSecond.toFixed(0);
    console.log(
      `panning ${what}: ${rate} frames/s, slowest ${slowestMs.toFixed(0)} ms, ${workMs.toFixed(1)} ms of work each`,
    );
  }
  for (const scheme of values.pictures === undefined ? [] : (['light', 'dark'] as const)) {
    const shown = await chromium.page({ scheme });
    const view = new URLSearchParams({ since: '2026-11-20T00:00:00Z', until: '2026-11-20T00:12:00Z' });
    await shown.goto(`${url}#${view.toString()}`);
    await shown.until(isShown);
    const bad = '#rows tr.bad button';
    await shown.until(`document.querySelector('${bad}') !== null`);
    await shown.click(bad);
    await shown.until(
      "!document.querySelector('#panel').hidden && document.querySelectorAll('#panel [aria-busy=true]').length === 0",
    );
    await sleep(500);
    await shown.screenshot(join(values.pictures ?? '', `${scheme}.png`));
  }
} finally {
  for (const undo of undos.toReversed()) await undo();
}
