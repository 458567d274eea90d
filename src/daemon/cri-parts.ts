/** What the CRI services are given: doors to the engine, the read model and the adapters that know numbers. */
import { randomUUID } from 'node:crypto';
import { type DaemonPorts, daemonService } from '../adapters/cri/daemon-service.ts';
import { createContainerEvents } from '../adapters/cri/events.ts';
import { imagesService } from '../adapters/cri/images-service.ts';
import { createLists } from '../adapters/cri/lists.ts';
import type { CriParts } from '../adapters/cri/parts.ts';
import { type ServiceOptions, type ServiceParts, serviceOf } from '../adapters/cri/service.ts';
import { containerStats } from '../adapters/cri/stats.ts';
import type { SecretVault } from '../adapters/bundle/secrets.ts';
import type { ImagesAdapter } from '../adapters/images/adapter.ts';
import type { StatsReader } from '../adapters/stats/types.ts';
import type * as wire from '../adapters/wire/cri/api.ts';
import { DaemonDefinition } from '../adapters/wire/scribe/v1/daemon.ts';
import { ImagesDefinition } from '../adapters/wire/scribe/v1/images.ts';
import type { Config } from '../config/config.ts';
import { cgroupsPath } from '../domain/oci/resources.ts';
import type { Engine } from '../engine/engine.ts';
import type { Clock } from '../engine/ports.ts';
import type { SqliteJournal } from '../journal/sqlite-journal.ts';
import { criEventsOf } from '../projections/cri-events.ts';
import type { View } from '../projections/view.ts';
import type { Credentials } from './credentials.ts';

export interface CriSources {
  readonly config: Config;
  readonly version: string;
  readonly engine: Engine;
  readonly view: View;
  readonly journal: SqliteJournal;
  readonly clock: Clock;
  readonly vault: SecretVault;
  readonly credentials: Credentials;
  readonly images: ImagesAdapter;
  readonly stats: StatsReader;
  readonly daemon: DaemonPorts;
}

export interface CriComposition {
  readonly parts: CriParts;
  readonly services: (options: ServiceOptions) => readonly ServiceParts[];
}

export function criParts(sources: CriSources): CriComposition {
  const { config, engine, view, journal, clock, vault, credentials, images, stats } = sources;
  const parts: CriParts = {
    version: sources.version,
    take: engine.call,
    view,
    lists: createLists(view),
    events: createContainerEvents(view, criEventsOf),
    noteRead: journal.appendRead,
    nowNs: clock.nowNs,
    monoNs: clock.monoNs,
    isServing: () => true,
    tokenOf: vault.tokenOf,
    keepCredentials: credentials.keep,
    async statsOf(container) {
      const parent = view.state.sandboxes.get(container.podSandboxId)?.config.linux?.cgroupParent;
      const cgroupPath = cgroupsPath(config.runtime.cgroupDriver, parent, container.id);
      const usage = await stats.read({ containerId: container.id, cgroupPath });
      return usage === null ? null : containerStats(container, usage, null);
    },
    imageFsInfo: () => imageFsInfo(images, config.serve.rootDir),
    runtimeHandlers: () => runtimeHandlers(config),
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
    observeProgress: images.observeProgress,
  };
  return {
    parts,
    services: (options) => [
      serviceOf(ImagesDefinition, imagesService(parts, transfers), options),
      serviceOf(DaemonDefinition, daemonService(parts, sources.daemon), options),
    ],
  };
}

function imageFsInfo(images: ImagesAdapter, rootDir: string): wire.ImageFsInfoResponse {
  const { countedAtMs, usedBytes, inodesUsed } = images.imageFsUsage();
  const usage: wire.FilesystemUsage = {
    timestamp: String(BigInt(Math.round(countedAtMs)) * 1_000_000n),
    fsId: { mountpoint: `${rootDir}/images` },
    usedBytes: { value: String(usedBytes) },
    inodesUsed: { value: String(inodesUsed) },
  };
  return { imageFilesystems: [usage], containerFilesystems: [usage] };
}

/** The default handler also goes by the empty name. */
function runtimeHandlers({ runtime }: Config): readonly wire.RuntimeHandler[] {
  const features = { recursiveReadOnlyMounts: false, userNamespaces: false };
  return [{ name: '', features }, ...runtime.handlers.map(({ name }) => ({ name, features }))];
}
