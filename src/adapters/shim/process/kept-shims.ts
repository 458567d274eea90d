/**
 * Shims whose pod has gone, kept for a moment: the next pod that wants the same program takes one instead of starting it.
 * A shim has one pod at a time. Known here alone: the next start of the daemon ends what this one had kept
 * (left-shims.ts). Must not speak to a shim that a pod has.
 *
 *   started ──> of a pod ──StopShim──> kept ──StartShim──> of another pod, and so on
 *                  │ not clean, or enough are kept  │ its time is up, it died or is silent, the daemon stops
 *                  └────────────> ended <───────────┘
 */
import type { Logger } from 'pino';
import { messageOf } from '../../../domain/model/errors.ts';
import type { ShimAddress } from '../../../domain/model/tasks.ts';
import type { LiveShim } from './live-shim.ts';

/** What grows in a shim with each pod, if anything does, ends with it. */
const PODS_PER_LIFE = 64;

export interface KeptShimsSettings {
  /** How many at most; 0: none ever. */
  readonly shimsMax: number;
  readonly forMs: number;
}

interface Options extends KeptShimsSettings {
  /** One that is kept has to answer within this time to be taken. */
  readonly answerMs: number;
  /** Ends the process, and takes away what is the shim's own. */
  readonly end: (live: LiveShim) => Promise<void>;
  readonly log: Logger;
}

export interface KeptShims {
  readonly isOn: boolean;
  /** It was started by this daemon in a place of its own, and may be kept for whoever wants that program. */
  readonly allow: (live: LiveShim, program: string) => void;
  /** One that runs that program and answers, for another pod; null when there is none. */
  readonly take: (program: string) => Promise<LiveShim | null>;
  /** Called when its pod lets go of it. False: whoever calls has to end it. */
  readonly keep: (live: LiveShim) => boolean;
  /** It is kept, or another pod's by now. */
  readonly isKnown: (shim: ShimAddress) => boolean;
  /** Ends all that are kept. */
  readonly close: () => Promise<void>;
}

export const createKeptShims = ({ shimsMax, forMs, answerMs, end, log }: Options): KeptShims => {
  /** All that may be kept, and how many pods each has had. */
  const known = new Map<LiveShim, { readonly program: string; pods: number }>();
  const waiting = new Map<LiveShim, NodeJS.Timeout>();
  const ending = new Set<Promise<void>>();
  let closed = false;

  const drop = (live: LiveShim): void => {
    clearTimeout(waiting.get(live));
    waiting.delete(live);
    known.delete(live);
    const ended = end(live)
      .catch((error: unknown) => log.warn({ shimId: live.id, error: messageOf(error) }, 'a kept shim is not ended yet'))
      .finally(() => ending.delete(ended));
    ending.add(ended);
  };

  const answers = async (live: LiveShim): Promise<boolean> => {
    try {
      await (await live.client()).connect({ id: live.id }, answerMs);
      return !live.isGone();
    } catch {
      return false;
    }
  };

  return {
    isOn: shimsMax > 0 && forMs > 0,
    allow: (live, program) => {
      known.set(live, { program, pods: 1 });
      void live.ended.then(() => {
        if (waiting.has(live)) drop(live);
      });
    },
    take: async (program) => {
      for (;;) {
        // The newest: those that nobody needs come to their end.
        const live = [...waiting.keys()].findLast((one) => known.get(one)?.program === program);
        const use = live === undefined ? undefined : known.get(live);
        if (live === undefined || use === undefined) return null;
        clearTimeout(waiting.get(live));
        waiting.delete(live);
        if (!(await answers(live))) {
          drop(live);
          continue;
        }
        use.pods += 1;
        return live;
      }
    },
    keep: (live) => {
      const use = known.get(live);
      if (use === undefined) return false;
      if (closed || !live.isClean() || use.pods >= PODS_PER_LIFE || waiting.size >= shimsMax) {
        known.delete(live);
        return false;
      }
      const timer = setTimeout(() => drop(live), forMs);
      timer.unref();
      waiting.set(live, timer);
      return true;
    },
    isKnown: ({ pid, startTicks }) =>
      [...known.keys()].some(({ shim }) => shim.pid === pid && shim.startTicks === startTicks),
    close: async () => {
      closed = true;
      for (const live of [...waiting.keys()]) drop(live);
      await Promise.all(ending);
    },
  };
};
