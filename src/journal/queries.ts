/**
 * Questions in SQL to a journal: one statement that only reads, on a connection that can't write, beside the daemon or
 * without it. A journal that an older scribe wrote lacks the views that docs/sql.md describes: it gets them for the
 * connection alone, and so does whoever asks about the beginning of a damaged one. Must not be used on the daemon's thread:
 * a question takes as long as it takes.
 */
import { connectReader, type Db, schemaVersion } from './connect.ts';
import { JournalError } from './errors.ts';
import { isMalformed } from './marks.ts';
import { listMigrations, type Migration, refuseNewer } from './migrate.ts';

/** 64-bit integers come as bigints. */
export type Cell = string | number | bigint | Uint8Array | null;

export interface Answer {
  readonly columns: readonly string[];
  /** Read while they are asked for. */
  readonly rows: Iterable<readonly Cell[]>;
}

export interface Queries {
  /** Values take the place of `?`. Throws what SQLite says, and for a statement that is no question. */
  readonly ask: (sql: string, values?: readonly (string | number | bigint | null)[]) => Answer;
  readonly close: () => void;
}

/** Whether a migration makes views and nothing else: whatever it is called. */
const makesViews = ({ sql }: Migration): boolean =>
  /^CREATE VIEW /m.test(sql) && !/^CREATE (TABLE|TRIGGER|(UNIQUE )?INDEX) /m.test(sql);

/** @param throughSeq  the last record that is asked about; null: there is no such */
const addViews = (db: Db, throughSeq: number | null): void => {
  const migrations = listMigrations();
  refuseNewer(db, migrations);
  const has = throughSeq === null ? schemaVersion(db) : 0;
  const missing = migrations.slice(has).filter(makesViews);
  if (missing.length === 0) return;
  db.pragma('query_only = OFF');
  // What the views of a connection ask about goes by its own names first.
  if (throughSeq !== null)
    db.exec(`CREATE TEMP VIEW records AS SELECT * FROM main.records WHERE seq <= ${BigInt(throughSeq)}`);
  for (const { sql } of missing)
    db.exec(sql.replaceAll('CREATE VIEW', 'CREATE TEMP VIEW').replaceAll('DROP VIEW ', 'DROP VIEW IF EXISTS temp.'));
  db.pragma('query_only = ON');
};

const UNREADABLE =
  'A record that this is answered from is not what was written: its body is no JSON. scribe verify names it; ask about records before it or behind it.';

const CACHE_KIB = 8192;

/** @param throughSeq  of a damaged journal: nothing is asked about records behind this one, which may be in the way */
export const openQueries = (path: string, throughSeq: number | null = null): Queries => {
  const db = connectReader(path);
  // Views look names up from all over the journal, which a reader's small cache would read from the file again and again.
  db.pragma(`cache_size = -${CACHE_KIB}`);
  addViews(db, throughSeq);
  return {
    ask: (sql, values = []) => {
      const statement = db.prepare<unknown[], Cell[]>(sql);
      // ATTACH and settings write to no journal, but they are no questions either.
      if (!statement.readonly || !statement.reader)
        throw new JournalError('Unsafe', 'Only questions are answered: a SELECT, WITH … SELECT, VALUES or EXPLAIN.');
      const columns = statement.columns().map(({ name }) => name);
      // Begun when it is read: a question that nobody reads the answer of must not keep the connection busy.
      const rows = function* (): Generator<readonly Cell[]> {
        try {
          yield* statement
            .raw()
            .safeIntegers()
            .iterate(...values);
        } catch (thrown) {
          throw isMalformed(thrown) ? new JournalError('Corrupt', UNREADABLE, { cause: thrown }) : thrown;
        }
      };
      return { columns, rows: rows() };
    },
    close: () => db.close(),
  };
};
