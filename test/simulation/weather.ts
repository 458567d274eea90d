/**
 * What a node goes through besides: a disk that fills up for a while or is slow, a commit that fails, a wall clock that
 * somebody sets, orders to stop, housekeeping, and failures that last until somebody mends what is broken.
 */
import type { History } from './history.ts';
import { damageContent } from './damage.ts';
import type { Lives } from './life.ts';
import { muteSomeShim } from './unresponsive.ts';

const STOP_RATE = 0.002;
const HOUSE_RATE = 0.02;
const CLOCK_RATE = 0.001;
const MUTE_RATE = 0.1;
const FULL_RATE = 0.002;
const COMMIT_FAILS_RATE = 0.0005;

const DAMAGE_RATE = 0.01;

const FULL_MS = 400;
const NS_PER_MS = 1_000_000n;
const BACK_MS_MAX = 60_000;
const FORTH_MS_MAX = 3_600_000;

/** Once a step, as long as the history is not calm. */
export function haveWeather(history: History, lives: Lives): void {
  const { random, scheduler, world } = history;
  if (random.chance(STOP_RATE)) lives.stop();
  if (random.chance(HOUSE_RATE)) (random.chance(0.5) ? history.house?.snapshot : history.house?.prune)?.();
  if (random.chance(COMMIT_FAILS_RATE)) world.nextCommitFails = true;
  if (history.dimensions.contentIsDamaged && random.chance(DAMAGE_RATE)) damageContent(history, lives.tell);
  if (random.chance(CLOCK_RATE)) {
    const ms = random.chance(0.5) ? -random.below(BACK_MS_MAX) : random.below(FORTH_MS_MAX);
    world.clockWasSet = true;
    scheduler.setClock(BigInt(ms) * NS_PER_MS);
  }
  if (history.dimensions.shimsAreMute && random.chance(MUTE_RATE)) muteSomeShim(world, scheduler, random);
  lives.plugins.comeOrGo();
  if (random.chance(FULL_RATE)) {
    world.diskIsFull = true;
    world.diskWasFull = true;
    scheduler.after(FULL_MS, () => void (world.diskIsFull = false));
  }
}
