/**
 * The engine and the adapters that perform for it, joined: adapters observe through the engine, and the engine performs
 * through them. Once it runs, what this start found is recorded and recovery is under way; nobody can call yet.
 */
import { hash } from 'node:crypto';
import type { Logger } from 'pino';
import { createRelabel } from '../platform/linux/selinux.ts';
import { ownSearchPath } from '../adapters/shim/adapter.ts';
import { withFeatures } from '../adapters/shim/runtime-features.ts';
import type { Config } from '../config/config.ts';
import type { AuditPolicy } from '../domain/model/audit-policy.ts';
import { KnownError } from '../domain/model/errors.ts';
import { isKnownDoubt, mayLackRecords } from '../domain/model/journal-doubt.ts';
import { findImage } from '../domain/image/names.ts';
import { lacksNetwork } from '../domain/pod-sandbox/network.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import type { Clock, Ids, Observe, SubmitCall } from '../engine/ports.ts';
import type { PublishedView } from '../engine/published-view.ts';
import { orAfter } from '../platform/rpc/timeout.ts';
import type { Opened } from './closing.ts';
import { readCrashFile, removeCrashFile } from './crash-file.ts';
import type { CrashScene } from './crash-report.ts';
import { createCredentials, type Credentials } from './credentials.ts';
import type { Die } from './fatal-end.ts';
import { daemonFacts } from './facts.ts';
import type { Report } from './findings.ts';
import { startNri } from './nri.ts';
import { type ImageUpkeep, startImageUpkeep } from './image-upkeep.ts';
import { type Performers, startPerformers } from './performers.ts';
import { prepareSelinux } from './selinux.ts';
import { createSessions, type Sessions } from './sessions/calls.ts';
import type { TakenOver } from './take-over.ts';

/** Shims are asked what became of their tasks when clients can call: nobody is kept from calling by it, nor it for long. */
const SERVING_WAIT_MS = 1_000;

export interface EngineSources {
  readonly config: Config;
  readonly version: string;
  readonly found: TakenOver;
  readonly view: PublishedView;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly die: Die;
  readonly scene: CrashScene;
  readonly opened: Opened;
  readonly log: Logger;
  readonly report: Report;
  /** Told that what was reported about it is so no more. */
  readonly settle: (about: string) => void;
}

export interface RunningEngine {
  readonly engine: Engine;
  readonly performers: Performers;
  readonly sessions: Sessions;
  readonly credentials: Credentials;
  readonly imageUpkeep: ImageUpkeep;
  /** Clients can call. */
  readonly served: () => void;
}

export async function runEngine(sources: EngineSources): Promise<RunningEngine> {
  const { config, version, found, view, clock, ids, die, scene, opened, log, report, settle } = sources;
  const { journal, state, node, obstacle, spawner, vault, ownCgroup, diskGuard, pauseRootfs } = found;
  let engine: Engine | null = null;
  const begun = Promise.withResolvers<void>();
  const serving = Promise.withResolvers<void>();
  const started = (): Engine => {
    if (engine === null) throw new KnownError('The daemon is starting.');
    return engine;
  };
  const observe: Observe = async (observation) => started().observe(observation);
  const submit: SubmitCall = async (draft, options) => started().call(draft, options);

  if (obstacle !== null) log.info(obstacle, 'pods with users of their own are refused');
  const handlers = withFeatures(
    {
      spawner,
      searchPath: ownSearchPath,
      kernelRelease: node.kernelRelease,
      mapsIds: obstacle === null,
      // Not a finding: `scribe doctor` looks for itself, and knows it for a warning.
      onEscapes: (runtime, version, { cves, fixedIn }) =>
        log.warn(
          { runtime, version, cves },
          `containers can escape from this runc, unless its distribution has mended it: install ${fixedIn} or later`,
        ),
    },
    config.runtime.handlers,
  );
  const relabel = createRelabel(spawner, ownSearchPath);
  const selinux = prepareSelinux({ config: config.runtime, node, pauseRootfs, relabel, report });
  const credentials = createCredentials();
  const sessions = createSessions(submit, ids);
  const performers = await startPerformers({
    ...{ config, version, node },
    spawner,
    relabel,
    vault,
    state,
    credentials,
    imageIsHere: (reference) => findImage(view.state, reference) !== undefined,
    sessions,
    ownCgroup,
    observe,
    whenRunning: begun.promise,
    whenServing: orAfter(serving.promise, SERVING_WAIT_MS, undefined),
    opened,
    log,
    report,
    settle,
  });
  const { images, cni, nri } = performers;
  const imageUpkeep = startImageUpkeep(
    {
      images,
      state: () => view.state,
      checkIntervalMs: config.images.checkIntervalMs,
      checkBytesPerSecond: config.images.checkBytesPerSecond,
      log,
      observe,
      report,
    },
    () => mayLackRecords(view.state, found.doubts),
  );
  opened.defer(imageUpkeep.close);

  const running = createEngine({
    journal,
    state,
    perform: performers.perform,
    clock,
    ids,
    boot: node.bootId,
    publish: view.publish,
    published: view.state,
    report,
    diskIsFull: diskGuard.isFull,
    fatal: die('the engine cannot go on'),
    digestOf: (text) => hash('sha256', text),
  });
  engine = running;
  scene.unfinished = running.unfinished;
  recordDoubts(running, found, log);
  const rebooted = state.facts !== null && state.facts.node.bootId !== node.bootId;
  const crash = readCrashFile(config.serve.stateDir);
  await running.start({
    facts: daemonFacts(config, node, await handlers, version, pauseRootfs, await selinux),
    rebooted,
    deadTasks: rebooted ? [] : found.dead,
    crash,
    ...(saysNothing(config.audit) ? {} : { audit: config.audit }),
  });
  opened.defer(() => running.stop('the start failed'));
  // Not before: a start that is killed leaves it to the next one.
  removeCrashFile(config.serve.stateDir, crash);
  found.diskNews.record(running.observe);
  begun.resolve();
  // Plugins that are launched are there before anybody can call.
  if (nri !== null) await startNri({ plugins: nri, observe, submit, view, log });
  // The network of the last life is in the journal, so pods need not wait for it to be read again.
  const networkRead = cni.start();
  if (lacksNetwork(state)) await networkRead;
  // What is read at the end, or while a start fails, finds nobody to tell: that is no reason of its own.
  const dieOfNetwork = die('the CNI configuration cannot be watched');
  networkRead.catch((error: unknown) => (running.isStopped() ? undefined : dieOfNetwork(error)));
  return { engine: running, performers, sessions, credentials, imageUpkeep, served: serving.resolve };
}

/** Before the start itself, whose decisions leave alone what is doubted. What is written down already is no news. */
const recordDoubts = ({ observe }: Engine, { doubts, state }: TakenOver, log: Logger): void => {
  for (const doubt of doubts) {
    if (!isKnownDoubt(state, doubt)) log.error(doubt, 'the journal is doubted: scribe doctor has more');
    void observe({ kind: 'JournalDoubted', doubt });
  }
};

/** As without a configuration. */
const saysNothing = ({ rules, seal }: AuditPolicy): boolean =>
  rules.length === 0 && Object.values(seal).every((patterns: readonly string[]) => patterns.length === 0);
