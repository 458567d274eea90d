/**
 * The daemon, put together: everything is made here, in the order in which it is needed.
 *
 *   claim-places.ts nobody else is here, or this ends at once
 *   take-over.ts    lock the journal, start a spawner, fold; find out what is there
 *   run-engine.ts   adapters and engine; daemon.started is recorded: recovery begins
 *   open-socket.ts  the socket opens: serving, until a signal
 *
 * Each part registers its closing where it is opened; when this ends, or fails on the way, they are closed in the reverse
 * order. When a part that all depends on ends, the daemon ends as a whole and pods stay (C20).
 */
import { randomBytes } from 'node:crypto';
import { flushCompileCache } from 'node:module';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import { createSystemClock } from '../platform/linux/clock.ts';
import { createNotify } from '../platform/linux/notify.ts';
import { giveBackWhenQuiet } from '../platform/linux/give-back.ts';
import { refuseCores } from '../platform/linux/syscalls.ts';
import type { Config } from '../config/config.ts';
import { isKnownDoubt, mayLackRecords } from '../domain/model/journal-doubt.ts';
import { copyState } from '../domain/model/state.ts';
import type { CallOptions, Ids } from '../engine/ports.ts';
import { publishedView } from '../engine/published-view.ts';
import { createView } from '../projections/view.ts';
import { claimPlaces } from './claim-places.ts';
import { firstError, type Opened } from './closing.ts';
import type { CrashScene } from './crash-report.ts';
import { createDie, dieWith } from './fatal-end.ts';
import { createFindings, reportTo } from './findings.ts';
import { createLog } from './log.ts';
import { makePlaces } from './make-places.ts';
import { openSocket } from './open-socket.ts';
import { runEngine } from './run-engine.ts';
import { reportSilentDeath } from './silent-death/report.ts';
import { writeV8ReportIn } from './silent-death/v8-report.ts';
import { reportThrownBySubscribers } from './subscribers.ts';
import { goBeforeOthers } from './own-priority.ts';
import { takeOver } from './take-over.ts';

export interface ServeOptions {
  readonly version: string;
  /** Reads the configuration again, as it was read at first. */
  readonly reloadConfig: () => Promise<Config>;
}

/** Runs the daemon until it is told to end (SIGTERM, SIGINT). Resolves when it has ended in order. */
export async function serve(config: Config, options: ServeOptions): Promise<void> {
  const log = createLog(config.serve.logLevel);
  process.umask(0o022);
  // Its memory holds credentials and environment values. A limit on cores (RLIMIT_CORE) would reach containers as well.
  refuseCores();
  try {
    await live(config, options, log);
  } catch (error) {
    throw firstError(error, log);
  } finally {
    log.flush();
  }
}

async function live(config: Config, { version, reloadConfig }: ServeOptions, log: Logger): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const findings = createFindings();
  const report = reportTo(findings, log);
  makePlaces(config.serve, report);
  writeV8ReportIn(config.serve.rootDir);
  await claimPlaces(config.serve, opened);
  const scene: CrashScene = { rootDir: config.serve.rootDir, version };
  const die = createDie(config.serve.stateDir, scene, log);
  reportThrownBySubscribers(log, report);
  const notify = createNotify(process.env.NOTIFY_SOCKET, (message) => log.warn(message));
  const clock = createSystemClock();
  const hangUps = hearHangUps(opened);

  const found = await takeOver(config, { opened, findings, report, log });
  goBeforeOthers(config.serve, log);
  // From here on there is a start in the journal, which is to have its end there too.
  const signalled = nextSignal(opened);
  // Before the engine goes on from that state.
  const knowsAllPods = found.state.facts !== null && !mayLackRecords(found.state, found.doubts);
  // What ended last is then in another journal than this.
  const isPutBack = found.doubts.some((doubt) => !isKnownDoubt(found.state, doubt));
  const view = publishedView(createView(copyState(found.state), found.seq));
  const common = { config, version, found, view, clock, ids: systemIds, opened, log, report, settle: findings.settle };
  const running = await runEngine({ ...common, die, scene });
  const { engine, imageUpkeep, performers, served } = running;
  const { cri, sessionListener, networkUpkeep, reload } = await openSocket({
    ...common,
    running,
    knowsAllPods,
    findings,
    reloadConfig,
  });

  let ending = false;
  const { cni, shim } = performers;
  dieWith({ journal: found.journal, cni, cri, shim, spawner: found.spawner }, die, () => ending);
  // Closed before all others, whose ends are no reason to die of when the start still fails.
  opened.defer(() => void (ending = true));

  served();
  imageUpkeep.served();
  networkUpkeep.served();
  log.info({ socket: config.serve.socketPath, sinceExecMs: Math.round(performance.now()) }, 'serving');
  hangUps.heardBy(() => {
    notify.reloading(clock.monoNs());
    void reload(BY_NOBODY_KNOWN, { signal: 'SIGHUP' }).then(notify.ready);
  });
  // Clients that only ask need not wait for it, but who waits for the daemon to be there means all of it.
  await Promise.race([performers.logKeeperThere, signalled]);
  notify.ready();
  const reporting = isPutBack ? Promise.resolve() : reportSilentDeath({ ...found, rootDir: config.serve.rootDir, log });
  opened.defer(() => reporting);
  // Compiled code is otherwise kept at an orderly end only, and a daemon that is killed has none.
  setImmediate(flushCompileCache);
  const givingBack = giveBackWhenQuiet((error) => log.warn({ error }, 'memory is kept that is not needed'));
  opened.defer(givingBack.close);
  view.changes.subscribe(givingBack.worked);

  const signal = await signalled;
  ending = true;
  log.info({ signal }, 'ending; pods stay');
  notify.stopping();
  // Before the engine ends, so that calls and sessions are written down as they end.
  const [cutOff] = await Promise.all([cri.drain(config.serve.drainTimeoutMs), sessionListener.close()]);
  if (cutOff > 0) log.warn({ calls: cutOff }, 'calls are cut off, for their time is up');
  // Before anything is closed, so that whoever still waits is answered.
  await engine.stop(signal);
}

/** A signal does not say who sent it. */
const BY_NOBODY_KNOWN: CallOptions = { caller: null, deadlineNs: null };

const systemIds: Ids = { hex64: () => randomBytes(32).toString('hex'), uuid: () => uuid() };

/** One that comes before there is anything to reload is kept for it: where nobody hears it, it ends the daemon. */
function hearHangUps(opened: Opened): { readonly heardBy: (reload: () => void) => void } {
  let reload: (() => void) | null = null;
  let missed = false;
  const hear = (): void => {
    if (reload === null) missed = true;
    else reload();
  };
  process.on('SIGHUP', hear);
  opened.defer(() => void process.removeListener('SIGHUP', hear));
  return {
    heardBy(given) {
      reload = given;
      if (missed) given();
    },
  };
}

const END_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** A second one, of either kind, finds nobody who hears it, and ends the daemon at once. */
function nextSignal(opened: Opened): Promise<string> {
  return new Promise((resolve) => {
    const leave = (): void => {
      for (const signal of END_SIGNALS) process.removeListener(signal, hear);
    };
    const hear = (signal: string): void => {
      leave();
      resolve(signal);
    };
    for (const signal of END_SIGNALS) process.on(signal, hear);
    opened.defer(leave);
  });
}
