/**
 * Unpacking processes that are started before there is anything to unpack, so that a layer does not wait for one: when a
 * pull has to fetch its image's manifest, and a moment after something was unpacked, since one pull seldom comes alone. There
 * is one at most, it has read nothing of anybody, and it ends when nobody needs it for a while.
 */
import type { Spawner } from '../../../platform/spawner/types.ts';
import type { ImageLimits } from '../types.ts';
import { startUnpackerProcess, type Unpacked, type UnpackerProcess, type UnpackerRun } from './run-child.ts';

export interface UnpackerProcesses {
  /** Has a process unpack an archive into a directory. Throws FailureError, or the signal's reason. */
  readonly run: (run: UnpackerRun) => Promise<Unpacked>;
  /** Something will have to be unpacked soon. */
  readonly expect: () => void;
  readonly close: () => void;
}

/** As long as the pulling thread stays. */
const KEPT_MS = 15_000;
/** What was pulled is started first. */
const QUIET_MS = 1_000;

export const createUnpackerProcesses = (spawner: Pick<Spawner, 'run'>, limits: ImageLimits): UnpackerProcesses => {
  let spare: UnpackerProcess | null = null;
  let working = 0;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

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
    const started = startUnpackerProcess(spawner, limits);
    spare = started;
    void started.ended.then(() => {
      if (spare === started) spare = null;
    });
  };

  return {
    expect,
    run: async (run) => {
      run.signal.throwIfAborted();
      const taken = spare ?? startUnpackerProcess(spawner, limits);
      spare = null;
      working += 1;
      try {
        return await taken.unpack(run);
      } finally {
        working -= 1;
        if (working === 0 && !isClosed) later(QUIET_MS, expect);
      }
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      endSpare();
    },
  };
};
