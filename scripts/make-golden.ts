/** Writes down what golden journals (test/golden) are expected to be decided and to ask for today. */
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { expectationOf, sequencedIn, writeExpectation } from '../test/golden/expectation.ts';

const GOLDEN = join(import.meta.dirname, '../test/golden/v1');

const HELP = `Usage: node scripts/make-golden.ts --accept NAME...

Writes test/golden/v1/NAME.expected.json anew from test/golden/v1/NAME.jsonl: what is decided on it and asked for today. For a
request that is another one on purpose; read the difference that git shows before it is committed. A decision that is
another one needs a rules version (src/domain/model/rules.ts) instead, unless a mistake was mended that the journal shows.

  --accept  names golden journals whose expectations are written anew
  --help    this text`;

const { values, positionals } = parseArgs({
  options: { accept: { type: 'boolean' }, help: { type: 'boolean' } },
  allowPositionals: true,
});
if (values.help === true || values.accept !== true || positionals.length === 0) {
  console.log(HELP);
  process.exit(values.help === true ? 0 : 2);
}
for (const name of positionals) {
  const journal = join(GOLDEN, `${basename(name, '.jsonl')}.jsonl`);
  const expectation = expectationOf(sequencedIn(await readFile(journal, 'utf8')));
  await writeExpectation(journal, expectation);
  const { decisions, requests, differences } = expectation;
  console.log(
    `${name}: ${decisions} decisions, ${requests.length} requests of effects, ${differences.length} differences`,
  );
}
