/** docs/why.md: what `scribe why` says of twelve staged failures. `node test/cli/why-page.ts` writes it. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openJournal } from '../../src/journal/open.ts';
import { type Failure, stageFailures } from './failures.ts';
import { scribe } from './support.ts';

const pagePath = join(import.meta.dirname, '../../docs/why.md');

const HEAD = `# Why is it so?

\`scribe why THING\` says in one sentence why a pod, container, image or call is as it is. Beneath it is what else is known,
and then the chain of causes, a record each. Here is what it says of twelve failures; a test stages each and keeps this
page true. The times are those of the staged nodes. \`--at\` asks about an earlier moment, \`--last-change container/ID.FIELD\`
for the record that changed a field last, and \`--json\` gives all of it to programs.
`;

export interface Explained extends Failure {
  readonly stdout: string;
}

export const explainAll = async (): Promise<Explained[]> => {
  const explained: Explained[] = [];
  for (const failure of await stageFailures()) {
    const dir = await mkdtemp(join(tmpdir(), 'scribe-why-'));
    try {
      const { journal } = openJournal({ path: join(dir, 'journal.db') });
      await journal.append(failure.records);
      await journal.close();
      const now = String(failure.records.at(-1)?.seq);
      const { stdout, stderr } = await scribe(['why', failure.thing, '--at', now, '--utc', '--root', dir]);
      explained.push({ ...failure, stdout: stdout === '' ? stderr : stdout });
    } finally {
      await rm(dir, { recursive: true });
    }
  }
  return explained;
};

const sectionOf = ({ title, story, thing, stdout }: Explained): string =>
  `## ${title}\n\n${story}\n\n\`\`\`\n$ scribe why ${thing}\n${stdout.trimEnd()}\n\`\`\`\n`;

export const pageOf = (explained: readonly Explained[]): string => `${[HEAD, ...explained.map(sectionOf)].join('\n')}`;

export const page = (): Promise<string> => readFile(pagePath, 'utf8');

if (process.argv[1] === import.meta.filename) await writeFile(pagePath, pageOf(await explainAll()));
