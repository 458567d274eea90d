/**
 * What keeps a journal in shape while the daemon runs, on the simulated disk: snapshots of the durable state, from which
 * later lives start, and the product's own retention, with times short enough to prune what has just ended.
 */
import { EVOLVER_VERSION } from '../../src/domain/turn/evolve.ts';
import { writeState } from '../../src/domain/turn/snapshot.ts';
import type { NodeState } from '../../src/domain/model/state.ts';
import { classOfCall, isClosedStream } from '../../src/domain/turn/closed-streams.ts';
import { overWith, type PluginLives } from '../../src/domain/turn/plugin-lives.ts';
import type { KeptJournal } from '../../src/journal/types.ts';
import { createRetention } from '../../src/journal/retention.ts';
import type { Daemon, History } from './history.ts';
import type { Plant } from './plant.ts';

export interface House {
  readonly snapshot: () => void;
  readonly prune: () => void;
}

const DIES_SOON_RATE = 0.2;
const SECOND_NS = 1_000_000_000n;

/** The state that a snapshot holds, with the last record in it. */
const durableState = ({ view }: Daemon): { readonly state: Readonly<NodeState>; readonly seq: number } => ({
  state: view.state,
  seq: view.seq(),
});

export function keepHouse(
  history: History,
  daemon: Daemon,
  journal: KeptJournal,
  plant: Plant | undefined,
  die: () => void,
): House {
  const { random, scheduler } = history;
  const soon = random.chance(0.5);
  const atOnce = { keptNs: 0n };
  const lives: PluginLives = new Map();
  const retention = createRetention({
    journal,
    record: daemon.engine.recordOwn,
    policy: {
      readsNs: SECOND_NS,
      calls: soon
        ? { probes: atOnce, sessions: atOnce, reads: atOnce, 'refused calls': { ...atOnce, isAlone: true } }
        : { probes: { keptNs: SECOND_NS } },
      restNs: random.chance(0.5) ? 0n : 5n * SECOND_NS,
      maxBytes: Number.MAX_SAFE_INTEGER,
    },
    isClosed: (stream) => plant?.isClosed?.(daemon, stream) ?? isClosedStream(daemon.view.state, stream),
    overWith: (record) => overWith(lives, record),
    classOf: (record) => classOfCall(daemon.view.state, record),
  });
  // One thing at a time: a snapshot from before a pruning may hold what the pruning took the end of.
  let busy = false;
  return {
    snapshot() {
      if (busy) return;
      busy = true;
      const { state, seq } = plant?.snapshotOf?.(daemon) ?? durableState(daemon);
      const text = writeState(state);
      // Writing it takes a while; a daemon that dies meanwhile has none. Many die soon after.
      const tookMs = random.chance(0.5) ? 0.05 : 5;
      scheduler.after(tookMs, () => {
        busy = false;
        if (daemon.dead) return;
        // A journal that ends meanwhile has none.
        journal.writeSnapshot({ seq, evolverVersion: EVOLVER_VERSION, state: text }).catch(() => undefined);
      });
      if (!history.calm && random.chance(DIES_SOON_RATE)) scheduler.after(tookMs + 0.1, die);
    },
    prune() {
      if (busy) return;
      busy = true;
      retention.run(scheduler.nowNs()).then(
        () => void (busy = false),
        // Where a commit failed, the daemon ends.
        () => void (busy = false),
      );
    },
  };
}
