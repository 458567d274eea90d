/**
 * The daemon, put together: everything is made here, in the order in which it is needed, and taken apart in reverse.
 *
 *   1. lock the journal, start a spawner, fold     4. adapters
 *   2. look for the tasks that should run          5. daemon.started is recorded: recovery begins
 *   3. the old spawner is gone, the new one runs   6. the socket opens: serving
 *
 * When a part that all depends on ends, the daemon ends as a whole and pods stay (C20).
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import pino from 'pino';
import { v7 as uuid } from 'uuid';
import { createSecretVault } from '../adapters/bundle/secrets.ts';
import { startCriServer } from '../adapters/cri/server.ts';
import { createSystemClock } from '../adapters/linux/clock.ts';
import { readHostFacts } from '../adapters/linux/host-facts.ts';
import { obstacleToUserNamespaces } from '../adapters/linux/mapped-ids.ts';
import { createNotify } from '../adapters/linux/notify.ts';
import { installPause } from '../adapters/pause/install.ts';
import { ownSearchPath } from '../adapters/shim/adapter.ts';
import { withFeatures } from '../adapters/shim/runtime-features.ts';
import { startSpawner } from '../adapters/spawner/client.ts';
import type { Spawner } from '../adapters/spawner/types.ts';
import { createStatsReader } from '../adapters/stats/reader.ts';
import { createUsageCollector } from '../adapters/stats/usage-collector.ts';
import type { Config } from '../config/config.ts';
import { lacksNetwork } from '../domain/pod-sandbox/network.ts';
import { copyState } from '../domain/state.ts';
import { createEngine, type Engine } from '../engine/engine.ts';
import type { Ids, Observe } from '../engine/ports.ts';
import { createDiskGuard } from '../journal/disk-space.ts';
import { createView } from '../projections/view.ts';
import { takeCrashFile, writeCrashFile } from './crash-file.ts';
import { criParts } from './cri-parts.ts';
import { createCredentials } from './credentials.ts';
import { daemonPorts } from './daemon-ports.ts';
import { openEventCursor } from './event-cursor.ts';
import { daemonFacts } from './facts.ts';
import { findDead } from './find-dead.ts';
import { createFindings } from './findings.ts';
import { gidOfGroup } from './group.ts';
import { startImageUpkeep } from './image-upkeep.ts';
import { startHousekeeping } from './housekeeping.ts';
import { createSessions, whenPodsEnd } from './sessions/calls.ts';
import { createSessionDoor } from './sessions/door.ts';
import { startObserving } from './observing.ts';
import { openNode } from './open-node.ts';
import { takeOwnPlace } from './own-place.ts';
import { startPerformers } from './performers.ts';
import { createReload } from './reload.ts';

/** How long the previous daemon's spawner may take to end what it was running. */
const SPAWNER_WAIT_MS = 60_000;
const NS_PER_MS = 1_000_000n;

export interface ServeOptions {
  readonly version: string;
  /** Reads the configuration again, as it was read at first. */
  readonly reloadConfig: () => Promise<Config>;
}

/** Runs the daemon until it is told to end (SIGTERM, SIGINT). Resolves when it has ended in order. */
export async function serve(config: Config, { version, reloadConfig }: ServeOptions): Promise<void> {
  const { rootDir, stateDir } = config.serve;
  const log = pino(
    { level: config.serve.logLevel, base: null, serializers: { error: pino.stdSerializers.err } },
    pino.destination({ dest: 2, sync: false }),
  );
  process.umask(0o022);
  mkdirSync(rootDir, { recursive: true, mode: 0o700 });
  mkdirSync(stateDir, { recursive: true, mode: 0o711 });

  const die =
    (what: string) =>
    (error: unknown): void => {
      log.fatal({ error }, `${what}: the daemon ends, pods stay`);
      writeCrashFile(stateDir, new Error(what, { cause: error }));
      log.flush();
      process.exit(1);
    };
  process.on('uncaughtException', die('an exception nobody handled'));
  process.on('unhandledRejection', die('a rejection nobody handled'));

  const notify = createNotify(process.env.NOTIFY_SOCKET, (message) => log.warn(message));
  const ownPlace = await takeOwnPlace(config.serve, log);
  const journalPath = join(rootDir, 'journal.db');
  const spawnerOptions = { lockPath: join(stateDir, 'spawner.lock'), startTimeoutMs: SPAWNER_WAIT_MS };
  const spawning = Promise.withResolvers<Spawner>();
  // Waited for further down; until then nobody hears it fail.
  spawning.promise.catch(() => undefined);
  let diskIsFull = (): boolean => false;
  const findings = createFindings();
  const { journal, state, seq, snapshotSeq, wasSetAside } = openNode({
    path: journalPath,
    // This is the one daemon here from now on; the spawner's process starts while the journal is checked and folded.
    onLocked: () => spawning.resolve(startSpawner(spawnerOptions)),
    refuseReads: () => diskIsFull(),
    findings,
    log,
  });
  writeFileSync(join(stateDir, 'scribe.pid'), `${process.pid}\n`);

  const [node, obstacle, dead, pauseRootfs, vault, diskGuard] = await Promise.all([
    readHostFacts(),
    obstacleToUserNamespaces(config.serve),
    findDead(state),
    installPause(join(rootDir, 'pause')),
    createSecretVault(join(rootDir, 'secrets.key')),
    createDiskGuard({ reservePath: join(rootDir, 'reserve'), reserveBytes: config.journal.diskReserveBytes }),
    mkdir(join(stateDir, 'netns'), { recursive: true, mode: 0o711 }),
    // ImageFsInfo names it, and kubelet looks for it before the first image is pulled.
    mkdir(join(rootDir, 'images'), { recursive: true, mode: 0o700 }),
  ]);
  diskIsFull = diskGuard.isFull;
  const view = createView(copyState(state), seq);
  const spawner = await spawning.promise;
  log.info({ records: seq, spawner: spawner.pid }, 'journal folded');

  const report = (message: string): void => {
    log.warn(message);
    findings.add(message);
  };
  const clock = createSystemClock();
  const credentials = createCredentials();
  // Adapters observe through the engine, and the engine performs through them.
  let engine: Engine | null = null;
  let ending = false;
  const observe: Observe = (observation) =>
    engine === null ? Promise.reject(new Error('The daemon is starting.')) : engine.observe(observation);

  if (obstacle !== null) log.info(obstacle, 'pods with users of their own are refused');
  const handlers = withFeatures(
    { spawner, searchPath: ownSearchPath, kernelRelease: node.kernelRelease, mapsIds: obstacle === null },
    config.runtime.handlers,
  );
  const sessions = createSessions(
    (draft, options) =>
      engine === null ? Promise.reject(new Error('The daemon is starting.')) : engine.call(draft, options),
    systemIds,
  );
  const performers = await startPerformers({
    config,
    node,
    spawner,
    vault,
    credentials,
    sessions,
    ownPlace,
    observe,
    log,
  });
  const { perform, images, cni, shim, portForwarder } = performers;
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
    wasSetAside,
  );

  engine = createEngine({
    journal,
    state,
    perform,
    clock,
    ids: systemIds,
    boot: node.bootId,
    publish: view.apply,
    diskIsFull: diskGuard.isFull,
    fatal: die('the journal can not be written'),
  });
  const running = engine;
  const rebooted = state.facts !== null && state.facts.node.bootId !== node.bootId;
  await running.start({
    facts: daemonFacts(config, node, await handlers, version, pauseRootfs),
    rebooted,
    deadTasks: rebooted ? [] : dead,
    crash: takeCrashFile(stateDir),
  });
  // The network of the last life is in the journal, so pods need not wait for it to be read again.
  const networkRead = cni.start();
  if (lacksNetwork(state)) await networkRead;
  networkRead.catch(die('the CNI configuration can not be watched'));

  whenPodsEnd(view, portForwarder.endPod);
  const stats = createStatsReader({ cgroup: node.cgroup, clock, report });
  const usage = createUsageCollector({ clock, mountpoint: join(rootDir, 'containers'), report });
  const eventCursor = openEventCursor(stateDir, view.seq(), report);
  const daemon = daemonPorts({ rootDir, engine: running, view, clock, findings, log });
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
    engine: running,
    view,
    journal,
    noteRead: observed.noteRead,
    clock,
    vault,
    credentials,
    images,
    stats,
    usage,
    eventCursor,
    streaming: { newId: systemIds.hex64, urlFor: sessionDoor.urlFor },
    sandboxDetails: shim.sandboxDetails,
    daemon,
    report,
  });
  const cri = await startCriServer({
    socketPath: config.serve.socketPath,
    socketMode: config.serve.socketMode,
    socketGid: await gidOfGroup(config.serve.socketGroup),
    parts,
    services,
    onBug: (rpc, error) => log.error({ error }, `${rpc} failed unexpectedly`),
  });
  const housekeeping = startHousekeeping({
    config: config.journal,
    journalPath,
    journal,
    snapshotSeq,
    view,
    recordOwn: running.recordOwn,
    nowNs: clock.nowNs,
    log,
    report,
  });
  journal.failed.then(die('the journal failed'), () => undefined);
  cni.failed.then(die('the watch of the CNI configuration ended'), () => undefined);
  cri.ended.then(die('the CRI socket ended'), () => undefined);
  shim.ended.then(() => undefined, die('the events server ended'));
  spawner.ended.then(
    () => (ending ? undefined : die('the spawner ended')(new Error('It ended by itself or was killed.'))),
    () => undefined,
  );
  imageUpkeep.served();
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
  await cri.close();
  // Before the engine ends, so that sessions are written down as they end.
  await sessionDoor.close();
  await running.stop(signal);
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
  rmSync(join(stateDir, 'scribe.pid'), { force: true });
  log.flush();
}

const systemIds: Ids = { hex64: () => randomBytes(32).toString('hex'), uuid: () => uuid() };

function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  });
}
