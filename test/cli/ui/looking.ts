/** How tests look at the page of `scribe ui`: what they wait for, what is on it, and how they open a record. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { onCleanup, type Owner } from '../../support/cleanup.ts';

const WAIT_MS = 20_000;

/** A page with nothing in it, closed with its owner. What does not come within a bound fails. */
export const blankPage = async (
  owner: Owner,
  chromium: Browser,
  options: BrowserContextOptions = {},
): Promise<Page> => {
  const page = await chromium.newPage({ viewport: { width: 1280, height: 800 }, ...options });
  page.setDefaultTimeout(WAIT_MS);
  onCleanup(owner, () => page.close());
  return page;
};

/** A page that has been drawn. */
export const pageAt = async (
  owner: Owner,
  chromium: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Page> => {
  const page = await blankPage(owner, chromium, options);
  await page.goto(url);
  await page.locator('#rows tr').first().waitFor();
  return page;
};

/** Waits until an element that can be seen has these words. */
export const says = (page: Page, selector: string, words: RegExp): Promise<void> =>
  page.locator(selector).filter({ hasText: words }).waitFor();

/** Waits until the focus is on an element. */
export const hasFocus = (page: Page, selector: string): Promise<void> =>
  page.locator(selector).and(page.locator(':focus')).waitFor();

export const rowTexts = (page: Page): Promise<string[]> => page.locator('#rows tr').allTextContents();

export const textOf = async (page: Page, selector: string): Promise<string> =>
  (await page.locator(selector).textContent()) ?? '';

/** What the address says behind its #. */
export const hashOf = (page: Page): string => new URL(page.url()).hash;

/** Waits for another address than this, and gives what it says. */
export const nextHash = async (page: Page, before: string): Promise<string> => {
  await page.waitForURL((url) => url.hash !== before, { waitUntil: 'commit' });
  return hashOf(page);
};

/** How many pixels of a canvas have been drawn on. */
export const inkOn = (page: Page, id: string): Promise<number> =>
  page.evaluate<number>(`(() => {
    const canvas = document.getElementById('${id}');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 3; at < data.length; at += 4) if (data[at] !== 0) count += 1;
    return count;
  })()`);

interface Part {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** What a canvas, or a part of it, is drawn in: colours that fill more than a few pixels, and are no edges of others. */
export const coloursOn = (page: Page, id: string, part?: Part): Promise<string[]> =>
  page.evaluate<string[]>(`(() => {
    const canvas = document.getElementById('${id}');
    const { x, y, width, height } = ${JSON.stringify(part ?? null)} ?? { x: 0, y: 0, width: canvas.width, height: canvas.height };
    const { data } = canvas.getContext('2d').getImageData(x, y, width, height);
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
      const colour = data[at + 3] === 255 ? data.subarray(at, at + 3).join() : data[at + 3] === 0 ? 'none' : 'edge';
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    return [...counts].filter(([colour, count]) => colour !== 'edge' && count > 5).map(([colour]) => colour);
  })()`);

/** Waits until a record's panel has all of its parts. */
export const panelOf = async (page: Page, seq: number): Promise<void> => {
  await says(page, '#panel-title', new RegExp(`^Record ${seq}$`));
  await page.locator('#panel:not(:has([aria-busy=true]))').waitFor();
};

export const openRecord = async (page: Page, seq: number): Promise<void> => {
  await page.locator(`tr[data-seq="${seq}"] button`).click();
  await panelOf(page, seq);
};

/** Texts whose contrast with what is behind them, by WCAG, is less than this; the filter's placeholder among them. */
export const faintTexts = (page: Page, least: number): Promise<string[]> =>
  page.evaluate<string[]>(`(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    for (let at = one; at !== null; at = at.parentElement) {
      const { backgroundColor } = getComputedStyle(at);
      if ((numbers(backgroundColor)[3] ?? 1) === 1) return backgroundColor;
    }
  };
  const contrast = (ink, paper) => {
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== '');
  const texts = [...document.querySelectorAll('body *')]
    .filter((one) => hasText(one) && one.getClientRects().length > 0)
    .map((one) => [one.textContent.slice(0, 40), getComputedStyle(one).color, behind(one)]);
  const filter = document.querySelector('#filter');
  texts.push([filter.placeholder, getComputedStyle(filter, '::placeholder').color, behind(filter)]);
  if (texts.length < 50) throw new Error('There is hardly any text.');
  return texts.filter(([, ink, paper]) => contrast(ink, paper) < ${least}).map((text) => text.join(', '));
})()`);
