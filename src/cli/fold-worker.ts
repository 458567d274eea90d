/** The thread that folds a large journal while others verify it; started by fold.ts, ends with its answer. */
import { parentPort, workerData } from 'node:worker_threads';
import { compareFold, type FoldTask, type FromFoldWorker } from './fold.ts';

/** Records between two words about how far it is: each is a message to another thread. */
const TELL_EVERY_RECORDS = 20_000;

const post = (message: FromFoldWorker): void => parentPort?.postMessage(message);

const { path, held } = workerData as FoldTask;
let told = 0;
const outcome = compareFold(path, held, (seq) => {
  if (seq - told < TELL_EVERY_RECORDS) return;
  told = seq;
  post({ kind: 'progress', seq });
});
post({ kind: 'folded', outcome });
