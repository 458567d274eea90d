/**
 * Fails when a test that docs/cri-coverage.md names did not pass in the last whole run of the tests (scripts/test.ts), so
 * that no row rests on a test that was not run. What the rows say is test/project/cri-coverage.test.ts's business.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { wordsOrEnd } from './lib/command-line.ts';
import { coverageRows, isOfTitle } from './lib/cri-coverage.ts';
import { passedPath, type PassedTests } from './lib/passed-tests.ts';

const usage = `node scripts/cri-coverage.ts

Says whether every test that docs/cri-coverage.md names passed in the last whole run of the tests (npm test). Ends with
status 1 where one did not, or there was no such run.`;

wordsOrEnd({ usage, takesWords: false });
const document = await readFile(join(import.meta.dirname, '../docs/cri-coverage.md'), 'utf8');
const report = await readFile(passedPath, 'utf8').catch(() => null);
if (report === null) {
  console.error(`There is no report of a whole run at ${passedPath}: run npm test.`);
  process.exit(1);
}
const passed = JSON.parse(report) as PassedTests;
const rows = coverageRows(document);
const unseen = rows.filter(({ file, title }) => !(passed[file] ?? []).some((name) => isOfTitle(title, name)));
for (const { heading, name, file, title } of unseen)
  console.error(`${heading} ${name}: did not pass: ${file}: ${title}`);
console.log(`${rows.length - unseen.length} of ${rows.length} rows are shown by tests that passed`);
process.exitCode = unseen.length > 0 || rows.length === 0 ? 1 : 0;
