/**
 * The CNI adapter: performs AttachNetwork and DetachNetwork, watches the configuration directory and observes
 * what it says. The journal remembers attachments; all this adapter keeps is an empty file per begun ADD, so that
 * an ADD that is performed again after a crash first undoes what the first one left.
 */
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { PodNetwork } from '../../domain/cni.ts';
import { FailureError } from '../../domain/errors.ts';
import type { Observe, PerformEffects } from '../../engine/ports.ts';
import type { Spawner } from '../spawner/types.ts';
import { type Attachment, createChain } from './chain.ts';
import { type LoadedConfDir, loadConfDir, pluginDirectory } from './conf.ts';
import { createOrder } from './order.ts';
import { createRunPlugin } from './plugin.ts';
import { type IpPreference, orderIps } from './result.ts';
import { identifierProblem } from './runtime-config.ts';
import { createDirectoryWatch } from './watch.ts';

/** A configuration is read once its directory has been quiet for this long, so that half-written files pass by. */
const QUIET_MS = 100;
/** A directory that is never quiet is read this long after its first change. */
const QUIET_WAIT_MAX_MS = 1000;
const ATTEMPTS_DIRECTORY = 'cni';

export interface CniLog {
  readonly info: (fields: object, message: string) => void;
  readonly warn: (fields: object, message: string) => void;
}

export interface CniAdapterOptions {
  readonly spawner: Pick<Spawner, 'run'>;
  readonly confDir: string;
  readonly binDirs: readonly string[];
  /** The daemon's state directory (gone after a reboot); <stateDir>/cni is this adapter's. */
  readonly stateDir: string;
  /** For each run of a plugin. */
  readonly pluginTimeoutMs: number;
  readonly ipPreference: IpPreference;
  /** Configuration files looked at until a valid one is found. */
  readonly maxConfFiles: number;
  readonly observe: Observe;
  readonly log: CniLog;
}

export interface CniStatus {
  readonly networkName: string | null;
  /** Why pods can't be attached now; null when they can. */
  readonly problem: string | null;
}

export interface CniAdapter {
  readonly effects: Pick<PerformEffects, 'AttachNetwork' | 'DetachNetwork'>;
  /** Reads the configuration, observes it, and watches it from then on. Call once, before serving. */
  readonly start: () => Promise<void>;
  /** Asks the plugins whether an attachment still stands (CHECK): false when they can't be asked, rejects when not. */
  readonly check: (network: PodNetwork, result: unknown) => Promise<boolean>;
  /**
   * Has the current network's plugins drop what belongs to no valid attachment (GC, CNI 1.1). `validAttachments` is
   * asked once no ADD or DEL is under way; it must name every pod whose ADD was ever intended and not undone.
   */
  readonly gc: (validAttachments: () => readonly Attachment[]) => Promise<void>;
  readonly status: () => Promise<CniStatus>;
  /** Resolves with the error that ended the watch of the configuration; never in a healthy life. */
  readonly failed: Promise<Error>;
  readonly close: () => void;
}

export const createCniAdapter = (options: CniAdapterOptions): CniAdapter => {
  const { confDir, maxConfFiles, observe, log } = options;
  const chain = createChain(
    createRunPlugin({ spawner: options.spawner, binDirs: options.binDirs, timeoutMs: options.pluginTimeoutMs }),
  );
  const order = createOrder();
  const attemptsDir = join(options.stateDir, ATTEMPTS_DIRECTORY);
  const { promise: failed, resolve: fail } = Promise.withResolvers<Error>();
  let closed = false;

  /** Resolves with whether this pod's ADD was begun before and not undone since. */
  const beginAttempt = async (podSandboxId: string): Promise<boolean> => {
    try {
      await (await open(join(attemptsDir, podSandboxId), 'wx', 0o600)).close();
      return false;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return true;
      throw new FailureError(
        'HostFailed',
        `Can't note the start of a CNI ADD in ${attemptsDir}: ${(error as Error).message}`,
      );
    }
  };

  const endAttempt = (podSandboxId: string): Promise<void> => rm(join(attemptsDir, podSandboxId), { force: true });

  const effects: CniAdapter['effects'] = {
    AttachNetwork: async ({ network }, { signal }) => {
      const problem = identifierProblem(network);
      if (problem !== null)
        throw new FailureError('InvalidField', `The pod can't be given to CNI plugins: ${problem}.`);
      return order.perKey(network.podSandboxId, async () => {
        if (await beginAttempt(network.podSandboxId)) await chain.del(network, null, signal);
        const { result, ips } = await chain.add(network, signal);
        return { ips: orderIps(ips, options.ipPreference), result };
      });
    },
    DetachNetwork: async ({ network, result }, { signal }) => {
      // No plugin was ever run with such identifiers: AttachNetwork refuses them.
      if (identifierProblem(network) !== null) return {};
      await order.perKey(network.podSandboxId, async () => {
        await chain.del(network, result, signal);
        await endAttempt(network.podSandboxId);
      });
      return {};
    },
  };

  // ---- configuration ----

  let current: LoadedConfDir = { network: null, problem: `${confDir} was not read yet`, skipped: [] };
  let observed: string | null = null;
  let reloading: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | null = null;
  let firstChangeMs = 0;

  const watch = createDirectoryWatch({ onChange: () => scheduleReload(), onFailure: fail });

  const pathsOf = (loaded: LoadedConfDir): readonly string[] =>
    loaded.network === null ? [confDir] : [confDir, pluginDirectory(confDir, loaded.network.confList.name)];

  /** Arms the watches before reading, so that no change falls between the two. */
  const readWatched = async (): Promise<LoadedConfDir> => {
    await watch.watchPaths(pathsOf(current));
    const loaded = await loadConfDir(confDir, maxConfFiles);
    if (loaded.network?.confList.name === current.network?.confList.name) return loaded;
    await watch.watchPaths(pathsOf(loaded));
    return loadConfDir(confDir, maxConfFiles);
  };

  const reload = async (): Promise<void> => {
    const loaded = await readWatched();
    current = loaded;
    const confList = loaded.network?.confList ?? null;
    const text = JSON.stringify([confList, loaded.problem]);
    if (closed || text === observed) return;
    for (const skipped of loaded.skipped) log.warn({ confDir }, `CNI configuration file ${skipped}`);
    if (loaded.network === null) log.warn({ confDir }, loaded.problem ?? '');
    else log.info({ confDir }, `CNI network ${loaded.network.confList.name} is read from ${loaded.network.path}`);
    await observe({ kind: 'NetworkConfigured', confList, problem: loaded.problem });
    observed = text;
  };

  const queueReload = (): Promise<void> => {
    reloading = reloading.then(reload);
    return reloading;
  };

  const scheduleReload = (): void => {
    if (closed) return;
    const nowMs = performance.now();
    if (timer === null) firstChangeMs = nowMs;
    else clearTimeout(timer);
    const waitMs = Math.max(0, Math.min(QUIET_MS, firstChangeMs + QUIET_WAIT_MAX_MS - nowMs));
    timer = setTimeout(() => {
      timer = null;
      queueReload().catch(fail);
    }, waitMs);
  };

  return {
    effects,
    start: async () => {
      await mkdir(attemptsDir, { recursive: true, mode: 0o700 });
      await queueReload();
    },
    check: (network, result) => order.perKey(network.podSandboxId, () => chain.check(network, result)),
    gc: async (validAttachments) => {
      const network = current.network;
      if (network === null || network.disableGC) return;
      await order.alone(() => chain.gc(network.confList, validAttachments()));
    },
    status: async () => {
      const confList = current.network?.confList ?? null;
      if (confList === null) return { networkName: null, problem: current.problem };
      return { networkName: confList.name, problem: await chain.status(confList) };
    },
    failed,
    close: () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      watch.close();
    },
  };
};
