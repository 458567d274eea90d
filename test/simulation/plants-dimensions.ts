/** Bugs that only show where a dimension of its own is simulated: deciders that throw, mute shims, what never ends. */
import { withoutEffects } from './altered.ts';
import type { Plant } from './plant.ts';

export const DIMENSION_PLANTS: readonly Plant[] = [
  {
    name: 'nobody looks again after a turn that threw',
    decide: withoutEffects(
      (intent, input) => intent.kind === 'WaitUntil' && intent.purpose === 'retry' && input.type === 'turn.failed',
    ),
  },
];
