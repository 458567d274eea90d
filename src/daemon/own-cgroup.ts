/**
 * The daemon's own control group and OOM score, as configured: taken before anything is started that inherits them. What
 * the kernel refuses is said in the log and keeps nothing from starting (C20).
 */
import type { Logger } from 'pino';
import { readCgroupFacts } from '../platform/linux/cgroups.ts';
import { joinCgroup, setOomScoreAdj } from '../platform/linux/own-process.ts';
import type { Config } from '../config/config.ts';

type Log = Pick<Logger, 'info' | 'warn'>;

export interface OwnCgroup {
  /** Moves a process that was there before the daemon to where the daemon is. */
  readonly takeIn: (pid: number) => void;
}

export async function joinOwnCgroup({ cgroup, oomScoreAdj }: Config['serve'], log: Log): Promise<OwnCgroup> {
  if (oomScoreAdj !== null) {
    const actual = setOomScoreAdj(oomScoreAdj);
    if (actual === oomScoreAdj) log.info({ oomScoreAdj }, 'OOM score set');
    else
      log.warn(
        { oomScoreAdj: actual, wanted: oomScoreAdj },
        'the OOM score cannot be lowered: CAP_SYS_RESOURCE is missing',
      );
  }
  if (cgroup === null) return { takeIn: () => undefined };
  const facts = await readCgroupFacts();
  const takeIn = (pid: number): void => {
    try {
      joinCgroup(facts, cgroup, pid);
      log.info({ cgroup, pid }, 'moved to its control group');
    } catch (error) {
      log.warn({ error, cgroup, pid }, 'a process of scribe cannot be moved to its control group');
    }
  };
  takeIn(process.pid);
  return { takeIn };
}
