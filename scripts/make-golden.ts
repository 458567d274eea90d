/** Makes a golden journal (test/golden) of a journal or of a crash report that came from a node, and accepts what is decided today. */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { parseLevel } from '../src/cli/export/level.ts';
import { expectationOf, sequencedIn, writeExpectation } from '../test/golden/expectation.ts';
import { makeGolden } from './lib/golden/make.ts';

const GOLDEN = join(import.meta.dirname, '../test/golden/v1');

const HELP = `Usage: node scripts/make-golden.ts JOURNAL --name NAME [--thing THING]... [--around RECORD]...
                                   [--until RECORD] [--level LEVEL] [--dir DIR]
       node scripts/make-golden.ts --accept NAME... [--dir DIR]

Makes test/golden/v1/NAME.jsonl of a journal (journal.db, wherever it was copied to, or a root directory) or of the report of a
crash with its journal beside it, and NAME.expected.json: what is decided on it and asked for today. test/golden/golden.test.ts
holds every later version to that. Only what is about the chosen things is in it, with what decisions about them depended
on, numbered anew; what clients chose freely is replaced, so that it can be given away: everything is decided as it was all
the same, or nothing is written. Without --thing and --around it is about what could not be decided (of a report), or about the
first record that is decided otherwise today.

  --name NAME      of the files
  --thing THING    a pod, with its containers, or an image: pod/NAME, container/NAME or image/REFERENCE, or an id or its beginning
  --around RECORD  the things that this record, and what was decided with it, are about
  --until RECORD   nothing later
  --level LEVEL    what is kept: metadata (default: names, ids, states and numbers), request (also what calls asked for) or
                   request-response (everything)
  --dir DIR        writes there, and not to test/golden/v1
  --accept         writes the expectations of golden journals anew: for a request that is another one on purpose, and for a
                   mistake that was mended. A decision that is another one needs a rules version (src/domain/model/rules.ts)
  --help           this text

Read what git shows before you commit it: names of pods, namespaces, images and nodes are in it at every level.`;

const wrong = (message: string): never => {
  console.error(`${message}\n\n${HELP}`);
  process.exit(2);
};

const options = {
  name: { type: 'string' },
  thing: { type: 'string', multiple: true },
  around: { type: 'string', multiple: true },
  until: { type: 'string' },
  level: { type: 'string' },
  dir: { type: 'string', default: GOLDEN },
  accept: { type: 'boolean' },
  help: { type: 'boolean' },
} as const satisfies ParseArgsOptionsConfig;

const parsed = (() => {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
})();
const { values, positionals } = parsed;

const recordNumber = (text: string, option: string): number =>
  /^[1-9]\d{0,14}$/.test(text) ? Number(text) : wrong(`${option} is "${text}"; give the number of a record.`);

const fileOf = (name: string): string => join(values.dir, `${name}.jsonl`);

const expect = async (name: string): Promise<string> => {
  const expectation = expectationOf(sequencedIn(await readFile(fileOf(name), 'utf8')));
  await writeExpectation(fileOf(name), expectation);
  const { decisions, requests, differences } = expectation;
  const differs = differences.length === 0 ? '' : `; today differs: ${differences.join(', ')}`;
  return `${name}: ${decisions} decisions, ${requests.length} requests of effects${differs}`;
};

if (values.help === true) console.log(HELP);
else if (values.accept === true) {
  if (positionals.length === 0) wrong('Which golden journals? Give their names.');
  for (const name of positionals) console.log(await expect(basename(name, '.jsonl')));
} else {
  const [journal, extra] = positionals;
  const { name = '' } = values;
  if (journal === undefined) wrong('JOURNAL is missing.');
  if (extra !== undefined) wrong(`There is nothing to do with "${extra}".`);
  if (!/^[a-z0-9][a-z0-9-]*$/.test(name)) wrong('--name is missing, or is not of small letters, digits and "-".');
  if (existsSync(fileOf(name))) wrong(`${fileOf(name)} is there already; a golden journal is not written anew.`);
  try {
    const made = await makeGolden(journal ?? '', {
      things: values.thing ?? [],
      around: (values.around ?? []).map((text) => recordNumber(text, '--around')),
      until: values.until === undefined ? null : recordNumber(values.until, '--until'),
      level: parseLevel(values.level),
    });
    await writeFile(fileOf(name), made.text);
    console.log(`${made.records} of ${made.of} records, about ${made.things.join(', ')}`);
    console.log(await expect(name));
  } catch (error) {
    console.error(`make-golden: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
}
