/** WCAG 2.2, 1.4.11: what the pictures are drawn in stands out by 3 to 1 from what it is drawn upon, light and dark. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { TONES } from '../../src/ui/kinds.ts';
import { crowdPx, LINE_PX, MARK_PX } from '../../src/ui/layout.ts';

const LEAST = 3;

/** #1b1f24 as relative luminance. */
const luminanceOf = (colour: string): number => {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};

const contrastOf = (one: string, other: string): number => {
  const [a, b] = [luminanceOf(one) + 0.05, luminanceOf(other) + 0.05];
  return Math.max(a, b) / Math.min(a, b);
};

test('marks, lives and the chosen row are told from their background in both schemes', async () => {
  const css = await readFile(join(import.meta.dirname, '../../src/ui/page.css'), 'utf8');
  const colours = new Map(
    [...css.matchAll(/--(\w+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name = '', light = '', dark = '']) => [
      name,
      { light, dark },
    ]),
  );
  const pairs = [
    ...TONES.flatMap((tone) => ['paper', 'runs', 'chosen'].map((behind) => [tone, behind] as const)),
    ...['paper', 'chosen'].flatMap((behind) => ['life', 'ink'].map((drawn) => [drawn, behind] as const)),
  ];
  for (const scheme of ['light', 'dark'] as const)
    for (const [drawn, behind] of pairs) {
      const [front, back] = [colours.get(drawn)?.[scheme] ?? '', colours.get(behind)?.[scheme] ?? ''];
      const contrast = contrastOf(front, back);
      assert.ok(contrast >= LEAST, `${scheme}: --${drawn} upon --${behind} has ${contrast.toFixed(2)} to 1`);
    }
});

test('every mark sticks out from the line that it is on, from which its colour need not tell it', () => {
  for (const [what, px] of Object.entries({ ...MARK_PX, crowd: crowdPx(1) }))
    assert.ok(px >= LINE_PX + 3, `${what} is ${px} px high, on a line of ${LINE_PX}`);
});
