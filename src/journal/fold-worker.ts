/** The thread that folds a snapshot from its own copy of the journal; started by snapshots.ts, ends with its answer. */
import { parentPort, workerData } from 'node:worker_threads';
import { type ThreadIsUp, tellUp } from '../platform/native-thread.ts';
import { loadSqlite } from './connect.ts';
import { sha256 } from './encoding.ts';
import { foldState } from './fold.ts';
import { loadFold } from './fold-module.ts';
import type { FoldAnswer, FoldTask } from './snapshots.ts';

const run = async ({ path, seq, ...module }: FoldTask): Promise<void> => {
  const fold = await loadFold(module);
  const folded = foldState(path, fold, seq);
  if (folded.seq !== seq) throw new Error(`The journal ends at ${folded.seq}, before record ${seq}.`);
  const state = new TextEncoder().encode(fold.write(folded.state));
  const answer: FoldAnswer = { evolverVersion: fold.evolverVersion, state, stateHash: sha256(state).toString('hex') };
  parentPort?.postMessage(answer, [state.buffer]);
};

const { isUp, ...task } = workerData as FoldTask & ThreadIsUp;
loadSqlite();
tellUp({ isUp });
await run(task);
