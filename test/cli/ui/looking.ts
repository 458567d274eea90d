/** What tests look at on the page of `scribe ui`, as expressions in it, and how they open a record. */
import type { Page } from '../../support/chromium.ts';

export const textOf = (selector: string): string => `document.querySelector(${JSON.stringify(selector)}).textContent`;
export const rowTexts = "[...document.querySelectorAll('#rows tr')].map((row) => row.textContent)";

/** How many pixels of a canvas have been drawn on. */
export const inkOn = (id: string): string => `(() => {
  const canvas = document.getElementById('${id}');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 3; at < data.length; at += 4) if (data[at] !== 0) count += 1;
  return count;
})()`;

export const panelOf = async (page: Page, seq: number): Promise<void> => {
  await page.until(
    `${textOf('#panel-title')} === 'Record ${seq}' && document.querySelectorAll('#panel [aria-busy=true]').length === 0`,
    `the panel of record ${seq}`,
  );
};

export const openRecord = async (page: Page, seq: number): Promise<void> => {
  await page.click(`tr[data-seq="${seq}"] button`);
  await panelOf(page, seq);
};

/** Texts whose contrast with what is behind them, by WCAG, is less than this; the filter's placeholder among them. */
export const faintTexts = (least: number): string => `(() => {
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
})()`;
