/**
 * Ending a process with all that it has started: also what left its process group or session, and what was handed to
 * another parent when its own had ended. Signals no process that is not known to come from it, and each by pid and
 * start: a pid that has passed on to another is left alone.
 */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { SIGKILL, SIGSTOP } from '../../domain/values/signals.ts';
import { type HeldProcess, holdProcess, type ProcessStat, readProcessStat } from './processes.ts';

/** Each round finds what was started since the last; what then still starts more is killed as far as it is known. */
const ROUNDS_MAX = 20;
/** Cgroups nest no deeper in earnest. */
const DEPTH_MAX = 8;

type TreeStat = Pick<ProcessStat, 'pid' | 'parentPid' | 'session'>;

/**
 * Of the table, the root and what comes from it: children of members, all of a session that a member has begun, and
 * `related`, which are known to come from it by other means. A session can't be joined from outside, so whoever is in
 * one that began below the root was started there, whoever its parent is now.
 */
export const treeOf = <S extends TreeStat>(
  rootPid: number,
  table: readonly S[],
  related: ReadonlySet<number> = new Set(),
): readonly S[] => {
  const root = table.find(({ pid }) => pid === rootPid);
  if (root === undefined) return [];
  const pids = new Set<number>();
  const sessions = new Set<number>();
  const isMember = ({ pid, parentPid, session }: TreeStat): boolean =>
    pid === rootPid || pids.has(parentPid) || sessions.has(session) || related.has(pid);
  let size = -1;
  while (pids.size > size) {
    size = pids.size;
    for (const stat of table.filter(isMember)) {
      pids.add(stat.pid);
      // The root's own session is shared with whoever started it, unless the root began it.
      if (stat.session !== root.session || root.session === rootPid) sessions.add(stat.session);
    }
  }
  return table.filter(({ pid }) => pids.has(pid));
};

const linesOf = async (path: string): Promise<readonly string[]> =>
  (await readFile(path, 'utf8').catch(() => '')).split('\n').filter(Boolean);

/** Pids of the processes in a cgroup and those below it. */
const pidsInCgroup = async (dir: string, depth = 0): Promise<readonly number[]> => {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  const below = depth === DEPTH_MAX ? [] : entries.filter((entry) => entry.isDirectory());
  const [own, ...others] = await Promise.all([
    linesOf(join(dir, 'cgroup.procs')),
    ...below.map(({ name }) => pidsInCgroup(join(dir, name), depth + 1)),
  ]);
  return [...own.map(Number), ...others.flat()];
};

/** The pipes that stdout and stderr of the process are; what else they may be is shared with strangers. */
const pipesOf = async (pid: number): Promise<readonly string[]> => {
  const links = await Promise.all([1, 2].map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  return links.filter((link) => link.startsWith('pipe:'));
};

export interface Tree {
  readonly rootPid: number;
  /** What is looked for is in it or below. */
  readonly cgroupDir: string;
  /** The process that the cgroup is there for: never a part of the tree, and what writes where it does may be its own. */
  readonly mainPid: number;
}

/** Daemons that left all else of the root behind, but write to its pipes. */
const writersOf = async ({ rootPid, mainPid }: Tree, pids: readonly number[]): Promise<ReadonlySet<number>> => {
  const [ofRoot, ofMain] = await Promise.all([pipesOf(rootPid), pipesOf(mainPid)]);
  // A command may have turned its output to the log of the container, by /proc/1/fd/1.
  const own = ofRoot.filter((pipe) => !ofMain.includes(pipe));
  if (own.length === 0) return new Set();
  const writes = await Promise.all(pids.map(async (pid) => (await pipesOf(pid)).some((pipe) => own.includes(pipe))));
  return new Set(pids.filter((_pid, index) => writes[index]));
};

const look = async (tree: Tree): Promise<readonly ProcessStat[]> => {
  const pids = (await pidsInCgroup(tree.cgroupDir)).filter((pid) => pid !== tree.mainPid);
  const [stats, writers] = await Promise.all([Promise.all(pids.map(readProcessStat)), writersOf(tree, pids)]);
  return treeOf(
    tree.rootPid,
    stats.filter((stat) => stat !== null),
    writers,
  );
};

/**
 * Kills the root and all that it has started. They are stopped first: one that runs on could start others, and the
 * children of one that ends are handed to a parent that tells nothing of where they come from. How many they were.
 */
export const killTree = async (tree: Tree): Promise<number> => {
  const held: HeldProcess[] = [];
  const seen = new Set<string>();
  try {
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const found = await look(tree);
      const fresh = found.filter(({ pid, startTicks }) => !seen.has(`${pid} ${startTicks}`));
      if (fresh.length === 0) break;
      for (const name of fresh) {
        seen.add(`${name.pid} ${name.startTicks}`);
        const hold = await holdProcess(name);
        if (hold === null) continue;
        held.push(hold);
        hold.kill(SIGSTOP);
      }
    }
  } finally {
    for (const hold of held) {
      hold.kill(SIGKILL);
      hold.release();
    }
  }
  return held.length;
};
