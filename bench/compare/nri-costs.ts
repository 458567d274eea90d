/**
 * What NRI costs CreateContainer: the same runtimes with NRI off, on without a plugin, and with a plugin that hears of
 * everything, all in turn, round by round, so that what else the machine does meets all of them. A cost is the median of
 * the differences within the rounds.
 */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Bench, callClient, type Plan } from './measure.ts';
import { type NriMode, nriModes, type Runtime, type RuntimeName } from './runtimes.ts';
import { median } from './statistics.ts';

const execute = promisify(execFile);
const MAIN = join(import.meta.dirname, '../../src/cli/main.ts');

/** What one kind of run comes to. */
export interface Outcome {
  readonly table: string;
  /** Every goal. */
  readonly areMet: boolean;
  readonly errors: readonly string[];
  readonly raw: object;
}

export interface NriRound {
  readonly round: number;
  readonly runtime: RuntimeName;
  readonly nri: NriMode;
  /** Median of the round's calls. */
  readonly createContainerMs: number;
  /** Processor time of the daemon for one container that is made and removed: other work hardly changes it. */
  readonly cpuMs: number;
}

interface Cost {
  readonly runtime: RuntimeName;
  readonly nri: NriMode;
  readonly createContainerMs: number;
  /** Beside NRI off. */
  readonly moreMs: number;
  /** The middle half of the rounds' differences lies between these. */
  readonly between: readonly [number, number];
  readonly cpuMs: number;
  readonly moreCpuMs: number;
}

/** Of all threads of a process that live. */
const cpuMsOf = async (pid: number): Promise<number> => {
  const threads = await readdir(`/proc/${pid}/task`);
  const times = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0')),
  );
  return times.reduce((sum, text) => sum + Number.parseInt(text, 10) / 1e6, 0);
};

/** What NRI may cost scribe; containerd's cost is there to be compared with. */
const goalsMs: Readonly<Record<NriMode, number | null>> = { off: null, none: 0.1, logger: 2 };

const measureRound = async (bench: Bench, runtime: Runtime, round: number, { pods }: Plan) => {
  const before = await cpuMsOf(runtime.pid());
  const { samplesMs = {}, errors = [] } = await callClient(runtime, bench, 'containers', { count: pods });
  const cpuMs = ((await cpuMsOf(runtime.pid())) - before) / pods;
  const createContainerMs = median(samplesMs['CreateContainer'] ?? []);
  return { round, runtime: runtime.name, nri: runtime.nri, createContainerMs, cpuMs, errors };
};

const quarters = (values: readonly number[]): readonly [number, number] => {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number): number => sorted[Math.round((sorted.length - 1) * part)] ?? Number.NaN;
  return [at(0.25), at(0.75)];
};

/** One for each runtime and mode, in the order of the table. */
export const costsOf = (rounds: readonly NriRound[]): readonly Cost[] => {
  const timesOf = (runtime: RuntimeName, nri: NriMode, figure: 'createContainerMs' | 'cpuMs'): readonly number[] =>
    rounds.filter((one) => one.runtime === runtime && one.nri === nri).map((one) => one[figure]);
  const differences = (times: readonly number[], base: readonly number[]): readonly number[] =>
    times.map((time, at) => time - (base[at] ?? Number.NaN));
  return [...new Set(rounds.map(({ runtime }) => runtime))].flatMap((runtime) => {
    const [off, cpuOff] = [timesOf(runtime, 'off', 'createContainerMs'), timesOf(runtime, 'off', 'cpuMs')];
    return nriModes.map((nri) => {
      const [times, cpu] = [timesOf(runtime, nri, 'createContainerMs'), timesOf(runtime, nri, 'cpuMs')];
      const more = differences(times, off);
      return {
        ...{ runtime, nri, createContainerMs: median(times), moreMs: median(more), between: quarters(more) },
        ...{ cpuMs: median(cpu), moreCpuMs: median(differences(cpu, cpuOff)) },
      };
    });
  });
};

const goalOf = ({ runtime, nri }: Cost): number | null => (runtime === 'scribe' ? goalsMs[nri] : null);
const isMet = (cost: Cost): boolean => cost.moreMs <= (goalOf(cost) ?? Infinity);

const modeWords: Readonly<Record<NriMode, string>> = {
  off: 'NRI off',
  none: 'NRI on, no plugin',
  logger: 'logger connected',
};

const table = (costs: readonly Cost[]): string => {
  const lines = costs.map((cost) => {
    const { runtime, nri, createContainerMs, moreMs, between, cpuMs, moreCpuMs } = cost;
    const goal = goalOf(cost);
    const [least, most] = between.map((value) => value.toFixed(2));
    const more = nri === 'off' ? '|  |' : `${moreMs.toFixed(2)} | ${least} to ${most} |`;
    const judged = goal === null ? ' |' : `at most ${goal} ms more | ${isMet(cost) ? 'met' : 'MISSED'}`;
    const cpu = `${cpuMs.toFixed(2)} | ${nri === 'off' ? '' : moreCpuMs.toFixed(2)}`;
    return `| ${runtime}, ${modeWords[nri]} | ${createContainerMs.toFixed(2)} | ${more} ${cpu} | ${judged} |`;
  });
  const head = [
    '| | CreateContainer, ms | more, ms | half of the rounds | CPU, ms | more, ms | goal | |',
    '|---|---:|---:|---:|---:|---:|---|---|',
  ];
  return [...head, ...lines].join('\n');
};

/** What `scribe nri --json` says of how long a plugin took, as far as it is read here. */
interface PluginFigures {
  readonly latencies: readonly { readonly hook: string; readonly p50Ns: string }[];
}

/** Those that are waited for before CreateContainer is answered. */
const HOOKS = ['CreateContainer', 'ValidateContainerAdjustment'];
const NS_PER_MS = 1e6;

/** How long scribe's logger took from request to answer, over its last 256: that much of the cost is not scribe's. */
const ownTimes = async ({ runtimes }: Bench): Promise<string> => {
  const asked = runtimes.find(({ name, nri }) => name === 'scribe' && nri === 'logger');
  if (asked === undefined) return '';
  const { stdout } = await execute(process.execPath, [MAIN, 'nri', '--json', '--socket', asked.socket]);
  const { latencies } = JSON.parse(stdout) as PluginFigures;
  const times = latencies
    .filter(({ hook }) => HOOKS.includes(hook))
    .map(({ hook, p50Ns }) => `${hook} ${(Number(p50Ns) / NS_PER_MS).toFixed(2)} ms`);
  return `The plugin's own time, from scribe's request to its answer (p50): ${times.join(', ')}.`;
};

/** Measures and judges; `pods` of the plan says how many containers a round makes of each. */
export const nriCosts = async (bench: Bench, plan: Plan): Promise<Outcome> => {
  const rounds: (NriRound & { readonly errors: readonly string[] })[] = [];
  for (const runtime of bench.runtimes) await measureRound(bench, runtime, 0, plan);
  for (let round = 1; round <= plan.rounds; round += 1) {
    // Who comes first in one round comes last in the next.
    for (const runtime of round % 2 === 0 ? bench.runtimes.toReversed() : bench.runtimes)
      rounds.push(await measureRound(bench, runtime, round, plan));
    const said = rounds
      .slice(-bench.runtimes.length)
      .map(({ runtime, nri, createContainerMs: ms }) => `${runtime} ${nri} ${ms.toFixed(2)}`);
    bench.progress(`round ${round} of ${plan.rounds}: ${said.join(', ')}`);
  }
  const costs = costsOf(rounds);
  return {
    table: `${table(costs)}\n\n${await ownTimes(bench)}`,
    areMet: costs.every(isMet),
    errors: rounds.flatMap(({ runtime, nri, round, errors }) =>
      errors.map((error) => `${runtime}, NRI ${nri}, round ${round}: ${error}`),
    ),
    raw: { costs, rounds },
  };
};
