/** What the CRI services are given: ways to the engine, the read model and the adapters that know numbers. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { containerdServices } from '../adapters/cri/services/containerd.ts';
import { type DaemonPorts, daemonService } from '../adapters/cri/services/scribe-daemon.ts';
import { type ContainerEventsOptions, createContainerEvents, type EventCursor } from '../adapters/cri/events.ts';
import { imagesService } from '../adapters/cri/services/scribe-images.ts';
import { createLists } from '../adapters/cri/lists.ts';
import { runtimeHandlers } from '../adapters/cri/runtime-handlers.ts';
import type { CriParts } from '../adapters/cri/parts.ts';
import { type ServiceOptions, type ServiceParts, serviceOf } from '../adapters/cri/service.ts';
import type { SecretVault } from '../adapters/bundle/secrets.ts';
import type { ImagesAdapter } from '../adapters/images/adapter.ts';
import { readFileSystem } from '../adapters/stats/file-system.ts';
import { parseNetDev } from '../adapters/stats/network.ts';
import type { StatsReader, UsageCollector } from '../adapters/stats/types.ts';
import type * as wire from '../wire/cri/api.ts';
import { DaemonDefinition } from '../wire/scribe/v1/daemon.ts';
import { ContainersDefinition } from '../wire/services/containers/v1/containers.ts';
import { TasksDefinition } from '../wire/services/tasks/v1/tasks.ts';
import { VersionDefinition } from '../wire/services/version/v1/version.ts';
import { pinnedBy } from '../domain/image/pinned.ts';
import { ImagesDefinition } from '../wire/scribe/v1/images.ts';
import type { Config } from '../config/config.ts';
import { knownHeadOf } from '../domain/model/error-words.ts';
import type { Sequenced } from '../domain/model/records.ts';
import { fromJournalRecord } from '../engine/codec.ts';
import type { Clock, NoteRead, SubmitCall } from '../engine/ports.ts';
import type { SqliteJournal } from '../journal/sqlite-journal.ts';
import { criEventsOf, TOLD_TYPES } from '../projections/cri-events.ts';
import type { PublishedView } from '../engine/published-view.ts';
import type { Spawner } from '../platform/spawner/types.ts';
import { createContainerStats } from './container-stats.ts';
import type { Credentials } from './credentials.ts';
import { pinnedNames } from './pinned-names.ts';
import { createPodStats } from './pod-stats.ts';

export interface CriSources {
  readonly config: Config;
  readonly version: string;
  readonly view: PublishedView;
  readonly journal: SqliteJournal;
  readonly submit: SubmitCall;
  readonly noteRead: NoteRead;
  readonly audited: CriParts['audited'];
  readonly seals: CriParts['seals'];
  readonly clock: Clock;
  readonly statusesAtNs: CriParts['statusesAtNs'];
  readonly vault: SecretVault;
  readonly credentials: Credentials;
  readonly images: ImagesAdapter;
  readonly stats: StatsReader;
  readonly spawner: Pick<Spawner, 'readNetDev'>;
  readonly usage: UsageCollector;
  readonly eventCursor: EventCursor;
  readonly networkProblem: CriParts['networkProblem'];
  readonly streaming: CriParts['streaming'];
  readonly sandboxDetails: CriParts['sandboxDetails'];
  readonly daemon: DaemonPorts;
  readonly onPassedOver: ContainerEventsOptions['onPassedOver'];
  readonly report: (message: string) => void;
}

export interface CriComposition {
  readonly parts: CriParts;
  readonly services: (options: ServiceOptions) => readonly ServiceParts[];
}

export function criParts(sources: CriSources): CriComposition {
  const { config, view, clock, vault, credentials, images, stats, usage } = sources;
  const containers = createContainerStats({ view, reader: stats, usage });
  const parts: CriParts = {
    version: sources.version,
    messageBytesMax: config.limits.requestBytesMax,
    submit: sources.submit,
    view,
    lists: createLists(view, pinnedBy(pinnedNames(config)), (id, error) =>
      sources.report(`${id} is missing in lists, because it could not be encoded: ${knownHeadOf(error)}`),
    ),
    events: createContainerEvents({
      view,
      eventsOf: criEventsOf,
      nowNs: clock.nowNs,
      backlog: eventBacklog(sources),
      cursor: sources.eventCursor,
      onPassedOver: sources.onPassedOver,
    }),
    noteRead: sources.noteRead,
    audited: sources.audited,
    seals: sources.seals,
    nowNs: clock.nowNs,
    statusesAtNs: sources.statusesAtNs,
    monoNs: clock.monoNs,
    tokenOf: vault.tokenOf,
    keepCredentials: credentials.keep,
    streaming: sources.streaming,
    sandboxDetails: sources.sandboxDetails,
    statsOf: containers.statsOf,
    statsOfAll: containers.statsOfAll,
    ...createPodStats({
      view,
      reader: stats,
      usage,
      clock,
      containers,
      readFileSystem: () => readFileSystem(join(config.serve.rootDir, 'containers')),
      interfacesIn: async (path) => {
        const told = await sources.spawner.readNetDev(path);
        return told === null ? null : parseNetDev(told);
      },
      report: sources.report,
    }),
    networkProblem: sources.networkProblem,
    imageConfigOf: images.configOf,
    imageFsInfo: () => imageFsInfo(images, usage, config.serve.rootDir),
    runtimeHandlers: () => runtimeHandlers(view.state),
    describeConfig: () => ({
      stateDir: config.serve.stateDir,
      rootDir: config.serve.rootDir,
      runtime: config.runtime,
      cni: config.cni,
      images: config.images,
    }),
  };
  const transfers = {
    newUploadId: randomUUID,
    acceptUpload: images.acceptUpload,
    forgetUpload: images.forgetUpload,
    progress: images.progress,
  };
  const containerd = containerdServices(parts);
  return {
    parts,
    services: (options) => [
      serviceOf(ImagesDefinition, imagesService(parts, transfers), options),
      serviceOf(DaemonDefinition, daemonService(parts, sources.daemon), options),
      serviceOf(ContainersDefinition, containerd.containers, options),
      serviceOf(TasksDefinition, containerd.tasks, options),
      serviceOf(VersionDefinition, containerd.version, options),
    ],
  };
}

/** What clients could hear of was recorded at most so long ago. */
const BACKLOG_NS = 300_000_000_000n;

/** Never rejects: events of before are no reason not to tell of new ones. */
async function eventBacklog({ journal, view, clock, report }: CriSources): Promise<readonly Sequenced[]> {
  const records: Sequenced[] = [];
  const query = { fromNs: clock.nowNs() - BACKLOG_NS, toSeq: view.seq(), types: TOLD_TYPES };
  try {
    for await (const row of journal.read(query)) {
      const record = fromJournalRecord(row);
      if (record !== null) records.push(record);
    }
  } catch (error) {
    report(`Container events of the last minutes could not be read: ${String(error)}`);
  }
  return records;
}

/**
 * Images and writable layers are below one directory, so both are said to be at one mount point: a kubelet that saw
 * two would take them for file systems that can be evicted from separately.
 */
async function imageFsInfo(
  images: ImagesAdapter,
  usage: UsageCollector,
  rootDir: string,
): Promise<wire.ImageFsInfoResponse> {
  await usage.counted();
  const { asOfMs, usedBytes, inodesUsed } = images.imageFsUsage();
  const fsId = { mountpoint: `${rootDir}/images` };
  const ofImages: wire.FilesystemUsage = {
    timestamp: String(BigInt(Math.round(asOfMs)) * 1_000_000n),
    fsId,
    usedBytes: { value: String(usedBytes) },
    inodesUsed: { value: String(inodesUsed) },
  };
  const layers = usage.total();
  const ofContainers: wire.FilesystemUsage = {
    timestamp: layers.timestamp,
    fsId,
    usedBytes: { value: String(layers.usedBytes) },
    inodesUsed: { value: String(layers.inodesUsed) },
  };
  return { imageFilesystems: [ofImages], containerFilesystems: [ofContainers] };
}
