/**
 * Verifies a whole journal on threads of its own, as many at once as there are processors, never with the lock: a journal
 * can be verified while its daemon writes it. Reports every finding, the first bad sequence number first.
 *
 *   chain and leaves of the tree, first half  ──┬──> surroundings: what hangs on both, and the rest of the tree
 *   chain and leaves of the tree, second half ──┘
 *   SQLite's own check
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { ChainPart, Finding, Stretch } from './chain-check.ts';
import { connectReader, type Db } from './connect.ts';
import { GENESIS, HASH_BYTES } from './encoding.ts';
import { errorOf } from './errors.ts';
import type { KeptResult } from './kept-checkpoints.ts';
import type { KeptElsewhere, SurroundingsReport, SurroundingsTask } from './surroundings-check.ts';
import { createLanes, type Lanes } from './lanes.ts';
import { TILE_WIDTH } from './merkle.ts';
import { createReader } from './reader.ts';
import { readTreeBefore, type TreeBefore, type TreePart } from './tree-check.ts';

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
}

/** What a verifying thread is asked for. */
export type VerifyTask =
  | {
      readonly kind: 'chain';
      readonly path: string;
      readonly stretch: Stretch;
      readonly treeSizes: readonly number[];
      readonly kept: KeptElsewhere;
    }
  | SurroundingsTask
  | { readonly kind: 'structure'; readonly path: string };

export type VerifyAnswer =
  | { readonly kind: 'chain'; readonly part: ChainPart; readonly tree: TreePart }
  | { readonly kind: 'surroundings'; readonly report: SurroundingsReport }
  | { readonly kind: 'structure'; readonly findings: readonly Finding[] };

/** Words on the way, and at the end the answer. */
export type FromVerifyWorker = VerifyAnswer | { readonly kind: 'progress'; readonly records: number };

export interface VerifyOptions extends KeptElsewhere {
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

const runTask = async (task: VerifyTask, onRecords: (records: number) => void = () => {}): Promise<VerifyAnswer> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./verify-worker.ts', import.meta.url), { workerData: task });
    worker.on('message', (message: FromVerifyWorker) => {
      if (message.kind === 'progress') onRecords(message.records);
      else resolve(message);
    });
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`A verifying thread ended with code ${code}.`)));
  });

interface Plan {
  readonly headSeq: number;
  readonly stretches: readonly Stretch[];
  readonly tree: TreeBefore;
}

/** The first record from the middle on that ends a tile and has its hash; undefined where there is none. */
const middleOf = (db: Db, headSeq: number): { seq: number; hash: Buffer } | undefined =>
  db
    .prepare<[number, number], { seq: number; hash: Buffer }>(
      `SELECT seq, hash FROM records WHERE seq >= ? AND seq < ? AND seq % ${TILE_WIDTH} = 0
         AND typeof(hash) = 'blob' AND length(hash) = ${HASH_BYTES} ORDER BY seq LIMIT 1`,
    )
    .get(Math.ceil(headSeq / 2), headSeq);

/** Halves meet between two tiles, at a hash that the second half starts from and the first half must arrive at. */
const planStretches = (path: string, kept: readonly string[]): Plan => {
  const db = connectReader(path);
  try {
    // Before the head, since what is built later is of records that are not looked at.
    const tree = readTreeBefore(db, path, kept);
    const headSeq = createReader(db).head().seq;
    const whole: Stretch = { fromSeq: 1, toSeq: headSeq, previousHash: GENESIS };
    const middle = headSeq > splitAboveRecords ? middleOf(db, headSeq) : undefined;
    if (middle === undefined) return { headSeq, stretches: [whole], tree };
    const { seq, hash } = middle;
    const halves = [
      { ...whole, toSeq: seq },
      { fromSeq: seq + 1, toSeq: headSeq, previousHash: hash },
    ];
    return { headSeq, stretches: halves, tree };
  } finally {
    db.close();
  }
};

const inOrder = (findings: readonly Finding[]): Finding[] =>
  [...findings].sort((a, b) => (a.seq ?? Number.MAX_SAFE_INTEGER) - (b.seq ?? Number.MAX_SAFE_INTEGER));

type ChainAnswer = Extract<VerifyAnswer, { kind: 'chain' }>;

const checkChains = async (
  path: string,
  { stretches, tree }: Plan,
  kept: KeptElsewhere,
  lanes: Lanes,
  onRecords: (records: number) => void,
): Promise<ChainAnswer[]> => {
  const checked = stretches.map(() => 0);
  const answers = await Promise.all(
    stretches.map(async (stretch, index) =>
      lanes(() =>
        runTask({ kind: 'chain', path, stretch, treeSizes: tree.sizes, kept }, (records) => {
          checked[index] = records;
          onRecords(checked.reduce((sum, part) => sum + part, 0));
        }),
      ),
    ),
  );
  return answers.flatMap((answer) => (answer.kind === 'chain' ? [answer] : []));
};

const verifyAll = async (path: string, options: VerifyOptions): Promise<VerifyReport> => {
  const { structure = true, onProgress = () => {}, against, key, lanes = createVerifyLanes() } = options;
  const kept = { against, key };
  const plan = planStretches(path, against ?? []);
  const { headSeq, tree: treeBefore } = plan;
  const [chains, trees] = await Promise.all([
    checkChains(path, plan, kept, lanes, (records) => onProgress(records, headSeq)),
    structure ? lanes(() => runTask({ kind: 'structure', path })) : null,
  ]);
  const parts = chains.map(({ part }) => part);
  const treeParts = chains.map(({ tree }) => tree);
  const surroundings = await runTask({ kind: 'surroundings', path, headSeq, parts, treeBefore, treeParts, kept });
  if (surroundings.kind !== 'surroundings') throw new Error('A verifying thread answered something else.');
  const findings = inOrder([
    ...parts.flatMap((part) => part.findings),
    ...surroundings.report.findings,
    ...(trees?.kind === 'structure' ? trees.findings : []),
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
  };
};

/** Verifies the journal at `path`. Rejects only when there is none; damage of any kind is a finding. */
export const verifyJournal = async (path: string, options: VerifyOptions = {}): Promise<VerifyReport> => {
  try {
    return await verifyAll(path, options);
  } catch (thrown) {
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
    };
  }
};
