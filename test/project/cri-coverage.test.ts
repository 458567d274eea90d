/** docs/cri-coverage.md has every RPC and every field of the wire contract, no other, and names tests that are there. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

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

interface Row {
  readonly name: string;
  readonly what: string;
  readonly test: string;
}

/** Rows of the tables below a heading, up to the next heading. */
const rowsBelow = (document: string, heading: string): readonly Row[] => {
  const section = document.split(/^#+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^\| (\w+) \| (.+?) \| (.+?) \|$/gm)]
    .map(([, name = '', what = '', shownBy = '']) => ({ name, what, test: shownBy }))
    .filter(({ test: shownBy }) => shownBy !== 'shown by');
};

const contract = await read('proto/cri/api.proto');
const document = await read('docs/cri-coverage.md');
const messages = messagesOf(contract);
const covered = withParts(messages, ['PodSandboxConfig', 'ContainerConfig']);

test('every RPC of the contract is in the table, and no other', () => {
  const rpcs = [...contract.matchAll(/^ {2}rpc (\w+)/gm)].map(([, name = '']) => name);
  assert.ok(rpcs.length > 40);
  assert.deepEqual(
    rowsBelow(document, 'RPCs').map(({ name }) => name),
    rpcs,
  );
});

test('every field of PodSandboxConfig and ContainerConfig is in a table, and no other', () => {
  assert.ok(covered.includes('CDIDevice'));
  const listed = Object.fromEntries(covered.map((name) => [name, rowsBelow(document, name).map((row) => row.name)]));
  const wanted = Object.fromEntries(covered.map((name) => [name, (messages.get(name) ?? []).map(([field]) => field)]));
  assert.deepEqual(listed, wanted);
});

test('every test that is named is there', async () => {
  const rows = ['RPCs', ...covered].flatMap((heading) => rowsBelow(document, heading));
  const missing: string[] = [];
  for (const { name, test: shownBy } of rows) {
    const [path = '', title = ''] = shownBy.split(/: (.*)/s);
    const text = await read(path).catch(() => '');
    const titles = [...text.matchAll(/(?:test|it|describe|suite)\((['`"])(.*?)\1/gs)].map(([, , found = '']) => found);
    if (title === '' || !titles.some((found) => found.startsWith(title))) missing.push(`${name}: ${shownBy}`);
  }
  assert.deepEqual(missing, []);
});
