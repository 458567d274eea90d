/**
 * Makes a large journal, to measure and try commands on: what a busy node would have written, decided by the real
 * engine. The same seed makes the same records.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeJournal } from './lib/large-journal/make.ts';

const HELP = `Usage: node scripts/make-journal.ts FILE [--records N] [--seed N]

Makes FILE, a journal such as journal.db, with a chain and signed checkpoints: pods of services and jobs with labels,
probes, sessions, pulls, failures, restarts, an NRI plugin and several callers, over hours of a node's life.

  --records N  about so many records (1000000)
  --seed N     what happens (1); the same seed makes the same records
  --help       this text

Commands read it from its directory: scribe history --root DIR, where FILE is DIR/journal.db.`;

const wrong = (message: string): never => {
  console.error(`${message}\n\n${HELP}`);
  process.exit(2);
};

const parsed = (() => {
  try {
    const options = { records: { type: 'string' }, seed: { type: 'string' }, help: { type: 'boolean' } } as const;
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
})();

const numberIn = (name: string, text: string | undefined, otherwise: number): number => {
  if (text === undefined) return otherwise;
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : wrong(`${name} is "${text}"; give a whole number from 1.`);
};

if (parsed.values.help === true) {
  console.log(HELP);
  process.exit(0);
}
const [file, extra] = parsed.positionals;
if (file === undefined) wrong('FILE is missing.');
if (extra !== undefined) wrong(`There is nothing to do with "${extra}".`);
const path = resolve(file ?? '');
if (existsSync(path)) wrong(`${path} is there already; name a file that is not.`);
const wanted = numberIn('--records', parsed.values.records, 1_000_000);
const seed = numberIn('--seed', parsed.values.seed, 1);

mkdirSync(dirname(path), { recursive: true });
const startedMs = performance.now();
const isTerminal = process.stderr.isTTY;
let saidMs = startedMs;
const told = (records: number): string => {
  const seconds = (performance.now() - startedMs) / 1000;
  return `${records} of ${wanted} records, ${seconds.toFixed(0)} s, ${(records / seconds).toFixed(0)} a second`;
};
const made = await makeJournal({
  path,
  records: wanted,
  seed,
  progress(records) {
    if (performance.now() - saidMs < (isTerminal ? 250 : 15_000)) return;
    saidMs = performance.now();
    process.stderr.write(isTerminal ? `\r${told(records)} ` : `${told(records)}\n`);
  },
});
process.stderr.write(`${isTerminal ? '\r' : ''}${told(made)}: ${path}\n`);
// What the made-up node still waits for never comes.
process.exit(0);
