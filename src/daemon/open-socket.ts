/**
 * What clients reach, on an engine that runs: figures, sessions, whoever observes, and the socket, which opens last.
 * Performs and decides nothing.
 */
import { join } from 'node:path';
import { type CriServer, startCriServer } from '../adapters/cri/server.ts';
import { createStatsReader } from '../adapters/stats/reader.ts';
import { createUsageCollector } from '../adapters/stats/usage-collector.ts';
import type { Config } from '../config/config.ts';
import { createAudit } from './audit.ts';
import { type CriComposition, criParts } from './cri-parts.ts';
import { daemonPorts } from './daemon-ports.ts';
import { createJournalReads } from './journal-reads.ts';
import { openEventCursor } from './event-cursor.ts';
import type { Findings } from './findings.ts';
import { startHousekeeping } from './housekeeping.ts';
import { loggable } from './log.ts';
import { createNetworkUpkeep, type NetworkUpkeep } from './network-upkeep.ts';
import { startObserving } from './metrics-and-traces.ts';
import { createReload, type Reload } from './reload.ts';
import type { EngineSources, RunningEngine } from './run-engine.ts';
import { createSessionListener, type SessionListener } from './sessions/listener.ts';
import { whenPodsEnd } from './sessions/calls.ts';
import { gidOfGroup } from './socket-group.ts';
import { startWitnesses } from './witnesses.ts';

const NS_PER_MS = 1_000_000n;

interface Sources extends Omit<EngineSources, 'die' | 'scene'> {
  readonly running: RunningEngine;
  /** The journal has every pod there may be. */
  readonly knowsAllPods: boolean;
  readonly findings: Findings;
  /** Reads the configuration again, as it was read at first. */
  readonly reloadConfig: () => Promise<Config>;
}

export interface OpenSocket {
  readonly cri: CriServer;
  readonly sessionListener: SessionListener;
  readonly networkUpkeep: NetworkUpkeep;
  readonly reload: Reload;
}

export async function openSocket(sources: Sources): Promise<OpenSocket> {
  const { config, running, view, opened, log } = sources;
  whenPodsEnd(view, running.performers.portForwarder.endPod);
  const networkUpkeep = openNetworkUpkeep(sources);
  const sessionListener = await openSessionListener(sources);
  const { parts, services, reload } = await openParts(sources, { networkUpkeep, sessionListener });
  openHousekeeping(sources);
  const cri = await startCriServer({
    socketPath: config.serve.socketPath,
    socketMode: config.serve.socketMode,
    socketGid: await gidOfGroup(config.serve.socketGroup),
    parts,
    services,
    onBug: (rpc, error) => log.error({ error: loggable(error) }, `${rpc} failed unexpectedly`),
  });
  opened.defer(cri.close);
  return { cri, sessionListener, networkUpkeep, reload };
}

function openNetworkUpkeep({ running, view, clock, knowsAllPods, opened, log, report }: Sources): NetworkUpkeep {
  const networkUpkeep = createNetworkUpkeep({
    cni: running.performers.cni,
    sandboxes: () => view.state.sandboxes.values(),
    knowsAllPods,
    monoMs: () => Number(clock.monoNs() / NS_PER_MS),
    log,
    report,
  });
  opened.defer(networkUpkeep.close);
  return networkUpkeep;
}

async function openSessionListener({ config, running, clock, opened, log }: Sources): Promise<SessionListener> {
  const sessionListener = createSessionListener({
    server: config.streaming,
    calls: running.sessions.calls,
    nowMs: () => Number(clock.monoNs() / NS_PER_MS),
    log,
  });
  opened.defer(sessionListener.close);
  const { port, tls } = config.streaming;
  // An address or a certificate that cannot be used is told now; without either there is nothing to get wrong.
  if (port !== 0 || tls !== null) await sessionListener.start();
  return sessionListener;
}

/** What the services on the socket answer from. */
async function openParts(
  sources: Sources,
  { networkUpkeep, sessionListener }: Pick<OpenSocket, 'networkUpkeep' | 'sessionListener'>,
): Promise<CriComposition & Pick<OpenSocket, 'reload'>> {
  const { config, version, found, running, view, clock, findings, opened, log, report } = sources;
  const { journal, journalPath, node, spawner, vault } = found;
  const { engine, performers, credentials } = running;
  const { rootDir, stateDir } = config.serve;
  const stats = createStatsReader({ cgroup: node.cgroup, clock, taskFigures: performers.shim.taskFigures, report });
  opened.defer(stats.close);
  const usage = createUsageCollector({ clock, mountpoint: join(rootDir, 'containers'), report });
  opened.defer(usage.close);
  const eventCursor = openEventCursor(stateDir, view.seq(), report);
  opened.defer(eventCursor.close);
  const audit = createAudit({
    policy: config.audit,
    state: view.state,
    submit: engine.call,
    appendRead: journal.appendRead,
    tokenOf: vault.tokenOf,
  });
  const reload = createReload({
    initial: config,
    load: sources.reloadConfig,
    submit: engine.call,
    log,
    setRegistryConfigDirs: performers.images.setRegistryConfigDirs,
    setAuditPolicy: audit.setPolicy,
  });
  const observed = await startObserving({
    config,
    version,
    nodeName: node.hostname,
    submit: engine.call,
    recordRead: audit.recordRead,
    journal,
    journalPath,
    view,
    clock,
    findings,
    eventsPassedOver: () => composition.parts.events.passedOver(),
    log,
    report,
  });
  opened.defer(observed.close);
  const journalReads = createJournalReads(observed.submit);
  opened.defer(journalReads.close);
  const composition = criParts({
    config,
    version,
    view,
    journal,
    submit: observed.submit,
    noteRead: observed.noteRead,
    audited: audit.audited,
    seals: audit.seals,
    clock,
    statusesAtNs: engine.publishedUpToNs,
    vault,
    credentials,
    images: performers.images,
    stats,
    spawner,
    usage,
    eventCursor,
    networkProblem: networkUpkeep.problem,
    streaming: { newId: sources.ids.hex64, urlFor: sessionListener.urlFor },
    sandboxDetails: performers.shim.sandboxDetails,
    daemon: daemonPorts({
      ...{
        rootDir,
        engine,
        view,
        clock,
        findings,
        askLogTroubles: performers.logTroubles,
        nri: performers.nri,
        journal,
        reload,
        log,
      },
      recordJournalRead: journalReads.record,
    }),
    onPassedOver: (events) => log.warn({ events }, 'container events were passed over: a client is too slow, or late'),
    report,
  });
  return { ...composition, reload };
}

function openHousekeeping({ config, found, running, view, clock, opened, log, report }: Sources): void {
  const housekeeping = startHousekeeping({
    config: config.journal,
    journalPath: found.journalPath,
    journal: found.journal,
    snapshotSeq: found.snapshotSeq,
    view,
    engine: running.engine,
    nowNs: clock.nowNs,
    log,
    report,
  });
  opened.defer(housekeeping.close);
  const { witnesses, witnessIntervalMs: everyMs } = config.journal;
  opened.defer(startWitnesses({ journalPath: found.journalPath, witnesses, everyMs, report, log }).close);
}
