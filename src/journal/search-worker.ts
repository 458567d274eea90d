/** The thread that takes windows of a search off its caller's; started by search-windows.ts, ends when none is left. */
import { parentPort, workerData } from 'node:worker_threads';
import { type SuspectCalls, suspectCalls } from './calls.ts';
import { connectReader, loadSqlite } from './connect.ts';
import { type Mark, marksOf } from './marks.ts';
import { createNameReader } from './names.ts';
import {
  type FromSearchWorker,
  type Look,
  type SearchHelperData,
  type SearchTask,
  takerOf,
  type Window,
} from './search-windows.ts';
import { type ThreadIsUp, tellUp } from '../platform/native-thread.ts';

const { path, ...up } = workerData as SearchHelperData & ThreadIsUp;
loadSqlite();
tellUp(up);
const db = connectReader(path);
const names = createNameReader(db);

const post = (message: FromSearchWorker<readonly Mark[] | SuspectCalls>): void => parentPort?.postMessage(message);

const lookAt = (look: Look, window: Window): readonly Mark[] | SuspectCalls => {
  switch (look.kind) {
    case 'marks':
      return marksOf(db, names, look.rules, window.fromSeq, window.toSeq);
    case 'suspectCalls':
      return suspectCalls(db, look.recordsMax, window, look.seenToSeq);
  }
};

parentPort?.once('message', (task: SearchTask) => {
  const take = takerOf(task);
  for (let index = take(); index !== undefined; index = take()) {
    const window = task.windows[index];
    if (window !== undefined) post({ index, found: lookAt(task.look, window) });
  }
  db.close();
});
