/** Decisions with something left out or put in, as if the product had decided so: for planted bugs. */
import { decide } from '../../src/domain/turn/decide.ts';
import { evolve } from '../../src/domain/turn/evolve.ts';
import type { Event, Input, Intent, Sequenced } from '../../src/domain/model/records.ts';
import { copyState, type NodeState } from '../../src/domain/model/state.ts';

type Events = readonly Sequenced<Event>[];
type Alter = (events: Events, input: Sequenced<Input>, before: NodeState) => Events;

/** The product's decision, changed by `alter`, which gets back the very list that it was given when nothing is to be. */
export const altered =
  (alter: Alter): typeof decide =>
  (state, input) => {
    const decided = decide(copyState(state), input);
    const kept = alter(decided, input, state).map((event, index) => ({ ...event, seq: input.seq + 1 + index }));
    evolve(state, input);
    for (const event of kept) evolve(state, event);
    return kept;
  };

/** As if some effects were never asked for. */
export const withoutEffects = (
  isLeftOut: (intent: Intent, input: Sequenced<Input>, before: NodeState) => boolean,
): typeof decide =>
  altered((events, input, before) =>
    events.flatMap((event): Events => {
      if (event.type !== 'effects.requested') return [event];
      const effects = event.body.effects.filter((intent) => !isLeftOut(intent, input, before));
      return effects.length === 0 ? [] : [{ ...event, body: { effects } }];
    }),
  );

/** As if some events were decided otherwise; null: not at all. */
export const withEvents = (
  change: (event: Sequenced<Event>, input: Sequenced<Input>, before: NodeState) => Sequenced<Event> | null,
): typeof decide =>
  altered((events, input, before) =>
    events.map((event) => change(event, input, before)).filter((event) => event !== null),
  );
