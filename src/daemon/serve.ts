/**
 * The daemon, put together: everything is made here, in the order in which it is needed, and taken apart at the end.
 *
 *   claim-places.ts nobody else is here, or this ends at once
 *   take-over.ts    lock the journal, start a spawner, fold; find out what is there
 *   run-engine.ts   adapters and engine; daemon.started is recorded: recovery begins
 *   here            the socket opens: serving, until a signal
 *
 * When a part that all depends on ends, the daemon ends as a whole and pods stay (C20).
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { startCriServer } from '../adapters/cri/server.ts';
import { createSystemClock } from '../platform/linux/clock.ts';
import { createNotify } from '../platform/linux/notify.ts';
import { refuseCores } from '../platform/linux/syscalls.ts';
import { createStatsReader } from '../adapters/stats/reader.ts';
import { createUsageCollector } from '../adapters/stats/usage-collector.ts';
import type { Config } from '../config/config.ts';
import { isDoubted, isKnownDoubt } from '../domain/model/journal-doubt.ts';
import { copyState } from '../domain/model/state.ts';
import type { Ids } from '../engine/ports.ts';
import { createView } from '../projections/view.ts';
import { criParts } from './cri-parts.ts';
import { daemonPorts } from './daemon-ports.ts';
import { createDie, dieWith } from './death.ts';
import { openEventCursor } from './event-cursor.ts';
import { createFindings } from './findings.ts';
import { claimPlaces } from './claim-places.ts';
import { gidOfGroup } from './socket-group.ts';
import { startHousekeeping } from './housekeeping.ts';
import { createSessionDoor } from './sessions/door.ts';
import { createNetworkUpkeep } from './network-upkeep.ts';
import { startObserving } from './observing.ts';
import { makePlaces } from './make-places.ts';
import { createReload } from './reload.ts';
import { runEngine } from './run-engine.ts';
import { createLog } from './log.ts';
import { whenPodsEnd } from './sessions/calls.ts';
import { takeOver } from './take-over.ts';

const NS_PER_MS = 1_000_000n;

export interface ServeOptions {
  readonly version: string;
  /** Reads the configuration again, as it was read at first. */
  readonly reloadConfig: () => Promise<Config>;
}

/** Runs the daemon until it is told to end (SIGTERM, SIGINT). Resolves when it has ended in order. */
export async function serve(config: Config, { version, reloadConfig }: ServeOptions): Promise<void> {
  const { rootDir, stateDir } = config.serve;
  const log = createLog(config.serve.logLevel);
  process.umask(0o022);
  // Its memory holds credentials and environment values. A limit on cores (RLIMIT_CORE) would reach containers as well.
  refuseCores();
  const findings = createFindings();
  const report = (message: string): void => {
    log.warn(message);
    findings.add(message);
  };
  makePlaces(config.serve, report);
  await claimPlaces(config.serve);
  const die = createDie(stateDir, log);
  const notify = createNotify(process.env.NOTIFY_SOCKET, (message) => log.warn(message));
  const clock = createSystemClock();

  const found = await takeOver(config, findings, log);
  const { journal, journalPath, node, spawner, vault, diskGuard } = found;
  // A journal that is doubted may not know what there is.
  const knowsAllPods =
    found.state.facts !== null &&
    !isDoubted(found.state) &&
    found.doubts.every((doubt) => isKnownDoubt(found.state, doubt));
  const view = createView(copyState(found.state), found.seq);
  const { engine, performers, sessions, credentials, imageUpkeep } = await runEngine({
    config,
    version,
    found,
    view,
    clock,
    ids: systemIds,
    die,
    log,
    report,
  });
  const { images, cni, shim, portForwarder } = performers;

  whenPodsEnd(view, portForwarder.endPod);
  const stats = createStatsReader({ cgroup: node.cgroup, clock, report });
  const usage = createUsageCollector({ clock, mountpoint: join(rootDir, 'containers'), report });
  const networkUpkeep = createNetworkUpkeep({
    cni,
    sandboxes: () => view.state.sandboxes.values(),
    knowsAllPods,
    monoMs: () => Number(clock.monoNs() / NS_PER_MS),
    log,
    report,
  });
  const eventCursor = openEventCursor(stateDir, view.seq(), report);
  const daemon = daemonPorts({ rootDir, engine, view, clock, findings, log });
  const { port: streamingPort, tls: streamingTls } = config.streaming;
  const sessionDoor = createSessionDoor({
    server: config.streaming,
    calls: sessions.calls,
    nowMs: () => Number(clock.monoNs() / NS_PER_MS),
    log,
  });
  // An address or a certificate that can not be used is told now; without either there is nothing to get wrong.
  if (streamingPort !== 0 || streamingTls !== null) await sessionDoor.start();
  const observed = await startObserving({
    config,
    version,
    nodeName: node.hostname,
    take: engine.call,
    journal,
    journalPath,
    view,
    clock,
    findings,
    eventsPassedOver: () => parts.events.passedOver(),
    log,
    report,
  });
  const { parts, services } = criParts({
    config,
    version,
    view,
    journal,
    take: observed.take,
    noteRead: observed.noteRead,
    clock,
    statusesAtNs: engine.publishedUpToNs,
    vault,
    credentials,
    images,
    stats,
    usage,
    eventCursor,
    networkProblem: networkUpkeep.problem,
    streaming: { newId: systemIds.hex64, urlFor: sessionDoor.urlFor },
    sandboxDetails: shim.sandboxDetails,
    daemon,
    onPassedOver: (events) => log.warn({ events }, 'container events were passed over: a client is too slow, or late'),
    report,
  });

  const cri = await startCriServer({
    socketPath: config.serve.socketPath,
    socketMode: config.serve.socketMode,
    socketGid: await gidOfGroup(config.serve.socketGroup),
    messageBytesMax: config.limits.requestBytesMax,
    parts,
    services,
    onBug: (rpc, error) => log.error({ error }, `${rpc} failed unexpectedly`),
  });
  const housekeeping = startHousekeeping({
    config: config.journal,
    journalPath,
    journal,
    snapshotSeq: found.snapshotSeq,
    view,
    engine,
    nowNs: clock.nowNs,
    log,
    report,
  });

  let ending = false;
  dieWith({ journal, cni, cri, shim, spawner }, die, () => ending);

  imageUpkeep.served();
  networkUpkeep.served();
  log.info({ socket: config.serve.socketPath, sinceExecMs: Math.round(performance.now()) }, 'serving');
  const reload = createReload({
    initial: config,
    load: reloadConfig,
    log,
    setRegistryConfigDirs: images.setRegistryConfigDirs,
  });
  process.on('SIGHUP', () => {
    notify.reloading(clock.monoNs());
    void reload().then(notify.ready);
  });
  notify.ready();
  // Compiled code is otherwise kept at an orderly end only, and a daemon that is killed has none.
  setImmediate(flushCompileCache);

  const signal = await nextSignal();
  ending = true;
  log.info({ signal }, 'ending; pods stay');
  notify.stopping();
  // Before the engine ends, so that calls and sessions are written down as they end.
  const [cutOff] = await Promise.all([cri.drain(config.serve.drainTimeoutMs), sessionDoor.close()]);
  if (cutOff > 0) log.warn({ calls: cutOff }, 'calls are cut off, for their time is up');
  await engine.stop(signal);
  networkUpkeep.close();
  await cri.close();
  await housekeeping.close();
  await observed.close();
  stats.close();
  usage.close();
  await eventCursor.close();
  await performers.close();
  imageUpkeep.close();
  await images.close();
  await diskGuard.close();
  await journal.close();
  await spawner.close();
  vault.close();
  rmSync(found.pidPath, { force: true });
  log.flush();
}

const systemIds: Ids = { hex64: () => randomBytes(32).toString('hex'), uuid: () => uuid() };

function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  });
}
