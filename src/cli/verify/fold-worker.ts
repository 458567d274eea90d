/** The thread that folds a large journal while others verify it; started by fold.ts, ends with its answer. */
import { parentPort, workerData } from 'node:worker_threads';
import { loadSqlite } from '../../journal/connect.ts';
import { tellEvery } from '../../journal/tell-progress.ts';
import { type ThreadIsUp, tellUp } from '../../platform/native-thread.ts';
import { compareFold, type FoldTask, type FromFoldWorker } from './fold.ts';

/** Records between two words about how far it is. */
const TELL_EVERY_RECORDS = 20_000;

const post = (message: FromFoldWorker): void => parentPort?.postMessage(message);

const { path, held, ...up } = workerData as FoldTask & ThreadIsUp;
loadSqlite();
tellUp(up);
const tell = tellEvery(TELL_EVERY_RECORDS, (seq) => post({ kind: 'progress', seq }));
const outcome = compareFold(path, held, tell);
post({ kind: 'folded', outcome });
