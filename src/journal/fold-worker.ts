/** The thread that folds a snapshot from its own copy of the journal; started by snapshots.ts, ends with its answer. */
import { parentPort, workerData } from 'node:worker_threads';
import { sha256 } from './encoding.ts';
import { foldState } from './fold.ts';
import type { FoldAnswer, FoldTask } from './snapshots.ts';
import type { StateFold } from './types.ts';

const isFold = (value: unknown): value is StateFold<unknown> =>
  typeof value === 'object' && value !== null && 'evolve' in value && 'evolverVersion' in value;

const run = async ({ path, moduleUrl, exportName, seq }: FoldTask): Promise<void> => {
  const module = (await import(moduleUrl)) as Partial<Record<string, unknown>>;
  const fold = module[exportName];
  if (!isFold(fold)) throw new Error(`${moduleUrl} exports no fold called ${exportName}.`);
  const folded = foldState(path, fold, seq);
  if (folded.seq !== seq) throw new Error(`The journal ends at ${folded.seq}, before record ${seq}.`);
  const state = new TextEncoder().encode(fold.write(folded.state));
  const answer: FoldAnswer = { evolverVersion: fold.evolverVersion, state, stateHash: sha256(state).toString('hex') };
  parentPort?.postMessage(answer, [state.buffer]);
};

await run(workerData as FoldTask);
