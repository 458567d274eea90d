/** Every command line that the documents show is one that scribe takes: its command is there, and so is every option. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { scribe } from '../cli/support.ts';

const top = join(import.meta.dirname, '../..');

const documents = async (): Promise<string[]> => {
  const below = await readdir(join(top, 'docs'), { recursive: true });
  return ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', ...below.map((name) => join('docs', name))].filter((name) =>
    name.endsWith('.md'),
  );
};

/** What stands in blocks, line by line, and between backticks, whole. */
const codeIn = (markdown: string): string[] => {
  const fences = [...markdown.matchAll(/^```\w*\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) => block.split('\n'));
  const prose = markdown.replace(/^```\w*\n[\s\S]*?^```/gm, '');
  const indented = prose.split('\n').filter((line) => /^ {4}\S/.test(line));
  const spans = [...prose.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span.replace(/\s+/g, ' '));
  return [...fences, ...indented, ...spans];
};

const COMMAND_LINE = /(?:^(?:\$ )?|[|;] |node7 )scribe ([a-z][a-z-]*)((?: [^|;#`]*)?)/;

/** The manual page of the command that the words begin with, of one or two words; null: there is none. */
const manualOf = async (first: string, second: string): Promise<string | null> => {
  for (const words of [[first, second], [first]]) {
    const { exitStatus, stdout } = await scribe([...words.filter((word) => word !== ''), '--help']);
    if (exitStatus === 0) return stdout;
  }
  return null;
};

test('every command line in the documents names a command that there is, with options that it has', async () => {
  const manuals = new Map<string, string | null>();
  let seen = 0;
  for (const document of await documents())
    for (const code of codeIn(await readFile(join(top, document), 'utf8'))) {
      const [, first = '', rest = ''] = COMMAND_LINE.exec(code) ?? [];
      if (first === '' || /[[\]]/.test(rest)) continue;
      const [second = ''] = /^[a-z-]+(?= |$)/.exec(rest.trim()) ?? [];
      const key = `${first} ${second}`;
      if (!manuals.has(key)) manuals.set(key, await manualOf(first, second));
      const manual = manuals.get(key) ?? null;
      assert.notEqual(manual, null, `${document}: "${code}": there is no command scribe ${key}`);
      for (const [option] of rest.matchAll(/(?<=^|\s)--[a-z][a-z-]*/g))
        assert.match(
          manual ?? '',
          new RegExp(`${option}(?![a-z-])`),
          `${document}: "${code}": scribe ${key} has no ${option}`,
        );
      seen += 1;
    }
  assert.ok(seen > 100, `only ${seen} command lines were found`);
});
