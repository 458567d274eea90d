/** A thread in which parts of a journal are verified, one after another; started and ended by verify.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { checkChain, type Finding, readNames } from './chain-check.ts';
import { readCheckpoints } from './checkpoints.ts';
import { connectReader, type Db, loadSqlite } from './connect.ts';
import { errorOf } from './errors.ts';
import { loadFold } from './fold-module.ts';
import { createFoldPart } from './fold-part.ts';
import { checkOwnTables } from './own-tables-check.ts';
import { checkSurroundings, snapshotSeqs } from './surroundings-check.ts';
import { type ThreadIsUp, tellUp } from '../platform/native-thread.ts';
import { tellEvery } from './tell-progress.ts';
import { createTreePart } from './tree-check.ts';
import type { FromVerifyWorker, VerifyAnswer, VerifyTask } from './verify.ts';

type ChainTask = Extract<VerifyTask, { kind: 'chain' }>;

/** Seqs at which something else in the journal names a hash of the chain. */
const wantedSeqs = (db: Db, { keptSeqs, stretch }: ChainTask): Set<number> => {
  const checkpoints = readCheckpoints(db, stretch.fromSeq, stretch.toSeq);
  return new Set([...checkpoints.map(({ seq }) => seq), ...snapshotSeqs(db), ...keptSeqs]);
};

/** Records between two words about how far it is. */
const tellEveryRecords = 5_000;

const post = (message: FromVerifyWorker): void => parentPort?.postMessage(message);

const tellProgress = (): ((records: number) => void) =>
  tellEvery(tellEveryRecords, (records) => post({ kind: 'progress', records }));

/** SQLite's own check of pages, trees and indexes: an index that lies makes reads lie. */
const checkStructure = (db: Db): Finding[] => {
  try {
    const lines = db.pragma('integrity_check(100)') as readonly { readonly integrity_check: string }[];
    return lines
      .map((line) => line.integrity_check)
      .filter((line) => line !== 'ok')
      .map((line) => ({ seq: null, what: `SQLite finds the file damaged: ${line}.` }));
  } catch (thrown) {
    return [{ seq: null, what: `SQLite finds the file damaged: ${errorOf(thrown).message}.` }];
  }
};

/** Of all stretches that this thread checks: what is appended meanwhile, and may bear new ones, is in none of them. */
let names: ReadonlyMap<number, string> | null = null;

const checkStretch = async (db: Db, task: ChainTask): Promise<VerifyAnswer> => {
  const tree = createTreePart(task.stretch, task.treeSizes);
  names ??= readNames(db);
  const fold = task.fold === null ? null : createFoldPart(db, await loadFold(task.fold.module), task.fold.route, names);
  const part = checkChain(db, task.stretch, {
    wanted: wantedSeqs(db, task),
    names,
    onPage: tellProgress(),
    onBodyHash: tree.add,
    ...(fold === null ? {} : { onSound: fold.take }),
  });
  return { kind: 'chain', part, tree: tree.part(), folded: fold?.end() ?? null };
};

const answer = async (db: Db, task: VerifyTask): Promise<VerifyAnswer> => {
  switch (task.kind) {
    case 'chain':
      return checkStretch(db, task);
    case 'surroundings':
      return { kind: 'surroundings', report: checkSurroundings(db, task) };
    case 'structure':
      return { kind: 'findings', findings: checkStructure(db) };
    case 'own tables':
      return { kind: 'findings', findings: checkOwnTables(db) };
  }
};

/** One for all tasks: they are of the same journal, until the thread is ended. */
let connection: Db | null = null;

const run = async (task: VerifyTask): Promise<void> => {
  connection ??= connectReader(task.path);
  post(await answer(connection, task));
};

loadSqlite();
tellUp(workerData as ThreadIsUp);
parentPort?.on('message', (task: VerifyTask) => void run(task));
