/**
 * Makes a journal of so many records: the real engine decides all of them, on a made-up node whose clock jumps. So the
 * chain, the shapes and the decisions are those of a daemon, and memory holds no more than a node and one batch.
 */
import { copyState, initialState } from '../../../src/domain/model/state.ts';
import { createEngine } from '../../../src/engine/engine.ts';
import { nodeFold } from '../../../src/engine/node-fold.ts';
import { publishedView } from '../../../src/engine/published-view.ts';
import { connectWriter } from '../../../src/journal/connect.ts';
import { openJournal } from '../../../src/journal/open.ts';
import { createTreeBuilder } from '../../../src/journal/tree-table.ts';
import { createView } from '../../../src/projections/view.ts';
import { CONF_LIST, FACTS } from '../../../test/simulation/facts.ts';
import { createChoices } from '../../../test/simulation/random.ts';
import { bufferedJournal } from './buffer.ts';
import { createVirtualClock } from './clock.ts';
import { startWorkload } from './workload.ts';
import { createWorld } from './world.ts';

export interface LargeJournal {
  /** The database; must not be there yet. */
  readonly path: string;
  readonly records: number;
  readonly seed: number;
  readonly startNs?: bigint;
  /** Told now and then how many records there are. */
  readonly progress?: (records: number) => void;
}

const START_NS = 1_795_132_800_000_000_000n;
const BATCH_RECORDS = 4096;
const SNAPSHOT_EVERY_RECORDS = 40_000;

/** What a daemon's writer does little by little while it has nothing else to do, which it never has here. */
const growTree = (path: string): void => {
  const db = connectWriter(path);
  try {
    const tree = createTreeBuilder(db);
    while (tree.advance(BATCH_RECORDS));
    db.transaction(tree.flush)();
  } finally {
    db.close();
  }
};

/** As many as were asked for, and the rest of what the last moment brought. Returns how many. */
export const makeJournal = async (options: LargeJournal): Promise<number> => {
  const { path, records, seed, startNs = START_NS, progress = () => {} } = options;
  const { journal: disk } = openJournal({ path });
  const journal = bufferedJournal(disk);
  const random = createChoices(seed, []);
  const clock = createVirtualClock(startNs);
  const world = createWorld(clock, random);
  const state = initialState();
  const view = publishedView(createView(copyState(state), 0));
  const thrown: Error[] = [];
  const engine = createEngine({
    journal,
    state,
    perform: world.perform,
    clock,
    ids: world.ids,
    boot: world.ids.uuid(),
    publish: view.publish,
    published: view.state,
    diskIsFull: () => false,
    report: (message) => thrown.push(new Error(message)),
    fatal: (error) => thrown.push(error),
  });
  // Promises are settled by then: the journal answers at once, and nothing else waits for anything but the clock.
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const snapshot = async (): Promise<void> => {
    await journal.flush();
    const { evolverVersion, write } = nodeFold;
    await disk.writeSnapshot({ seq: journal.seq(), evolverVersion, state: write(engine.state) });
  };

  await engine.start({ facts: FACTS, rebooted: false, deadTasks: [], crash: null });
  await engine.observe({ kind: 'NetworkConfigured', confList: CONF_LIST, problem: null });
  const plugin = { id: '10-limits@1', index: '10', name: 'limits', hooks: ['CreateContainer'] } as const;
  await engine.observe({ kind: 'NriNoted', note: { type: 'nri.plugin.registered', body: plugin } });
  startWorkload({ engine, journal, clock, random, world });
  await settle();
  let [flushed, snapped] = [0, 0];
  while (journal.seq() < records) {
    if (!clock.step()) throw new Error('Nothing is due any more: the workload has come to an end.');
    await settle();
    const [problem] = thrown;
    if (problem !== undefined) throw problem;
    if (journal.seq() - flushed < BATCH_RECORDS) continue;
    flushed = journal.seq();
    await journal.flush();
    progress(flushed);
    if (flushed - snapped < SNAPSHOT_EVERY_RECORDS || !engine.isSettled()) continue;
    snapped = flushed;
    await snapshot();
  }
  await journal.close();
  growTree(path);
  // Signs what the tree is by now.
  await openJournal({ path }).journal.close();
  return journal.seq();
};
