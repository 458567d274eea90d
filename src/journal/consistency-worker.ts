/** The thread that makes one proof of consistency; started by consistency.ts, ends with its answer. */
import { parentPort, workerData } from 'node:worker_threads';
import { type ThreadIsUp, tellUp } from '../platform/native-thread.ts';
import { loadSqlite } from './connect.ts';
import type { ConsistencyTask } from './consistency.ts';
import { openTree } from './open-tree.ts';

const { path, oldSize, size, ...up } = workerData as ConsistencyTask & ThreadIsUp;
loadSqlite();
tellUp(up);
const tree = openTree(path);
try {
  parentPort?.postMessage(tree.consistencyProof(oldSize, size));
} finally {
  tree.close();
}
