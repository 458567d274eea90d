/** docs/cri-coverage.md has every RPC and every field of the wire contract, no other, and names tests that are there. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type CoverageRow, coverageRows, isOfTitle, testTitles } from '../../scripts/lib/cri-coverage.ts';

const top = join(import.meta.dirname, '../..');
const read = (path: string): Promise<string> => readFile(join(top, path), 'utf8');

/** Messages of the contract with their fields and the fields' types, by name. */
const messagesOf = (proto: string): ReadonlyMap<string, readonly (readonly [field: string, type: string])[]> =>
  new Map(
    [...proto.matchAll(/^message (\w+) \{(.*?)^\}/gms)].map(([, name = '', body = '']) => [
      name,
      [...body.matchAll(/^ {2}(?:repeated |optional )?(map<[^>]+>|[\w.]+) (\w+) = \d+/gm)].map(
        ([, type = '', field = '']) => [field, type] as const,
      ),
    ]),
  );

/** The messages that these are made of, themselves included. */
const withParts = (messages: ReturnType<typeof messagesOf>, names: readonly string[]): readonly string[] => {
  const found = new Set<string>();
  const visit = (name: string): void => {
    const fields = messages.get(name);
    if (fields === undefined || found.has(name)) return;
    found.add(name);
    for (const [, type] of fields) visit(type);
  };
  names.forEach(visit);
  return [...found];
};

const contract = await read('proto/cri/api.proto');
const document = await read('docs/cri-coverage.md');
const messages = messagesOf(contract);
const rows = coverageRows(document);
const covered = withParts(messages, ['PodSandboxConfig', 'ContainerConfig']);

const namesBelow = (wanted: string): readonly string[] =>
  rows.filter(({ heading }) => heading === wanted).map(({ name }) => name);

test('every RPC of the contract is in the table, and no other', () => {
  const rpcs = [...contract.matchAll(/^ {2}rpc (\w+)/gm)].map(([, name = '']) => name);
  assert.ok(rpcs.length > 40);
  assert.deepEqual(namesBelow('RPCs'), rpcs);
});

test('every field of PodSandboxConfig and ContainerConfig is in a table, and no other', () => {
  assert.ok(covered.includes('CDIDevice'));
  const listed = Object.fromEntries(covered.map((name) => [name, namesBelow(name)]));
  const wanted = Object.fromEntries(covered.map((name) => [name, (messages.get(name) ?? []).map(([field]) => field)]));
  assert.deepEqual(listed, wanted);
});

/** As tests spell what the contract calls `name`: log_directory, logDirectory, RunPodSandbox, runPodSandbox. */
const spellings = (name: string): readonly string[] => {
  const joined = name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return [name, joined, joined.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())];
};

/** What is wrong with a row, given the text of the file that it names; null when nothing is. */
const problemOf = ({ name, title }: CoverageRow, text: string): string | null => {
  if (!testTitles(text).includes(title)) return 'has no such test that runs';
  return spellings(name).some((word) => text.includes(word)) ? null : `says nothing of ${name}`;
};

/** They stand for messages of another system, of which nothing but the way through is to be seen. */
const isLeftOut = ({ heading, name }: CoverageRow): boolean => heading.startsWith('Windows') || name === 'windows';

test('every test that is named is there, is not skipped, and its file is about what it is named for', async () => {
  const wrong: string[] = [];
  for (const row of rows.filter((one) => !isLeftOut(one))) {
    const problem = problemOf(row, await read(row.file).catch(() => ''));
    if (problem !== null) wrong.push(`${row.heading} ${row.name}: ${row.file}: ${row.title}: ${problem}`);
  }
  assert.deepEqual(wrong, []);
});

test('a row whose test is not there, is only begun like one, is skipped or is of something else is found', () => {
  const row: CoverageRow = { heading: 'PodSandboxConfig', name: 'log_directory', file: 'x', title: 'a log is written' };
  const body = "() => run({ logDirectory: '/x' }));";
  assert.equal(problemOf(row, `test('a log is written', ${body}`), null);
  assert.equal(
    problemOf(row, `it(\n  'a log is written',\n  { timeout },\n  async (t) => run({ logDirectory }));`),
    null,
  );
  for (const text of [
    '',
    `test('a log is written and more', ${body}`,
    `describe('a log is written', ${body}`,
    `test('a log is written', { skip: noRoot }, ${body}`,
    `// test a log is written\ntest('another', ${body}`,
    "test('a log is written', () => run({ hostname: 'x' }));",
  ])
    assert.notEqual(problemOf(row, text), null, text);
});

test('what a title fills in can be anything, and nothing else can', () => {
  assert.ok(isOfTitle('refuses ${JSON.stringify(config)}', 'refuses {"a":1}'));
  assert.ok(isOfTitle('plain (a.b)', 'plain (a.b)'));
  assert.ok(!isOfTitle('plain (a.b)', 'plain (axb)'));
  assert.ok(!isOfTitle('refuses ${x}', 'takes it, refuses y'));
});
