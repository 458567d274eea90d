/**
 * A mount namespace of a test's own, for what the machine's mounts are in the way of: changed as the test says, gone with
 * all that was mounted in it when its owner ends.
 */
import type { Owner } from './cleanup.ts';
import { requireRoot } from './netns.ts';
import { startProcess } from './process.ts';

/** A node with cgroup v1 whose empty v2 hierarchy is out of sight: crun would take that for the one to use. */
export const withoutUnified = 'if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi';

/** In front of a command that is to run in the namespace of a path. */
export const insideMounts = (path: string | undefined): readonly string[] =>
  path === undefined ? [] : ['nsenter', `--mount=${path}`, '--'];

/** Makes one and runs `script` in it; resolves with the path that stands for it. */
export const privateMounts = async (owner: Owner, script: string): Promise<string> => {
  requireRoot();
  // The namespace lives as long as this process does, over all starts of a daemon in it.
  const argv = ['unshare', '--mount', '--', 'sh', '-ec', `${script}\necho ready\nexec sleep 1000000`];
  const holder = await startProcess(owner, argv);
  await holder.until(/^ready$/m);
  return `/proc/${holder.pid}/ns/mnt`;
};
