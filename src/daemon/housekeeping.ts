/**
 * What keeps the journal in shape while the daemon runs: snapshots every so many records, retention every few
 * minutes, read segments closed on the way, snapshots of the past where they are missing. All of it in the background
 * and one thing at a time; a failure is logged and tried again, since none of it is needed for what was promised.
 */
import { filter, Subject, takeUntil } from 'rxjs';
import type { Config } from '../config/config.ts';
import { type CallClass, classOfCall, isClosedStream } from '../domain/turn/closed-streams.ts';
import { overWith, type PluginLives } from '../domain/turn/plugin-lives.ts';
import type { RecordOwn } from '../journal/types.ts';
import { type CallPolicy, createRetention } from '../journal/retention.ts';
import { nodeFold, nodeFoldModule } from '../engine/node-fold.ts';
import { openReader } from '../journal/open.ts';
import { missingSnapshot, takeSnapshot } from '../journal/snapshots.ts';
import type { SqliteJournal } from '../journal/sqlite-journal.ts';
import type { PublishedView } from '../engine/published-view.ts';
import { type HasStates, type LiveStates, takeStates } from './live-states.ts';
import { loggable } from './log.ts';

const RETENTION_EVERY_MS = 10 * 60_000;
const NS_PER_MS = 1_000_000n;

export interface HousekeepingOptions {
  readonly config: Pick<Config['journal'], 'snapshotEveryRecords' | 'retention'>;
  readonly journalPath: string;
  readonly journal: SqliteJournal;
  /** Where the start's fold began: records since then count towards the next snapshot. */
  readonly snapshotSeq: number;
  readonly view: PublishedView;
  readonly engine: HasStates & { readonly recordOwn: RecordOwn };
  readonly nowNs: () => bigint;
  readonly log: {
    readonly info: (fields: object, message: string) => void;
    readonly error: (fields: object, message: string) => void;
  };
  /** Told, in a sentence, what nobody may miss. */
  readonly report: (message: string) => void;
}

export interface Housekeeping {
  readonly close: () => Promise<void>;
}

const ns = (ms: number): bigint => BigInt(ms) * NS_PER_MS;

/** A class without a time of its own is kept as the rest is. */
const callPolicies = ({
  readsMs,
  execProbesMs,
  execSessionsMs,
  refusedCallsMs,
}: Config['journal']['retention']): Partial<Record<CallClass, CallPolicy>> & Record<string, CallPolicy> => ({
  probes: { keptNs: ns(execProbesMs) },
  reads: { keptNs: ns(readsMs) },
  ...(execSessionsMs === null ? {} : { sessions: { keptNs: ns(execSessionsMs) } }),
  ...(refusedCallsMs === null ? {} : { 'refused calls': { keptNs: ns(refusedCallsMs), isAlone: true } }),
});

export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { config, journal, view, engine, log } = options;
  let { snapshotSeq } = options;
  let working: Promise<void> = Promise.resolve();
  let closed = false;

  const lives: PluginLives = new Map();
  const retention = createRetention({
    journal,
    record: engine.recordOwn,
    policy: {
      readsNs: ns(config.retention.readsMs),
      calls: callPolicies(config.retention),
      restNs: ns(config.retention.removedPodsMs),
      maxBytes: config.retention.sizeBytesMax,
    },
    isClosed: (stream) => isClosedStream(view.state, stream),
    overWith: (record) => overWith(lives, record),
    classOf: (record) => classOfCall(view.state, record),
  });

  function inTurn(what: string, work: () => Promise<void>): void {
    working = working.then(work).catch((error: unknown) => {
      if (!closed) log.error({ error: loggable(error) }, `${what} failed; it will be tried again`);
    });
  }

  const foldTo = (seq: number) => ({ path: options.journalPath, ...nodeFoldModule, seq });

  /** A state of then that is too large for where it was folded is dropped at once: it is not folded again. */
  const folded = new Set<number>();

  /** Past states stay a short fold away; one at a time, so that a node with a long past has its cores for its pods. */
  async function snapshotThePast(): Promise<void> {
    const seq = missingSeq();
    if (closed || seq === null || folded.has(seq)) return;
    folded.add(seq);
    // There is no live state of then to compare it with.
    await takeSnapshot(journal, foldTo(seq), null);
  }

  function missingSeq(): number | null {
    const reader = openReader(options.journalPath);
    try {
      return missingSnapshot(reader.keptSnapshots(nodeFold.evolverVersion), view.seq());
    } finally {
      reader.close();
    }
  }

  /** What is decided from is still to be compared: when the snapshot was taken it was ahead of the disk. */
  let comparisonOwed = false;

  async function snapshot(): Promise<void> {
    if (closed) return;
    // The live states and their seq are taken in one synchronous step; the thread folds to the same seq by itself.
    const states = takeStates(view, engine);
    const { seq } = states;
    const liveHash = await states.shown;
    const taken = await takeSnapshot(journal, foldTo(seq), liveHash);
    if (!taken.matches)
      options.report(
        `The live state after record ${seq} differs from what the journal folds to: no snapshot was written; run scribe verify`,
      );
    else log.info({ seq, sizeBytes: taken.sizeBytes }, 'snapshot');
    if (states.decidedFrom === null) comparisonOwed = true;
    else await compare(states);
  }

  async function compare({ seq, shown, decidedFrom }: LiveStates): Promise<void> {
    if ((await decidedFrom) === (await shown)) return log.info({ seq }, 'what is decided from is what was recorded');
    options.report(
      `What is decided from differs, after record ${seq}, from what the journal folds to: restart the daemon, and run scribe verify`,
    );
  }

  const closing = new Subject<void>();
  const changes = view.changes.pipe(takeUntil(closing));
  changes.pipe(filter(() => comparisonOwed && engine.isSettled())).subscribe(() => {
    comparisonOwed = false;
    const states = takeStates(view, engine);
    inTurn('the comparison of states', () => compare(states));
  });
  changes.pipe(filter(() => view.seq() - snapshotSeq >= config.snapshotEveryRecords)).subscribe(() => {
    snapshotSeq = view.seq();
    inTurn('the snapshot', snapshot);
  });

  const timer = setInterval(() => {
    inTurn('retention', async () => {
      if (closed) return;
      const report = await retention.run(options.nowNs());
      if (report.prunedRecords + report.droppedSegments > 0) log.info(report, 'pruned');
      await snapshotThePast();
    });
  }, RETENTION_EVERY_MS);
  timer.unref();

  return {
    async close() {
      closed = true;
      clearInterval(timer);
      closing.next();
      await working;
    },
  };
}
