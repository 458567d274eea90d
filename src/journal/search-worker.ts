/** The thread that takes windows of a search off its caller's; started by search-windows.ts, ends when none is left. */
import { parentPort, workerData } from 'node:worker_threads';
import { connectReader } from './connect.ts';
import { marksOf } from './marks.ts';
import { createNameReader } from './names.ts';
import { type FromSearchWorker, type SearchTask, takerOf } from './search-windows.ts';

const db = connectReader(workerData as string);
const names = createNameReader(db);

const post = (message: FromSearchWorker): void => parentPort?.postMessage(message);

parentPort?.once('message', (task: SearchTask) => {
  const take = takerOf(task);
  for (let index = take(); index !== undefined; index = take()) {
    const window = task.windows[index];
    if (window !== undefined) post({ index, marks: marksOf(db, names, task.rules, window.fromSeq, window.toSeq) });
  }
  db.close();
});
