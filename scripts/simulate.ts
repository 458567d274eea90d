/**
 * Runs simulated histories from fresh seeds on all cores and tells what was found: each history is daemons, clients and a
 * node that fails, all of it decided by one seed. How many `npm test` runs, and what is checked: docs/reliability.md.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { BOUNDARIES } from '../test/simulation/boundaries.ts';
import { DIMENSIONS, type Dimension } from '../test/simulation/dimensions.ts';
import { runHistories } from '../test/simulation/run.ts';

const HELP = `Usage: node scripts/simulate.ts [HISTORIES] [--seed N] [--threads N] [--sqlite]
                                [--about WHAT]...

Runs so many simulated histories (10000) and tells what is found at once, the first of each
thread shrunk to what matters.

  --seed N     begin with this seed instead of a fresh one; one history of a seed is
               node scripts/simulate.ts 1 --seed N
  --threads N  so many threads instead of one a core
  --sqlite     on the journal that scribe runs on, and not on its twin in memory
  --about WHAT histories that are all about what few are otherwise: "all", or some of
               ${DIMENSIONS.join('\n               ')}
  --help       this text

Ends with status 1 when something was found, and 2 when it can't tell what is wanted.`;

/** In so many histories the daemon should have died everywhere. */
const ALL_BOUNDARIES = 5000;

const wrong = (message: string): never => {
  console.error(`${message}\n\n${HELP}`);
  process.exit(2);
};

const numberIn = (name: string, text: string | undefined, otherwise: number, least: number): number => {
  if (text === undefined) return otherwise;
  const number = Number(text);
  return Number.isSafeInteger(number) && number >= least
    ? number
    : wrong(`${name} is "${text}"; give a whole number from ${least}.`);
};

const parsed = (() => {
  try {
    const options = {
      seed: { type: 'string' },
      threads: { type: 'string' },
      sqlite: { type: 'boolean' },
      about: { type: 'string', multiple: true },
      help: { type: 'boolean' },
    } as const;
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
})();

if (parsed.values.help === true) {
  console.log(HELP);
  process.exit(0);
}
if (parsed.positionals.length > 1) wrong(`There is nothing to do with "${parsed.positionals[1] ?? ''}".`);
const count = numberIn('HISTORIES', parsed.positionals[0], 10_000, 1);
const firstSeed = numberIn('--seed', parsed.values.seed, Date.now() % 1_000_000_000, 0);
const threads = Math.min(count, numberIn('--threads', parsed.values.threads, availableParallelism(), 1));

const about = (parsed.values.about ?? []).flatMap((name): readonly Dimension[] => {
  if (name === 'all') return DIMENSIONS;
  const dimension = DIMENSIONS.find((one) => one === name);
  return dimension === undefined
    ? wrong(`--about is "${name}"; give all or one of ${DIMENSIONS.join(', ')}.`)
    : [dimension];
});

const startedMs = performance.now();
const seconds = (): number => (performance.now() - startedMs) / 1000;
console.log(`${count} histories from seed ${firstSeed} on ${threads} threads`);
let saidMs = 0;
const result = await runHistories({
  firstSeed,
  count,
  threads,
  onSqlite: parsed.values.sqlite === true,
  about,
  progress(ended, found) {
    const isTerminal = process.stdout.isTTY;
    if (performance.now() - saidMs < (isTerminal ? 500 : 30_000)) return;
    saidMs = performance.now();
    const line = `${ended} of ${count} histories, ${(ended / seconds()).toFixed(0)} a second, ${found} findings`;
    process.stdout.write(isTerminal ? `\r${line} ` : `${line}\n`);
  },
  found: ({ seed, message }) => console.log(`\nFound with seed ${seed}:\n${message}`),
});
const eachMs = result.threadMs / (result.histories + result.failures.length);
const crashes = new Map(result.crashes);
const never = BOUNDARIES.filter((boundary) => !crashes.has(boundary));
console.log(
  `\n${result.histories} histories without a finding, ${result.failures.length} with one, in ${seconds().toFixed(0)} s; ${result.steps} steps, ${[...crashes.values()].reduce((a, b) => a + b, 0)} ends of the daemon`,
);
console.log(
  `${(result.histories / seconds()).toFixed(0)} a second; each took ${eachMs.toFixed(1)} ms of processor time, or ${(eachMs / result.yardstickMs).toFixed(1)} yardsticks of ${result.yardstickMs.toFixed(1)} ms`,
);
if (count >= ALL_BOUNDARIES && never.length > 0) console.log(`The daemon never died at: ${never.join(', ')}`);
process.exitCode = result.failures.length > 0 ? 1 : 0;
