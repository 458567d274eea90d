/**
 * Which network pods get, of the default directory or of a runtime handler's own: reads the directory, watches it, and
 * observes what it says whenever that changed. Must not touch what is attached already.
 */
import type { Observe } from '../../engine/ports.ts';
import { type LoadedConfDir, loadConfDir, pluginDirectory } from './conf.ts';
import { createDirectoryWatch } from './watch.ts';

/** A configuration is read once its directory has been quiet for this long, so that half-written files pass by. */
const QUIET_MS = 100;
/** A directory that is never quiet is read this long after its first change. */
const QUIET_WAIT_MAX_MS = 1000;
/** A directory that cannot be watched is read this often: every user has so many inotify instances, and pods use root's up, too. */
const UNWATCHED_EVERY_MS = 10_000;

export interface CniLog {
  readonly info: (fields: object, message: string) => void;
  readonly warn: (fields: object, message: string) => void;
}

export interface NetworkWatchOptions {
  readonly confDir: string;
  /** The runtime handler whose network it is; absent: that of all that have none of their own. */
  readonly handler?: string;
  /** Absent: the first valid network counts. */
  readonly networkName?: string;
  readonly maxConfFiles: number;
  readonly observe: Observe;
  readonly log: CniLog;
  /** Absent: every ten seconds. */
  readonly unwatchedEveryMs?: number;
  /** Told why what the directory says cannot be observed any longer. */
  readonly fail: (error: Error) => void;
}

export interface NetworkWatch {
  /** Reads the configuration, observes it, and watches it from then on. Call once. */
  readonly start: () => Promise<void>;
  readonly current: () => LoadedConfDir;
  readonly close: () => void;
}

export const createNetworkWatch = (options: NetworkWatchOptions): NetworkWatch => {
  const { confDir, handler, networkName, maxConfFiles, observe, log, fail } = options;
  const { unwatchedEveryMs = UNWATCHED_EVERY_MS } = options;
  const said = { confDir, ...(handler === undefined ? {} : { handler }) };
  let closed = false;
  let current: LoadedConfDir = { network: null, problem: `${confDir} was not read yet`, skipped: [] };
  let observed: string | null = null;
  let reloading: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | null = null;
  let firstChangeMs = 0;
  let lookTimer: NodeJS.Timeout | null = null;
  let isUnwatched = false;

  const watch = createDirectoryWatch({ onChange: () => scheduleReload(), onFailure: (error) => lookLater(error) });

  const lookLater = ({ message }: Error): void => {
    if (closed) return;
    if (!isUnwatched) {
      const remedy = 'raise fs.inotify.max_user_instances and fs.inotify.max_user_watches';
      const text = `${confDir} cannot be watched (${message}), so it is read every ${unwatchedEveryMs / 1000} s: ${remedy}`;
      log.warn(said, text);
    }
    isUnwatched = true;
    lookTimer ??= setTimeout(() => {
      lookTimer = null;
      queueReload().catch(fail);
    }, unwatchedEveryMs);
  };

  const noteWatched = (): void => {
    if (!isUnwatched || lookTimer !== null) return;
    isUnwatched = false;
    log.info(said, `${confDir} is watched again`);
  };

  const pathsOf = (loaded: LoadedConfDir): readonly string[] =>
    loaded.network === null ? [confDir] : [confDir, pluginDirectory(confDir, loaded.network.confList.name)];

  /** Arms the watches before reading, so that no change falls between the two. */
  const readWatched = async (): Promise<LoadedConfDir> => {
    await watch.watchPaths(pathsOf(current));
    const loaded = await loadConfDir(confDir, maxConfFiles, networkName);
    if (loaded.network?.confList.name === current.network?.confList.name) return loaded;
    await watch.watchPaths(pathsOf(loaded));
    return loadConfDir(confDir, maxConfFiles, networkName);
  };

  const reload = async (): Promise<void> => {
    const loaded = await readWatched();
    noteWatched();
    current = loaded;
    const confList = loaded.network?.confList ?? null;
    const text = JSON.stringify([confList, loaded.problem]);
    if (closed || text === observed) return;
    for (const skipped of loaded.skipped) log.warn(said, `CNI configuration file ${skipped}`);
    if (loaded.network === null) log.warn(said, loaded.problem ?? '');
    else log.info(said, `CNI network ${loaded.network.confList.name} is read from ${loaded.network.path}`);
    await observe({
      kind: 'NetworkConfigured',
      ...(handler === undefined ? {} : { handler }),
      confList,
      problem: loaded.problem,
    });
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
    start: queueReload,
    current: () => current,
    close: () => {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      if (lookTimer !== null) clearTimeout(lookTimer);
      watch.close();
    },
  };
};
