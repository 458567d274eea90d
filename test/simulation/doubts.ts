/**
 * A journal that is doubted, in some histories: some starts find that it is not all that was written, until an operator says
 * that he knows. What a start found half made is left alone until then, unless somebody asks for it.
 */
import { containerStream, sandboxStream, type Sequenced } from '../../src/domain/model/records.ts';
import type { NodeState } from '../../src/domain/model/state.ts';
import type { Daemon, History } from './history.ts';
import { Violation } from './violation.ts';

const DOUBTED_RATE = 0.3;
const KNOWN_RATE = 0.1;
const LOOK_MS = 2_000;

const isDoubted = ({ journalDoubts = [] }: Readonly<NodeState>): boolean => journalDoubts.length > 0;

/** Before a life of the daemon is recorded. */
export function doubtJournal({ dimensions, random, calm, contents }: History, { engine }: Daemon): void {
  if (!dimensions.journalIsDoubted || calm || contents.rows.length === 0 || !random.chance(DOUBTED_RATE)) return;
  const observation = { kind: 'JournalDoubted', doubt: { what: 'Its newest records are missing.' } } as const;
  engine.observe(observation).catch(() => undefined);
}

/** Whoever looks after the node comes now and then, and in quiet periods soon. */
export function knowJournal(history: History): void {
  const { dimensions, random, scheduler } = history;
  if (!dimensions.journalIsDoubted) return;
  const look = (): void => {
    const { daemon } = history;
    const isThere = daemon !== null && !daemon.dead && isDoubted(daemon.view.state);
    if (isThere && (history.calm || random.chance(KNOWN_RATE)))
      daemon.engine
        .call({ method: 'AcknowledgeJournal', reason: 'It was put back.' }, { caller: null, deadlineNs: null })
        .catch(() => undefined);
    scheduler.after(LOOK_MS, look);
  };
  scheduler.after(LOOK_MS, look);
}

const ENDS: readonly string[] = ['sandbox.failed', 'sandbox.ready', 'container.failed', 'container.created'];

/** Of what is decided while the journal is doubted: nothing that nobody asks for is made or given up. */
export function checkLeftAlone(history: History, state: Readonly<NodeState>, records: readonly Sequenced[]): void {
  const [input] = records;
  if (!isDoubted(state) || history.dimensions.turnsThrow) return;
  for (const { type, stream, body } of records) {
    if (type === 'call.joined') history.foundHalfMade.delete(body.target);
    if (ENDS.includes(type) && history.foundHalfMade.has(stream))
      throw new Violation(`${type} of ${stream} follows from ${input?.type ?? ''} while the journal is doubted.`);
  }
}

/** Streams of what a start finds half made. */
export const halfMadeIn = ({ sandboxes, containers }: Readonly<NodeState>): Set<string> =>
  new Set([
    ...[...sandboxes.values()].flatMap(({ id, phase, goal }) =>
      phase === 'creating' && goal === 'run' ? [sandboxStream(id)] : [],
    ),
    ...[...containers.values()].flatMap(({ id, phase, goal }) =>
      phase.kind === 'creating' && goal === 'run' ? [containerStream(id)] : [],
    ),
  ]);
