/**
 * Writes a journal anew from its records, where SQLite meets damage in what is beside them (an index, the tree, snapshots): no
 * record changes, every hash stays, and the damaged file is set aside whole (C20). For start-up and commands, under the journal's
 * lock, while nobody has it open.
 */
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { connectReader, connectWriter, type Db, explain, isCorruption, schemaVersion } from './connect.ts';
import { JournalError } from './errors.ts';
import { finishSettingAside, journalFiles, narrowFiles, setAside, syncAt } from './files.ts';
import { listMigrations, migrate, refuseNewer } from './migrate.ts';
import { impossibleKeys } from './reader.ts';
import { refuseWithoutRoom, usedBytesIn } from './room.ts';

export interface WrittenAnew {
  /** Where the damaged journal is now. */
  readonly aside: string;
  /** What of it could not be read, in words. */
  readonly lost: readonly string[];
}

interface Table {
  readonly name: string;
  readonly key: string;
  /** What is lost without it; null: the journal is nothing without it. */
  readonly about: string | null;
}

const TABLES: readonly Table[] = [
  { name: 'names', key: 'id', about: null },
  { name: 'records', key: 'seq', about: null },
  { name: 'read_chunks', key: 'id', about: 'read calls' },
  { name: 'read_segments', key: 'segment', about: 'which segments of read calls were closed' },
  { name: 'checkpoints', key: 'seq', about: 'signed checkpoints' },
  { name: 'snapshots', key: 'seq, evolver_version', about: 'snapshots, which are made anew' },
  { name: 'tree_nodes', key: 'level, n', about: 'the tree, which is made anew' },
];

/** By the table alone: it is its indexes that may be damaged. */
const copyTable = (from: Db, to: Db, { name, key }: Table): void => {
  const rows = from.prepare<[], unknown[]>(`SELECT * FROM ${name} NOT INDEXED ORDER BY ${key}`).raw().safeIntegers();
  const insert = to.prepare(
    `INSERT INTO ${name} VALUES (${rows
      .columns()
      .map(() => '?')
      .join(', ')})`,
  );
  for (const row of rows.iterate()) insert.run(...row);
};

/** Returns what could not be read. */
const copyAll = (from: Db, to: Db): string[] =>
  TABLES.flatMap((table) => {
    try {
      to.transaction(() => copyTable(from, to, table))();
      return [];
    } catch (thrown) {
      if (table.about === null || !isCorruption(thrown)) throw thrown;
      return [table.about];
    }
  });

const anewOf = (path: string): string => `${path}.anew`;

const removeDatabase = (path: string): void => {
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
};

const copyInto = (path: string, unfinished: string): readonly string[] => {
  const from = connectReader(path);
  try {
    refuseNewer(from, listMigrations());
    // Once as a log, and once from there.
    refuseWithoutRoom(`Writing ${path} anew`, dirname(path), 2 * usedBytesIn(from));
    narrowFiles(unfinished);
    const to = connectWriter(unfinished);
    try {
      migrate(to, listMigrations().slice(0, schemaVersion(from)));
      const lost = to.transaction(() => copyAll(from, to))();
      const impossible = impossibleKeys(to);
      if (impossible !== null) throw new JournalError('Corrupt', `${impossible}.`);
      to.pragma('wal_checkpoint(TRUNCATE)');
      return lost;
    } finally {
      to.close();
    }
  } finally {
    from.close();
  }
};

/**
 * Takes the place of the journal that was set aside with what was written anew, also where that was cut short between the two.
 * Nothing where it was not.
 */
export const finishWritingAnew = (path: string): void => {
  const aside = finishSettingAside(path);
  if (existsSync(path) || !existsSync(anewOf(path))) return;
  // The journal has to contain what they say as before.
  const now = journalFiles(path);
  const kept = aside === null ? now : journalFiles(aside);
  for (const file of ['head', 'note'] as const)
    if (existsSync(kept[file]) && !existsSync(now[file])) copyFileSync(kept[file], now[file]);
  syncAt(dirname(path));
  renameSync(anewOf(path), path);
  syncAt(dirname(path));
};

/** Throws JournalError Corrupt where records cannot be read, Unsafe where there is no room; nothing is changed then. */
export const writeAnew = (path: string): WrittenAnew => {
  const unfinished = `${anewOf(path)}.unfinished`;
  removeDatabase(unfinished);
  try {
    const lost = copyInto(path, unfinished);
    syncAt(unfinished);
    renameSync(unfinished, anewOf(path));
    syncAt(dirname(path));
    const aside = setAside(path);
    finishWritingAnew(path);
    return { aside, lost };
  } catch (thrown) {
    throw explain(path, thrown);
  } finally {
    removeDatabase(unfinished);
  }
};
