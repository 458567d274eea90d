/**
 * Checks what the tables say of themselves, whatever the chain holds: names, the schema and its migrations, and that no row has
 * a key that none can have. What hangs on records is surroundings-check.ts's.
 */
import type { Finding } from './chain-check.ts';
import { connectScratch, type Db, schemaVersion } from './connect.ts';
import { createFindings, type Find, sameBytes } from './findings.ts';
import { listMigrations, migrate, migrationDigest } from './migrate.ts';
import { nameDigest } from './names.ts';
import { impossibleKeys } from './reader.ts';

const APPLICATION_ID = 0x73637262;

const checkNames = (db: Db, find: Find): void => {
  const rows = db.prepare<[], [number, unknown, unknown]>('SELECT id, name, digest FROM names').raw().all();
  for (const [id, name, digest] of rows) {
    if (typeof name !== 'string' || !sameBytes(digest, nameDigest(id, name))) {
      find(null, `Name ${id} is not what was written.`);
    }
  }
};

type SchemaRow = readonly [type: string, name: string, table: string, sql: string | null];

const schemaRows = (db: Db): string[] =>
  db
    .prepare<[], SchemaRow>('SELECT type, name, tbl_name, sql FROM sqlite_schema')
    .raw()
    .all()
    .map((row) => JSON.stringify(row));

/** Tables, indexes and triggers are what the migrations make: a trigger that is gone refuses nothing any more. */
const checkSchema = (db: Db, find: Find): void => {
  const scratch = connectScratch();
  try {
    const version = schemaVersion(db);
    migrate(scratch, listMigrations().slice(0, version));
    const [found, wanted] = [new Set(schemaRows(db)), new Set(schemaRows(scratch))];
    const named = (row: string): string => (JSON.parse(row) as SchemaRow).slice(0, 2).join(' ');
    for (const row of wanted.difference(found)) find(null, `The ${named(row)} is missing or changed.`);
    for (const row of found.difference(wanted)) find(null, `The ${named(row)} is none of this scribe's.`);
  } finally {
    scratch.close();
  }
};

const checkMigrations = (db: Db, find: Find): void => {
  const rows = db
    .prepare<[], [number, unknown, unknown]>('SELECT version, name, sha256 FROM schema ORDER BY version')
    .raw()
    .all();
  const known = listMigrations();
  rows.forEach(([version, name, digest], index) => {
    const migration = known[index];
    if (migration?.version !== version || migration.name !== name || !sameBytes(digest, migrationDigest(migration))) {
      find(null, `Migration ${version} is none of this scribe's.`);
    }
  });
  if (Number(db.pragma('application_id', { simple: true })) !== APPLICATION_ID)
    find(null, 'The application id is wrong.');
  if (db.prepare('SELECT count(*) FROM pruning').pluck().get() !== 0) find(null, 'The pruning guard is up.');
};

export const checkOwnTables = (db: Db): readonly Finding[] => {
  const { findings, find, checked } = createFindings();
  checked('keys', () => {
    const impossible = impossibleKeys(db);
    if (impossible !== null) find(null, `${impossible}.`);
  });
  checked('names', () => checkNames(db, find));
  checked('schema', () => checkSchema(db, find));
  checked('migrations', () => checkMigrations(db, find));
  return findings;
};
