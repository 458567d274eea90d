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
