/**
 * Every class of vulnerabilities that runtimes are known to have had is in docs/vulnerability-classes.md, with a test that
 * is there and has the class in its name.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

const top = join(import.meta.dirname, '../..');
const page = 'docs/vulnerability-classes.md';

/** Where a class has several advisories, each counts: taking a row out of the page needs a line less here. */
const classes = `
CVE-2019-5736 CVE-2020-15157 CVE-2020-15257 CVE-2021-21334 CVE-2021-32760 CVE-2021-43816 CVE-2022-0811 CVE-2022-1708
CVE-2022-23471 CVE-2022-23648 CVE-2022-24769 CVE-2022-27652 CVE-2022-2995 CVE-2022-31030 CVE-2022-4318 CVE-2023-25153
CVE-2023-25173 CVE-2023-6476 CVE-2024-21626 CVE-2024-25621 CVE-2024-3154 CVE-2024-40635 CVE-2024-5154 CVE-2024-8676
CVE-2025-0750 CVE-2025-31133 CVE-2025-4437 CVE-2025-47290 CVE-2025-52565 CVE-2025-52881 CVE-2025-64329 CVE-2026-15809
CVE-2026-119101 CVE-2026-46680 CVE-2026-47262 CVE-2026-50195 CVE-2026-53488 CVE-2026-53489 CVE-2026-53492 CVE-2026-92574
GHSA-5j5w-g665-5m35 GHSA-7ww5-4wqc-m92c
`
  .trim()
  .split(/\s+/);
const withoutNumber = [
  'prototype pollution',
  'slow expressions',
  'decompression bombs',
  'rapid reset',
  'numbers beyond 2^53',
];

interface Row {
  readonly names: readonly string[];
  readonly file: string;
}

const rows = async (): Promise<readonly Row[]> =>
  (await readFile(join(top, page), 'utf8'))
    .split('\n')
    .filter((line) => / \| test\/\S+ \|$/.test(line))
    .map((line) => {
      const cells = line.split('|').map((cell) => cell.trim());
      return { names: (cells[1] ?? '').split(', '), file: cells.at(-2) ?? '' };
    });

/** Titles of tests in a file, as they stand in its source. */
const titlesIn = (source: string): readonly string[] =>
  [...source.matchAll(/\b(?:it|test)\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g)].map(([, , title = '']) => title);

test('every class has a row, and every row is of a class', async () => {
  const named = (await rows()).flatMap(({ names }) => names);
  assert.deepEqual(named.toSorted(), [...classes, ...withoutNumber].toSorted());
});

test('every class has a test that is named after it', async () => {
  const lacking: string[] = [];
  for (const { names, file } of await rows()) {
    const titles = titlesIn(await readFile(join(top, file), 'utf8'));
    for (const name of names) if (!titles.some((title) => title.includes(name))) lacking.push(`${name} in ${file}`);
  }
  assert.deepEqual(lacking, []);
});

test('a class without a test would be found', () => {
  assert.deepEqual(titlesIn("it('CVE-1: \\'x\\'', () => {});\n  test(\n    `CVE-2: y`,"), [
    "CVE-1: \\'x\\'",
    'CVE-2: y',
  ]);
  assert.deepEqual(titlesIn('// CVE-3 is only spoken of'), []);
});
