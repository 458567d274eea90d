/**
 * Brings a journal's schema to the newest this scribe knows, one numbered SQL file after another, each in a
 * transaction of its own. An older journal migrates forward; a newer one is refused untouched. A file that ran is
 * never edited again: its digest is in the journal.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Db, schemaVersion } from './connect.ts';
import { sha256 } from './encoding.ts';
import { JournalError } from './errors.ts';

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

const shipped = fileURLToPath(new URL('../../migrations', import.meta.url));
const fileName = /^(\d{4})_[a-z0-9_]+\.sql$/;

/** The SQL files of a folder (the shipped ones by default), by version; they must be numbered from 1 without a gap. */
export const listMigrations = (dir: string = shipped): Migration[] => {
  const names = readdirSync(dir)
    .filter((name) => fileName.test(name))
    .sort();
  return names.map((name, index) => {
    const version = Number(name.slice(0, 4));
    if (version !== index + 1) throw new Error(`${dir}: ${name} should be number ${index + 1}.`);
    return { version, name, sql: readFileSync(`${dir}/${name}`, 'utf8') };
  });
};

export const migrationDigest = (migration: Migration): Buffer => sha256(Buffer.from(migration.sql));

/** Throws NewerSchema unless this scribe knows the journal's schema. */
export const refuseNewer = (db: Db, migrations: readonly Migration[]): void => {
  const version = schemaVersion(db);
  if (version > migrations.length) {
    throw new JournalError(
      'NewerSchema',
      `The journal ${db.name} has schema ${version} of a newer scribe; this one knows up to ${migrations.length}. ` +
        'Run the newer scribe, or move the journal away.',
    );
  }
};

/** Runs what is missing and returns the versions that ran. */
export const migrate = (db: Db, migrations: readonly Migration[]): number[] => {
  refuseNewer(db, migrations);
  const missing = migrations.slice(schemaVersion(db));
  for (const migration of missing) {
    db.transaction(() => {
      db.exec(migration.sql);
      db.prepare('INSERT INTO schema (version, name, sha256) VALUES (?, ?, ?)').run(
        migration.version,
        migration.name,
        migrationDigest(migration),
      );
    }).immediate();
  }
  return missing.map(({ version }) => version);
};
