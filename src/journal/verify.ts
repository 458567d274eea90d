/**
 * Verifies a whole journal on threads of its own, as many at once as there are processors, never with the lock: a journal
 * can be verified while its daemon writes it. Reports every finding, the first bad sequence number first.
 *
 *   chain, first half ──┐
 *   chain, second half ─┼──> surroundings: what hangs on both, computed from nothing else
 *   tree ───────────────┘
 *   SQLite's own check
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { ChainPart, Finding, Stretch } from './chain-check.ts';
import { readNewestCheckpoint } from './checkpoints.ts';
import { connectReader } from './connect.ts';
import { GENESIS } from './encoding.ts';
import { errorOf } from './errors.ts';
import type { KeptResult } from './kept-checkpoints.ts';
import type { KeptElsewhere, SurroundingsReport, SurroundingsTask } from './surroundings-check.ts';
import { createLanes, type Lanes } from './lanes.ts';
import { createReader } from './reader.ts';
import type { TreeReport } from './tree-check.ts';

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
  | { readonly kind: 'chain'; readonly path: string; readonly stretch: Stretch; readonly kept: KeptElsewhere }
  | { readonly kind: 'tree'; readonly path: string; readonly kept: KeptElsewhere }
  | SurroundingsTask
  | { readonly kind: 'structure'; readonly path: string };

export type VerifyAnswer =
  | { readonly kind: 'chain'; readonly part: ChainPart }
  | { readonly kind: 'tree'; readonly report: TreeReport }
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
}

/** Halves meet at a checkpoint, whose hash the second half starts from and the first half must arrive at. */
const planStretches = (path: string): Plan => {
  const db = connectReader(path);
  try {
    const headSeq = createReader(db).head().seq;
    const whole: Stretch = { fromSeq: 1, toSeq: headSeq, previousHash: GENESIS };
    const middle = headSeq > splitAboveRecords ? readNewestCheckpoint(db, Math.ceil(headSeq / 2)) : null;
    if (middle === null || middle.seq < 1 || middle.seq >= headSeq) return { headSeq, stretches: [whole] };
    return {
      headSeq,
      stretches: [
        { ...whole, toSeq: middle.seq },
        { fromSeq: middle.seq + 1, toSeq: headSeq, previousHash: middle.hash },
      ],
    };
  } finally {
    db.close();
  }
};

const inOrder = (findings: readonly Finding[]): Finding[] =>
  [...findings].sort((a, b) => (a.seq ?? Number.MAX_SAFE_INTEGER) - (b.seq ?? Number.MAX_SAFE_INTEGER));

const checkChains = async (
  path: string,
  stretches: readonly Stretch[],
  kept: KeptElsewhere,
  lanes: Lanes,
  onRecords: (records: number) => void,
): Promise<ChainPart[]> => {
  const checked = stretches.map(() => 0);
  const answers = await Promise.all(
    stretches.map(async (stretch, index) =>
      lanes(() =>
        runTask({ kind: 'chain', path, stretch, kept }, (records) => {
          checked[index] = records;
          onRecords(checked.reduce((sum, part) => sum + part, 0));
        }),
      ),
    ),
  );
  return answers.flatMap((answer) => (answer.kind === 'chain' ? [answer.part] : []));
};

const verifyAll = async (path: string, options: VerifyOptions): Promise<VerifyReport> => {
  const { structure = true, onProgress = () => {}, against, key, lanes = createVerifyLanes() } = options;
  const kept = { against, key };
  const { headSeq, stretches } = planStretches(path);
  const [parts, tree, trees] = await Promise.all([
    checkChains(path, stretches, kept, lanes, (records) => onProgress(records, headSeq)),
    lanes(() => runTask({ kind: 'tree', path, kept })),
    structure ? lanes(() => runTask({ kind: 'structure', path })) : null,
  ]);
  if (tree.kind !== 'tree') throw new Error('A verifying thread answered something else.');
  const surroundings = await runTask({ kind: 'surroundings', path, headSeq, parts, tree: tree.report, kept });
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
