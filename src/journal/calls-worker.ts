/** The thread that looks for suspect calls ahead; started by calls-ahead.ts, ends when it has told them. */
import { parentPort, workerData } from 'node:worker_threads';
import { suspectCalls } from './calls.ts';
import type { CallsTask } from './calls-ahead.ts';
import { connectReader } from './connect.ts';

const { path, recordsMax, ...window } = workerData as CallsTask;
const db = connectReader(path);
parentPort?.postMessage(suspectCalls(db, recordsMax, window));
db.close();
