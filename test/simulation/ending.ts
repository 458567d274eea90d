/** When all is removed: nothing is left on the node, and every way of folding the journal gives the live state. */
import { evolve } from '../../src/domain/turn/evolve.ts';
import { writeState, readState } from '../../src/domain/turn/snapshot.ts';
import { initialState, type NodeState } from '../../src/domain/model/state.ts';
import { isClosedStream } from '../../src/domain/turn/closed-streams.ts';
import { overWith, type PluginLives } from '../../src/domain/turn/plugin-lives.ts';
import type { Sequenced } from '../../src/domain/model/records.ts';
import { digestOf, redecided } from '../support/redecided.ts';
import { CHECKS } from './checks.ts';
import type { History } from './history.ts';
import type { Plant } from './plant.ts';
import { Violation } from './violation.ts';
import { leftovers } from './world.ts';

/** Deciding all again takes as long as a tenth of the history did, and what depends on chance or time shows in any. */
const REDECIDED_RATE = 0.25;

export function checkEnd(history: History, plant: Plant | undefined): void {
  const { daemon, world, durable } = history;
  const left = leftovers(world);
  if (left.length > 0) throw new Violation(`All was removed and this is left: ${left.join(', ')}.`);
  if (daemon === null) throw new Violation('No daemon lives at the end.');
  durable.sync();
  history.disk.check();
  const all = durable.parsed.filter((record) => record !== null);
  const live = writeState(daemon.engine.state);
  const differs = (name: string, text: string): void => {
    if (text !== live) throw new Violation(`${name} differs from the live state:\n${text}\n${live}`);
  };
  differs('fold(all)', writeState(durable.state));
  differs('The view', writeState(daemon.view.state));
  const cut = history.random.below(all.length + 1);
  const snapshot = readState(writeState(fold(initialState(), all.slice(0, cut))));
  differs('fold(snapshot + tail)', writeState(fold(snapshot, all.slice(cut))));
  const closed = new Map<string, boolean>();
  const isClosed = (stream: string): boolean => {
    const known = closed.get(stream) ?? isClosedStream(durable.state, stream);
    closed.set(stream, known);
    return known;
  };
  const lives: PluginLives = new Map();
  const over = new Set(all.flatMap((record) => overWith(lives, { ...record, body: JSON.stringify(record.body) })));
  const pruned = all.filter(({ stream, seq }) => !isClosed(stream) && !over.has(seq));
  differs('fold(pruned)', writeState(fold(initialState(), pruned)));
  CHECKS.wholeJournal(all);
  // A planted decision is not what the product decides: that it differs would find every such plant, and mean nothing.
  if (plant?.decide !== undefined || !history.random.chance(REDECIDED_RATE)) return;
  const [difference] = redecided(all, { digestOf }).differences;
  if (difference !== undefined)
    throw new Violation(`Record ${difference.seq} is decided otherwise a second time: ${JSON.stringify(difference)}.`);
}

function fold(state: NodeState, records: readonly Sequenced[]): NodeState {
  for (const record of records) evolve(state, record);
  return state;
}
