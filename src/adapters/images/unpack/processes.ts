/**
 * Unpacking processes, which are started before there is anything to unpack, so that a layer does not wait for one: with a
 * pull of what is not here or whose manifest is not, and a moment after something was unpacked, since one pull seldom comes alone; at
 * once when one comes right after the other. There is one such spare at most, it has read nothing of anybody, and it ends when
 * nobody needs it for a while. One that has unpacked a layer is kept for a layer above it in the same image, and for no other.
 */
import { unlessAborted } from '../../../platform/rpc/timeout.ts';
import type { Spawner } from '../../../platform/spawner/types.ts';
import type { ImageLimits } from '../types.ts';
import type { Homes } from './home.ts';
import { startUnpackerProcess, type Unpacked, type UnpackerProcess, type UnpackerRun } from './run-child.ts';
import { type ChainPlace, isAbove } from './turns.ts';

export interface UnpackerProcesses {
  /**
   * Has a process unpack an archive into a directory. Throws FailureError, or the signal's reason. `vouched`: resolves when
   * the archive is known to be what it should be, where that is not known yet; it is waited for.
   */
  readonly run: (run: UnpackerRun, vouched?: Promise<void>) => Promise<Unpacked>;
  /** Something will have to be unpacked soon. */
  readonly expect: () => void;
  /** That layer will be unpacked from its whole blob, unless the returned function is called before. */
  readonly await: (place: ChainPlace) => () => void;
  /** A process that has unpacked a layer below that one waits for one above. */
  readonly isBelow: (place: ChainPlace) => boolean;
  readonly close: () => void;
}

/** As long as the pulling thread stays. */
const KEPT_MS = 15_000;
/** What was pulled is asked for next, and has the processors; another pull may come soon after, too. */
const QUIET_MS = 300;
/** One that is asked for so soon after another was taken finds none that is ready: a node is being filled, and the next starts at once. */
const IN_A_ROW_MS = 500;
/** For a layer above, which is on its way. */
const RESTED_MS = 1_000;

interface Rested {
  readonly process: UnpackerProcess;
  readonly place: ChainPlace;
  readonly timer: NodeJS.Timeout;
}

/** Processes that have unpacked a layer, each for one that lies above it. */
const createRest = () => {
  const awaited = new Map<string, ChainPlace>();
  const rested = new Set<Rested>();
  const isAwaited = (lower: ChainPlace): boolean => awaited.values().some((place) => isAbove(place, lower));
  const leave = (one: Rested): void => {
    clearTimeout(one.timer);
    rested.delete(one);
  };
  const end = (one: Rested): void => {
    leave(one);
    one.process.end();
  };
  const forget = ({ chainId }: ChainPlace): void => {
    awaited.delete(chainId);
    for (const one of rested) if (!isAwaited(one.place)) end(one);
  };
  return {
    await: (place: ChainPlace): (() => void) => {
      awaited.set(place.chainId, place);
      return () => forget(place);
    },
    /** Ends the process when no layer is known that lies above. */
    put: (process: UnpackerProcess, place: ChainPlace): void => {
      if (!isAwaited(place)) return process.end();
      const one: Rested = { process, place, timer: setTimeout(() => end(one), RESTED_MS) };
      rested.add(one);
      void process.gone.then(() => leave(one));
    },
    take: async (place: ChainPlace, archivePath: string): Promise<UnpackerProcess | null> => {
      for (const one of awaited.has(place.chainId) ? rested : [])
        if (isAbove(place, one.place)) {
          leave(one);
          if (await one.process.canReach(archivePath)) return one.process;
          one.process.end();
        }
      return null;
    },
    forget,
    isBelow: (place: ChainPlace): boolean => rested.values().some((one) => isAbove(place, one.place)),
    endAll: () => rested.forEach(end),
  };
};

export const createUnpackerProcesses = (
  spawner: Pick<Spawner, 'run'>,
  limits: ImageLimits,
  homes: Pick<Homes, 'make' | 'remove'>,
  nowMs: () => number = () => performance.now(),
): UnpackerProcesses => {
  const rest = createRest();
  let spare: UnpackerProcess | null = null;
  let working = 0;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let takenAtMs = Number.NEGATIVE_INFINITY;

  const start = (): UnpackerProcess => startUnpackerProcess(spawner, limits, homes);
  const later = (waitMs: number, work: () => void): void => {
    clearTimeout(timer);
    timer = setTimeout(work, waitMs);
    timer.unref();
  };
  const endSpare = (): void => {
    spare?.end();
    spare = null;
  };
  const expect = (): void => {
    if (isClosed) return;
    later(KEPT_MS, endSpare);
    if (spare !== null) return;
    const started = start();
    spare = started;
    void started.gone.then(() => {
      if (spare === started) spare = null;
    });
  };
  const takeSpare = (): UnpackerProcess => {
    const taken = spare ?? start();
    spare = null;
    const lastAtMs = takenAtMs;
    takenAtMs = nowMs();
    if (takenAtMs - lastAtMs < IN_A_ROW_MS) expect();
    return taken;
  };

  /** What comes while a download goes on may be anybody's: no process that has read it goes on before it is vouched for. */
  const unpackBy = async (taken: UnpackerProcess, run: UnpackerRun, vouched?: Promise<void>): Promise<Unpacked> => {
    const unpacked = await taken.unpack(run);
    try {
      if (vouched !== undefined) await unlessAborted(vouched, run.signal);
    } catch (error) {
      taken.end();
      await taken.gone;
      throw error;
    }
    if (run.place === null) taken.end();
    else rest.put(taken, run.place);
    return unpacked;
  };

  return {
    expect,
    await: rest.await,
    isBelow: rest.isBelow,
    run: async (run, vouched) => {
      const { signal, place } = run;
      signal.throwIfAborted();
      working += 1;
      try {
        const taken = (place === null ? null : await rest.take(place, run.archivePath)) ?? takeSpare();
        if (place !== null) rest.forget(place);
        return await unpackBy(taken, run, vouched);
      } finally {
        working -= 1;
        if (working === 0 && !isClosed) later(QUIET_MS, expect);
      }
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      endSpare();
      rest.endAll();
    },
  };
};
