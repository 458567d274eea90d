/**
 * Compares scribe with containerd in one run: builds what is missing, starts both in a network namespace of their own
 * with the same shim, OCI runtime, CNI plugins and images, measures them in turn, round by round, prints medians and
 * ratios beside the goals, and takes everything away again. Only what is below the cache directory stays.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cacheDir } from '../scripts/lib/cache-dir.ts';
import { buildImage, busyboxImage } from '../scripts/lib/image.ts';
import { pauseProgram } from '../src/adapters/pause/pause-program.ts';
import { type Owner, onCleanup } from '../test/support/cleanup.ts';
import { privateMounts, withoutUnified } from '../test/support/mount-namespace.ts';
import { makeCertificates } from '../test/support/images/fault-server.ts';
import { type Netns, netnsOf } from '../test/support/netns.ts';
import { runOk, startProcess } from '../test/support/process.ts';
import { type Registry, startRegistry } from '../test/support/registry.ts';
import { stageBoot } from '../test/support/staged-boot.ts';
import { keepWriting } from './compare/busy-disk.ts';
import { pushManyImages } from './compare/images.ts';
import { namedIn, optionsOrEnd, positive } from './options.ts';
import { loadNow, readEnvironment } from './compare/environment.ts';
import { type Bench, measureAll, type Plan, removePods } from './compare/measure.ts';
import { longPhases, phaseNames, pullPhases, usualPhases } from './compare/phases.ts';
import { errorsOf, rowsOf, tableOf } from './compare/report.ts';
import { nriCosts, type Outcome } from './compare/nri-costs.ts';
import {
  type Content,
  halfRandomContent,
  programContent,
  type PullKind,
  pullKinds,
  pushPullImages,
} from './compare/pulls.ts';
import {
  crunOfAnyVersion,
  nriModes,
  type PeerName,
  type Runtime,
  startRuntime,
  STATE_DIR,
} from './compare/runtimes.ts';

const usage = `node bench/compare.ts [--rounds N] [--pods N] [--loaded N] [--seconds S] [--lives N] [--dense N] [--pods-per-shim N] [--images N] [--pull-mb N] [--pull-programs] [--pull-kinds KIND,...] [--turn-ms N] [--tls] [--only PHASE,...] [--alone] [--disk-busy] [--out FILE]

  --rounds N    rounds, each of which measures scribe and containerd in turn (7)
  --pods N      pods of a serial round and commands of an exec round; a parallel round has twice as many (20)
  --loaded N    pods that are there while memory, rates and restarts are measured, and before a reboot (100)
  --seconds S   duration of each measurement of a rate (2)
  --lives N     pods that run and are removed in each round of lives, and of loop (300)
  --dense N     pods of a round of density, of one runtime at a time (300)
  --pods-per-shim N  what scribe is configured with (1)
  --images N    images of a round of images (100)
  --pull-mb N   size of a large layer that is pulled, in MB, before it is compressed (100)
  --pull-programs  large layers hold pieces of this machine's programs and libraries, and not bytes half of which are random
  --pull-kinds LIST  some of what is pulled only: ${pullKinds.join(', ')}
  --turn-ms N   a registry that is so far away: milliseconds there and back, for images and pulls (on loopback unless told)
  --tls         the registry speaks TLS
  --only LIST   some phases only: ${phaseNames.join(', ')};
                unless told, all but the long ones: ${longPhases.join(', ')}
  --before DIR  another clone of scribe (an earlier commit, say), measured in containerd's place: no goals then
  --alone       scribe alone, where the other runtime's pods would only take time and memory: no ratios, and the
                goals of figures that are compared with nothing
  --disk-busy   while another process writes 64 MiB to the same disk and syncs them, again and again: no goals then
  --nri         what NRI costs CreateContainer, and nothing else: each runtime with NRI off, on without a plugin, and
                with the sample plugin logger connected, all in turn; --pods says how many containers of a round
  --crun        both with crun in place of runc, where an empty v2 hierarchy beside cgroup v1 is not mounted
  --out FILE    where every single measurement is written as JSON (a file in the cache directory)

Runs as root. What it builds, it builds once, into scribe/bench/bin of the cache directory (XDG_CACHE_HOME, ~/.cache);
SCRIBE_BENCH_BIN names another directory. Ends with status 1 when a goal is missed or a call failed. What is measured
and how: docs/benchmarks/method.md.`;

interface Options {
  readonly plan: Plan;
  readonly out: string | undefined;
  readonly images: number;
  readonly pullMb: number;
  readonly makeContent: () => Promise<Content>;
  readonly pullKinds: readonly PullKind[];
  /** null: the registry is on this machine's own loopback. */
  readonly turnMs: number | null;
  readonly isTls: boolean;
  readonly podsPerShim: number;
  readonly before: string | undefined;
  readonly isAlone: boolean;
  readonly isDiskBusy: boolean;
  readonly nri: boolean;
  readonly crun: boolean;
}

/** Throws one sentence for anything that it cannot take. */
const readOptions = (): Options => {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '7' },
      pods: { type: 'string', default: '20' },
      loaded: { type: 'string', default: '100' },
      seconds: { type: 'string', default: '2' },
      lives: { type: 'string', default: '300' },
      dense: { type: 'string', default: '300' },
      'pods-per-shim': { type: 'string', default: '1' },
      images: { type: 'string', default: '100' },
      'pull-mb': { type: 'string', default: '100' },
      'pull-programs': { type: 'boolean', default: false },
      'turn-ms': { type: 'string' },
      tls: { type: 'boolean', default: false },
      'pull-kinds': { type: 'string', default: pullKinds.join(',') },
      only: { type: 'string', default: usualPhases.join(',') },
      out: { type: 'string' },
      before: { type: 'string' },
      alone: { type: 'boolean', default: false },
      'disk-busy': { type: 'boolean', default: false },
      nri: { type: 'boolean', default: false },
      crun: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  const count = (name: 'rounds' | 'pods' | 'loaded' | 'lives' | 'dense' | 'pods-per-shim' | 'images'): number =>
    positive(name, values[name], Number.isInteger);
  const seconds = positive('seconds', values.seconds, Number.isFinite);
  if (values.alone && values.before !== undefined)
    throw new Error('--alone and --before: another clone is measured, or none is');
  const phases = namedIn('only', values.only, phaseNames);
  return {
    plan: {
      phases,
      rounds: count('rounds'),
      pods: count('pods'),
      loaded: count('loaded'),
      lives: count('lives'),
      dense: count('dense'),
      seconds,
    },
    out: values.out,
    podsPerShim: count('pods-per-shim'),
    images: count('images'),
    isTls: values.tls,
    turnMs: values['turn-ms'] === undefined ? null : positive('turn-ms', values['turn-ms'], Number.isFinite),
    pullMb: positive('pull-mb', values['pull-mb'], Number.isInteger),
    makeContent: values['pull-programs'] ? programContent : () => Promise.resolve(halfRandomContent),
    pullKinds: namedIn('pull-kinds', values['pull-kinds'], pullKinds),
    before: values.before,
    isAlone: values.alone,
    isDiskBusy: values['disk-busy'],
    nri: values.nri,
    crun: values.crun,
  };
};

const benchDir = join(cacheDir(), 'bench');
const bin = process.env['SCRIBE_BENCH_BIN'] || join(benchDir, 'bin');
const registryName = 'registry.example';
const removalTimeoutMs = 120_000;

const progress = (text: string): void => console.error(`${new Date().toTimeString().slice(0, 8)}  ${text}`);

/** Builds and installs what is missing; says what it does itself. */
const setUp = async (): Promise<void> => {
  const setup = spawn('sh', [join(import.meta.dirname, '../scripts/setup.sh'), 'bench'], { stdio: ['ignore', 2, 2] });
  const [code] = (await once(setup, 'exit')) as [number | null];
  if (code !== 0) throw new Error('what the benchmark needs could not be made ready');
};

/** Both sides with the images that they need, in a namespace where nothing else is. */
const startAll = async (
  owner: Owner,
  dir: string,
  {
    before,
    isAlone,
    nri,
    crun,
    plan,
    images,
    pullMb,
    makeContent,
    pullKinds: kinds,
    turnMs,
    isTls,
    podsPerShim,
  }: Options,
  signal: AbortSignal,
): Promise<Bench> => {
  const netns = await netnsOf(owner);
  const certificates = isTls ? { certificates: await makeCertificates(owner) } : {};
  const registry = await startRegistry(owner, { netns, ...certificates });
  await registry.push('busybox', 'latest', await busyboxImage());
  const pause = await buildImage([[{ name: 'pause', content: pauseProgram(process.arch) }]], {
    Entrypoint: ['/pause'],
  });
  await registry.push('pause', 'latest', pause);
  const isPulled = plan.phases.some((phase) => pullPhases.includes(phase));
  if (isPulled) progress(`building the images that are pulled, of layers of ${pullMb} MB`);
  const pullImages = isPulled ? await pushPullImages(registry, registryName, pullMb, await makeContent(), kinds) : null;
  const manyImages = plan.phases.includes('images') ? await pushManyImages(registry, registryName, images) : null;
  const registryConfigDir = await registry.mirrorsFor([registryName], await frontOf(owner, registry, netns, turnMs));
  const pauseImage = `${registryName}/pause:latest`;
  const mounts = crun ? withoutUnified : '';
  const staged = plan.phases.includes('reboot') ? await stageBoot(owner, dir, mounts) : null;
  const mountNamespace = staged?.mountNamespace ?? (crun ? await privateMounts(owner, mounts) : undefined);
  const around = {
    ...{ dir, bin, netns, registryConfigDir, pauseImage, podsPerShim, hasMetrics: plan.phases.includes('loop') },
    ociRuntime: crun ? await crunIn(dir) : 'runc',
    ...(mountNamespace === undefined ? {} : { mountNamespace }),
    ...(before === undefined ? {} : { before }),
  } as const;
  const runtimes: Runtime[] = [];
  for (const mode of nri ? nriModes : (['none'] as const))
    for (const name of ['scribe', ...(isAlone ? [] : [peerOf(before)])] as const) {
      signal.throwIfAborted();
      const runtime = await startRuntime(owner, name, around, mode);
      progress(`${name} serves, NRI ${mode}: ${runtime.version}`);
      runtimes.push(runtime);
    }
  const image = `${registryName}/busybox:latest`;
  const client = netns.inside([join(bin, 'bench-client')]);
  return { runtimes, image, pullImages, manyImages, staged, dir, client, signal, progress };
};

/** What pulls ask in the registry's place: a link that takes time; undefined: the registry itself. */
const frontOf = async (
  owner: Owner,
  { host }: Registry,
  netns: Netns,
  turnMs: number | null,
): Promise<string | undefined> => {
  if (turnMs === null) return undefined;
  const program = join(import.meta.dirname, 'compare/slow-link.ts');
  const link = await startProcess(owner, netns.inside([process.execPath, program, host, String(turnMs)]));
  const [, front] = await link.until(/listening on (127\.0\.0\.1:\d+)/);
  return front;
};

const crunIn = async (dir: string): Promise<string> => {
  const path = join(dir, 'crun');
  await writeFile(path, crunOfAnyVersion, { mode: 0o755 });
  return path;
};

const peerOf = (before: string | undefined): PeerName => (before === undefined ? 'containerd' : 'before');

/** Measures, prints and writes; resolves with whether nothing failed and every goal was met. */
const runAndReport = async (bench: Bench, options: Options): Promise<boolean> => {
  const { plan, out } = options;
  const environment = await readEnvironment(bench.runtimes, bin, options.crun ? 'crun' : 'runc');
  const loadBefore = loadNow();
  const stopWriting = options.isDiskBusy ? keepWriting(bench.dir) : null;
  const measuring = options.nri ? nriCosts(bench, plan) : comparison(bench, options);
  const { table, areMet, errors, raw } = await measuring.finally(stopWriting);
  const { rounds, pods, loaded, seconds } = plan;
  const conditions = {
    ...environment,
    'load before': loadBefore,
    'load after': loadNow(),
    plan: `rounds ${rounds}, pods ${pods}, loaded ${loaded}, seconds ${seconds}, dense ${plan.dense}, pods per shim ${options.podsPerShim}${options.isDiskBusy ? ', disk busy' : ''}`,
  };

  const path = out ?? join(benchDir, `results/${new Date().toISOString().replaceAll(':', '-').slice(0, 19)}.json`);
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, `${JSON.stringify({ conditions, plan, errors, ...raw }, null, 1)}\n`);

  for (const [name, value] of Object.entries(conditions)) console.log(`- ${name}: ${value}`);
  console.log(`\n${table}\n`);
  for (const error of errors) console.log(`FAILED: ${error}`);
  console.log(`every measurement: ${path}`);
  return errors.length === 0 && areMet;
};

const comparison = async (bench: Bench, { plan, before, isAlone, isDiskBusy }: Options): Promise<Outcome> => {
  const peer = isAlone ? null : peerOf(before);
  const measurements = await measureAll(bench, plan);
  // Goals are of a quiet machine; those beside a busy disk have a phase of their own.
  const rows = rowsOf(measurements, peer).map((row) => (isDiskBusy ? { ...row, goal: null } : row));
  return {
    table: tableOf(rows, peer),
    areMet: rows.every(({ goal }) => goal?.met !== false),
    errors: errorsOf(measurements),
    raw: { rows, measurements },
  };
};

const main = async (options: Options): Promise<void> => {
  const undos: (() => Promise<void>)[] = [];
  const owner: Owner = { after: (undo) => undos.push(undo) };
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      progress('ending: taking everything away first');
      ending.abort(new Error(`ended by ${signal}`));
    });
  }
  try {
    await setUp();
    await mkdir(benchDir, { recursive: true });
    const dir = await mkdtemp(join(benchDir, 'run-'));
    onCleanup(owner, () => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
    const stateDir = join(dir, STATE_DIR);
    await mkdir(stateDir);
    await runOk(['mount', '-t', 'tmpfs', '-o', 'mode=0755', 'scribe-bench', stateDir]);
    onCleanup(owner, async () => {
      await runOk(['umount', '--lazy', stateDir]);
    });
    const bench = await startAll(owner, dir, options, ending.signal);
    try {
      process.exitCode = (await runAndReport(bench, options)) ? 0 : 1;
    } finally {
      // Not left to the end of the shims: killed ones leave their sockets behind.
      await removePods({ ...bench, signal: AbortSignal.timeout(removalTimeoutMs) }).catch((error: unknown) =>
        progress(`the pods are taken away the hard way: ${String(error)}`),
      );
    }
  } catch (error) {
    console.error(
      ending.signal.aborted ? String(ending.signal.reason) : error instanceof Error ? error.message : error,
    );
    process.exitCode = ending.signal.aborted ? 130 : 1;
  } finally {
    for (const undo of undos.reverse()) await undo();
  }
};

await main(optionsOrEnd('bench/compare.ts', readOptions));
