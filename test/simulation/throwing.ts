/**
 * Bugs of the deciders, in some histories: a turn throws when it is decided already, once or at the next tries too, so that
 * every way out of it is gone (docs/decisions/turns-that-throw.md). Notes of whom nothing was told to the state: these
 * wait for the next call or the next start.
 */
import type { decide as decideInput } from '../../src/domain/turn/decide.ts';
import { type EffectEnded, type Input, type Sequenced, subjectOf } from '../../src/domain/model/records.ts';
import type { NodeState } from '../../src/domain/model/state.ts';
import { ObjectStuckError } from '../../src/domain/deciding/turn-failed.ts';
import type { History } from './history.ts';
import type { Signals } from './model/signals.ts';
import type { Random } from './random.ts';

const THROW_RATE = 0.02;
/** How many tries of one input throw. */
const ONCE_RATE = 0.6;
const TWICE_RATE = 0.7;

type Decide = typeof decideInput;

/** Decides as `decide` does, and throws now and then, for so many tries of the input of one number. */
function throwing({ random, world, signals, isCalm }: ThrowingOptions, decide: Decide): Decide {
  let failing: { readonly seq: number; left: number } | null = null;

  function throwsAt(input: Sequenced<Input>): boolean {
    if (!mayThrow(input)) return false;
    if (failing?.seq !== input.seq)
      failing = isCalm() || !random.chance(THROW_RATE) ? null : { seq: input.seq, left: triesOf(random) };
    if (failing === null || failing.left === 0) return false;
    failing.left -= 1;
    return true;
  }

  return (state, input) => {
    const isThrowing = throwsAt(input);
    if (!isThrowing) noteStuck(world, state, input);
    if (!isThrowing && isSignalInDoubt(input)) signals.failed(subjectOf(input.stream).id);
    const events = decide(state, input);
    if (!isThrowing) return events;
    world.threw = true;
    const streams = input.type === 'daemon.started' ? [...state.sandboxes.keys()].map((id) => `sandbox/${id}`) : [];
    const error = new TypeError('planted');
    throw streams.length > 0 ? new ObjectStuckError(random.pick(streams), error) : error;
  };
}

const triesOf = (random: Random): number => (random.chance(ONCE_RATE) ? 1 : random.chance(TWICE_RATE) ? 2 : 3);

/** Not where the daemon would have to end: that is looked at elsewhere. */
const mayThrow = (input: Sequenced<Input>): boolean =>
  input.type !== 'turn.failed' ||
  (input.body.handling !== 'none' &&
    input.body.handling !== 'interrupted' &&
    input.body.input.type !== 'daemon.started');

/** It is sent again, as after a restart: nobody knows whether it was delivered. */
const isSignalInDoubt = (input: Input): boolean =>
  input.type === 'turn.failed' &&
  input.body.handling === 'interrupted' &&
  (input.body.input.body as Partial<EffectEnded>).kind === 'KillTask';

interface Stuck {
  /** Pods and images of which something happened that the state does not know. */
  readonly stuck: Set<string>;
  readonly unread: Set<string>;
}

interface ThrowingOptions {
  readonly random: Random;
  readonly world: Stuck & { threw: boolean };
  readonly signals: Signals;
  readonly isCalm: () => boolean;
}

function podOf({ containers }: NodeState, stream: string): string {
  const { id } = subjectOf(stream);
  return containers.get(id)?.podSandboxId ?? id;
}

const stick = ({ stuck }: Stuck, state: NodeState, stream: string): void => void stuck.add(podOf(state, stream));

function noteStuck(world: Stuck, state: NodeState, input: Sequenced<Input>): void {
  if (input.type === 'turn.failed' && input.body.handling === 'none') stick(world, state, input.stream);
  if (input.type === 'turn.failed' && input.body.handling === 'interrupted')
    world.unread.add(podOf(state, input.stream));
  if (input.type === 'daemon.started') world.stuck.clear();
}

export const decidingIn = (history: History, decide: Decide): Decide =>
  history.dimensions.turnsThrow
    ? throwing(
        {
          random: history.random,
          world: history.world,
          signals: history.model.signals,
          isCalm: () => history.calm,
        },
        decide,
      )
    : decide;
