/**
 * Watches directories that may not be there yet, may go away and may be replaced: each directory itself, and
 * every ancestor for the one name that leads to it. Says only that something changed, never what.
 * Must not read files or poll: the kernel tells (inotify).
 */
import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { errorCodeOf } from '../../platform/error-code.ts';

export interface DirectoryWatch {
  /**
   * Watches exactly these absolute paths from now on. Once it resolves, any later change of them is reported.
   * Call it again after each report: it moves watches to what is at the paths now.
   */
  readonly watchPaths: (paths: readonly string[]) => Promise<void>;
  readonly close: () => void;
}

interface Watched {
  readonly watcher: FSWatcher;
  /** Device, inode and birth: tells a directory from the one that took its place, which may be given the same inode. */
  readonly identity: string;
  /** Names whose events matter; null for all. */
  names: ReadonlySet<string> | null;
}

/** Every directory to watch, outermost first, with the names that matter in it (null: all). */
const watchPlan = (paths: readonly string[]): Map<string, Set<string> | null> => {
  const plan = new Map<string, Set<string> | null>();
  for (const path of paths) {
    plan.set(path, null);
    for (let child = path; dirname(child) !== child; child = dirname(child)) {
      const names = plan.get(dirname(child));
      if (names === undefined) plan.set(dirname(child), new Set([basename(child)]));
      else names?.add(basename(child));
    }
  }
  return new Map([...plan].sort(([a], [b]) => a.length - b.length));
};

const identityOf = async (path: string): Promise<string | null> => {
  try {
    const facts = await stat(path, { bigint: true });
    return facts.isDirectory() ? `${facts.dev}:${facts.ino}:${facts.birthtimeNs}` : null;
  } catch {
    return null;
  }
};

/** `onFailure` is called when the kernel refuses to watch a path: its changes go unseen until a later call can. */
export const createDirectoryWatch = ({
  onChange,
  onFailure,
}: {
  readonly onChange: () => void;
  readonly onFailure: (error: Error) => void;
}): DirectoryWatch => {
  const watched = new Map<string, Watched>();
  let closed = false;

  const forget = (path: string): void => {
    watched.get(path)?.watcher.close();
    watched.delete(path);
  };

  const begin = (path: string, identity: string, names: ReadonlySet<string> | null): void => {
    let watcher: FSWatcher;
    try {
      watcher = watch(path);
    } catch (error) {
      // Gone since it was looked at: its parent is watched already and has told, or will.
      if (errorCodeOf(error) !== 'ENOENT') onFailure(error as Error);
      return;
    }
    const entry: Watched = { watcher, identity, names };
    watcher.on('change', (_event, name) => {
      // An event of the directory itself carries its own name.
      const itself = name === basename(path);
      if (entry.names === null || itself || (typeof name === 'string' && entry.names.has(name))) onChange();
    });
    watcher.on('error', (error) => {
      // To be watched anew by the next call.
      forget(path);
      onFailure(error);
    });
    watched.set(path, entry);
  };

  const watchPaths = async (paths: readonly string[]): Promise<void> => {
    const plan = watchPlan(paths);
    for (const path of [...watched.keys()]) if (!plan.has(path)) forget(path);
    // Outermost first: whatever appears below a directory after it is watched makes an event, so nothing is missed.
    for (const [path, names] of plan) {
      const identity = await identityOf(path);
      if (closed) return;
      const current = watched.get(path);
      if (current !== undefined && current.identity === identity) {
        current.names = names;
        continue;
      }
      forget(path);
      if (identity !== null) begin(path, identity, names);
    }
  };

  const close = (): void => {
    closed = true;
    for (const path of [...watched.keys()]) forget(path);
  };

  return { watchPaths, close };
};
