/** What a planted bug replaces: one piece of the daemon, or of what lies between it and its clients and its disk. */
import type { decide } from '../../src/domain/turn/decide.ts';
import type { Clock, Observe, PerformEffects } from '../../src/engine/ports.ts';
import type { NodeState } from '../../src/domain/model/state.ts';
import type { StartWriter } from '../../src/journal/writer-messages.ts';
import type { Journal } from '../../src/journal/types.ts';
import type { Boundary } from './boundaries.ts';
import type { Dimension } from './dimensions.ts';
import type { Daemon } from './history.ts';
import type { World } from './world.ts';

export interface Plant {
  readonly name: string;
  /** Where the daemon has to die for the bug to matter, if that is seldom; whatever comes up otherwise. */
  readonly target?: Boundary;
  /** What histories have to be about for the bug to matter; whatever they are about otherwise. */
  readonly about?: readonly Dimension[];
  readonly decide?: typeof decide;
  readonly perform?: (real: PerformEffects, world: World) => PerformEffects;
  readonly journal?: (real: Journal) => Journal;
  /** On the journal that scribe runs on only. */
  readonly startWriter?: (real: StartWriter) => StartWriter;
  readonly observe?: (real: Observe) => Observe;
  readonly clock?: (real: Clock) => Clock;
  /** The state that a snapshot is made of, with the last record in it. */
  readonly snapshotOf?: (daemon: Daemon) => { readonly state: Readonly<NodeState>; readonly seq: number };
  /** What pruning takes for a stream on which nothing will be recorded again. */
  readonly isClosed?: (daemon: Daemon, stream: string) => boolean;
  /** Which tasks a start finds dead. */
  readonly deadTasks?: (found: readonly string[], state: Readonly<NodeState>, world: World) => readonly string[];
  /** Deletes a task at its exit, before the exit is written down. */
  readonly deleteAtExit?: boolean;
}
