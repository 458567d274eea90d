/**
 * Verifies a whole journal on threads of its own, as many at once as there are processors, never with the lock: a journal
 * can be verified while its daemon writes it. Reports every finding, the first bad sequence number first.
 *
 *   SQLite's own check, and what the tables say of themselves
 *   chain and leaves of the tree, and what they fold to, stretch by stretch ──> surroundings: what hangs on both, and the
 *                                                                               rest of the tree
 */
import { availableParallelism } from 'node:os';
import type { Worker } from 'node:worker_threads';
import { type NativeThread, startNativeThread } from '../platform/native-thread.ts';
import type { ChainPart, Finding, Stretch } from './chain-check.ts';
import { connectReader, type Db, explainDisk } from './connect.ts';
import { GENESIS, HASH_BYTES } from './encoding.ts';
import { errorOf, isNewer, isUnreadable, isUnwritable } from './errors.ts';
import { journalFiles } from './files.ts';
import type { FoldedPart, FoldRoute, StateAt } from './fold-part.ts';
import { chainSeqs, type KeptResult, readKept } from './kept-checkpoints.ts';
import type { KeptElsewhere, SurroundingsReport, SurroundingsTask } from './surroundings-check.ts';
import { createLanes, type Lanes } from './lanes.ts';
import { listMigrations, refuseNewer } from './migrate.ts';
import { TILE_WIDTH } from './merkle.ts';
import { createReader } from './reader.ts';
import { readTreeBefore, type TreeBefore, type TreePart } from './tree-check.ts';
import type { FoldModule } from './types.ts';

export interface VerifyReport {
  readonly ok: boolean;
  /** In order of seq; those that concern no record last. */
  readonly findings: readonly Finding[];
  readonly headSeq: number;
  readonly prunedRecords: number;
  readonly checkpoints: number;
  readonly snapshots: number;
  readonly readSegments: number;
  /** What checkpoints that were kept elsewhere show, oldest first. */
  readonly against: readonly KeptResult[];
  /** null: nothing was to be folded, or not all of it could be. */
  readonly folded: FoldedStates | null;
}

interface FoldTask {
  readonly module: FoldModule;
  readonly route: FoldRoute;
}

/** What a verifying thread is asked for. */
export type VerifyTask =
  | {
      readonly kind: 'chain';
      readonly path: string;
      readonly stretch: Stretch;
      /** Records whose hash files beside the journal or elsewhere name, and sizes of the tree in the same way. */
      readonly keptSeqs: readonly number[];
      readonly treeSizes: readonly number[];
      /** null: nothing is folded. */
      readonly fold: FoldTask | null;
    }
  | SurroundingsTask
  | { readonly kind: 'structure' | 'own tables'; readonly path: string };

export type VerifyAnswer =
  | { readonly kind: 'chain'; readonly part: ChainPart; readonly tree: TreePart; readonly folded: FoldedPart | null }
  | { readonly kind: 'surroundings'; readonly report: SurroundingsReport }
  | { readonly kind: 'findings'; readonly findings: readonly Finding[] };

/** Words on the way, and at the end the answer. */
export type FromVerifyWorker = VerifyAnswer | { readonly kind: 'progress'; readonly records: number };

/** What is to be folded of the rows that are checked: from each snapshot to the next. */
export interface FoldAsked {
  readonly module: FoldModule;
  /** In order, of the evolvers of the module. */
  readonly snapshots: readonly number[];
  /** Other records after which a state is asked for, in order. */
  readonly others: readonly number[];
}

export interface FoldedStates {
  /** After every snapshot and other record that was asked for, and the last of all. */
  readonly states: readonly StateAt[];
  /** The last of them, as it is written. */
  readonly state: string;
}

export interface VerifyOptions extends KeptElsewhere {
  /** Waited for once the first thread has something to do; null: nothing is to be folded. */
  readonly fold?: Promise<FoldAsked | null>;
  /** Also has SQLite check its own trees and indexes (default); reads every page once more. */
  readonly structure?: boolean;
  /** Told now and then how many records of how many were checked. */
  readonly onProgress?: (records: number, of: number) => void;
  /** Shared with whatever else the caller has to do meanwhile. */
  readonly lanes?: Lanes;
}

/** One for each processor; two at least, so that what is waited for by one thread is no time lost. */
export const createVerifyLanes = (): Lanes => createLanes(Math.max(2, availableParallelism()));

/** Below this a second thread costs more than it saves. */
export const splitAboveRecords = 20_000;

/** So many that all threads end at about the same time, whatever else they have to do. */
const STRETCHES_MAX = 16;
const STRETCH_RECORDS_MIN = splitAboveRecords / 2;

/** Runs a task on a thread; `onRecords` hears how far it is. */
type RunTask = (task: VerifyTask, onRecords?: (records: number) => void) => Promise<VerifyAnswer>;

/** Threads that take one task after another: to start one takes as long as to check ten thousand records. */
const startThreads = (): { readonly run: RunTask; readonly end: () => void } => {
  const all: NativeThread[] = [];
  const idle: Worker[] = [];
  const start = (): Worker => {
    const thread = startNativeThread(new URL('./verify-worker.ts', import.meta.url), null);
    all.push(thread);
    return thread.worker;
  };
  const run: RunTask = async (task, onRecords = () => {}) => {
    const worker = idle.pop() ?? start();
    const { promise, resolve, reject } = Promise.withResolvers<VerifyAnswer>();
    const onMessage = (message: FromVerifyWorker): void => {
      if (message.kind === 'progress') onRecords(message.records);
      else resolve(message);
    };
    const onExit = (code: number): void => reject(new Error(`A verifying thread ended with code ${code}.`));
    worker.on('message', onMessage).on('error', reject).on('exit', onExit).postMessage(task);
    const answer = await promise;
    worker.off('message', onMessage).off('error', reject).off('exit', onExit);
    idle.push(worker);
    return answer;
  };
  return { run, end: () => all.forEach((thread) => void thread.end()) };
};

interface Plan {
  readonly headSeq: number;
  readonly stretches: readonly Stretch[];
  /** How each of them is folded. */
  readonly folds: readonly FoldTask[] | null;
  readonly keptSeqs: readonly number[];
  readonly tree: TreeBefore;
}

/** The first record from `fromSeq` on that ends a tile and has its hash; undefined where there is none before `headSeq`. */
const seamAt = (db: Db, fromSeq: number, headSeq: number): { seq: number; hash: Buffer } | undefined =>
  db
    .prepare<[number, number], { seq: number; hash: Buffer }>(
      `SELECT seq, hash FROM records WHERE seq >= ? AND seq < ? AND seq % ${TILE_WIDTH} = 0
         AND typeof(hash) = 'blob' AND length(hash) = ${HASH_BYTES} ORDER BY seq LIMIT 1`,
    )
    .get(fromSeq, headSeq);

const evenlyApart = (headSeq: number): number[] => {
  const count = Math.min(STRETCHES_MAX, Math.floor(headSeq / STRETCH_RECORDS_MIN));
  return Array.from({ length: Math.max(0, count - 1) }, (_, index) => Math.ceil((headSeq * (index + 1)) / count));
};

/** Stretches meet between two tiles, at a hash that one must arrive at and the next starts from: the first such behind each seq. */
const stretchesOf = (db: Db, seqs: readonly number[], headSeq: number): Stretch[] => {
  const stretches: Stretch[] = [];
  let next = { fromSeq: 1, previousHash: GENESIS };
  for (const seq of seqs) {
    if (seq < next.fromSeq) continue;
    const seam = seamAt(db, seq, headSeq);
    if (seam === undefined) break;
    stretches.push({ ...next, toSeq: seam.seq });
    next = { fromSeq: seam.seq + 1, previousHash: seam.hash };
  }
  return [...stretches, { ...next, toSeq: headSeq }];
};

/** A stretch is folded from the newest snapshot before it, to where the next stretch begins to be. */
const routesOf = (stretches: readonly Stretch[], { snapshots, others }: FoldAsked, headSeq: number): FoldRoute[] => {
  const starts = stretches.map(({ fromSeq }) => snapshots.findLast((seq) => seq < fromSeq) ?? 0);
  const wanted = new Set([...snapshots, ...others]);
  return starts.map((snapshotSeq, index): FoldRoute => {
    const lastSeq = starts[index + 1] ?? headSeq;
    const within = [...wanted].filter((seq) => seq > snapshotSeq && seq < lastSeq).sort((a, b) => a - b);
    return { snapshotSeq, stops: [...within, lastSeq] };
  });
};

const planOf = (path: string, against: readonly string[], fold: FoldAsked | null): Plan => {
  const db = connectReader(path);
  try {
    // What it is made of is not known here, and would pass for what somebody added.
    refuseNewer(db, listMigrations());
    const kept = against.map(readKept);
    // Before the head, since what is built later is of records that are not looked at.
    const tree = readTreeBefore(db, path, kept);
    const keptSeqs = chainSeqs([readKept(journalFiles(path).head), ...kept]);
    const headSeq = createReader(db).headSeq();
    const stretches = stretchesOf(db, fold?.snapshots ?? evenlyApart(headSeq), headSeq);
    const folds =
      fold === null ? null : routesOf(stretches, fold, headSeq).map((route) => ({ module: fold.module, route }));
    return { headSeq, stretches, folds, keptSeqs, tree };
  } finally {
    db.close();
  }
};

const inOrder = (findings: readonly Finding[]): Finding[] =>
  [...findings].sort((a, b) => (a.seq ?? Number.MAX_SAFE_INTEGER) - (b.seq ?? Number.MAX_SAFE_INTEGER));

type ChainAnswer = Extract<VerifyAnswer, { kind: 'chain' }>;

const checkChains = async (
  path: string,
  { stretches, folds, keptSeqs, tree }: Plan,
  run: RunTask,
  onRecords: (records: number) => void,
): Promise<ChainAnswer[]> => {
  const checked = stretches.map(() => 0);
  const answers = await Promise.all(
    stretches.map(async (stretch, index) => {
      const fold = folds?.[index] ?? null;
      return run({ kind: 'chain', path, stretch, keptSeqs, treeSizes: tree.sizes, fold }, (records) => {
        checked[index] = records;
        onRecords(checked.reduce((sum, part) => sum + part, 0));
      });
    }),
  );
  return answers.flatMap((answer) => (answer.kind === 'chain' ? [answer] : []));
};

const foldedOf = (chains: readonly ChainAnswer[]): FoldedStates | null => {
  const parts = chains.flatMap(({ folded }) => (folded === null ? [] : [folded]));
  const last = parts.at(-1);
  if (last === undefined || parts.length < chains.length) return null;
  return { states: parts.flatMap(({ states }) => states), state: last.state };
};

const verifyOn = async (run: RunTask, path: string, options: VerifyOptions): Promise<VerifyReport> => {
  const { structure = true, onProgress = () => {}, against, key, fold, lanes = createVerifyLanes() } = options;
  const kept = { against, key };
  const inTurn: RunTask = async (...task) => lanes(() => run(...task));
  // What takes longest comes first.
  const apart = Promise.all([
    ...(structure ? [inTurn({ kind: 'structure', path })] : []),
    inTurn({ kind: 'own tables', path }),
  ]);
  // The plan may fail before they do, and says why better.
  apart.catch(() => {});
  const asked = (await fold) ?? null;
  const plan = planOf(path, against ?? [], asked);
  const { headSeq, tree: treeBefore } = plan;
  const [chains, others] = await Promise.all([
    checkChains(path, plan, inTurn, (records) => onProgress(records, headSeq)),
    apart,
  ]);
  const parts = chains.map(({ part }) => part);
  const treeParts = chains.map(({ tree }) => tree);
  const surroundings = await run({ kind: 'surroundings', path, headSeq, parts, treeBefore, treeParts, kept });
  if (surroundings.kind !== 'surroundings') throw new Error('A verifying thread answered something else.');
  const findings = inOrder([
    ...parts.flatMap((part) => part.findings),
    ...surroundings.report.findings,
    ...others.flatMap((other) => (other.kind === 'findings' ? other.findings : [])),
  ]);
  return {
    ok: findings.length === 0,
    findings,
    headSeq,
    prunedRecords: parts.flatMap(({ pruned }) => pruned).reduce((sum, [first, last]) => sum + last - first + 1, 0),
    checkpoints: surroundings.report.checkpoints,
    snapshots: surroundings.report.snapshots,
    readSegments: surroundings.report.readSegments,
    against: surroundings.report.against,
    folded: foldedOf(chains),
  };
};

/** Verifies the journal at `path`. Rejects only when it cannot be read for the place it lies in or the disk below, or is newer; damage of any kind is a finding. */
export const verifyJournal = async (path: string, options: VerifyOptions = {}): Promise<VerifyReport> => {
  const threads = startThreads();
  try {
    return await verifyOn(threads.run, path, options);
  } catch (thrown) {
    // That says nothing of the journal, which is not blamed for it.
    if (isUnwritable(thrown) || isUnreadable(thrown) || isNewer(thrown)) throw thrown;
    const ofDisk = explainDisk(path, thrown);
    if (ofDisk !== null) throw ofDisk;
    const finding: Finding = { seq: null, what: `${path} cannot be read: ${errorOf(thrown).message}` };
    return {
      ok: false,
      findings: [finding],
      headSeq: 0,
      prunedRecords: 0,
      checkpoints: 0,
      snapshots: 0,
      readSegments: 0,
      against: [],
      folded: null,
    };
  } finally {
    threads.end();
  }
};
