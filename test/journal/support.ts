/** What the journal's tests share: records made by the dozen, arbitrary ones, and journals in temporary directories. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { GENESIS } from '../../src/journal/encoding.ts';
import { type OpenedJournal, openJournal, type OpenOptions } from '../../src/journal/open.ts';
import { prunedRecord, readsClosedRecord } from '../../src/journal/own-records.ts';
import { rangesOfSeqs } from '../../src/journal/ranges.ts';
import { snapshotHash } from '../../src/journal/snapshot-table.ts';
import type { JournalRecord, KeptJournal, OwnRecord, ReadRow, Snapshot } from '../../src/journal/types.ts';
import { type Owner, onCleanup } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';

export const bootId = 'b5a7c1de-52b1-4c4e-9d6e-2f0f7c6a9b10';
export const startNs = 1_760_000_000_000_000_000n;

/** A record with every column set to something that its seq determines; parts of it as told. */
export const recordAt = (seq: number, part: Partial<JournalRecord> = {}): JournalRecord => ({
  seq,
  atNs: startNs + BigInt(seq) * 1_000_000n,
  monoNs: BigInt(seq) * 1_000_000n,
  boot: bootId,
  type: `type.${seq % 5}`,
  v: 1,
  stream: seq % 3 === 0 ? `call/${seq}` : `container/${seq % 7}`,
  cause: seq > 1 && seq % 2 === 0 ? seq - 1 : null,
  call: seq % 3 === 0 ? seq : seq % 3 === 1 && seq > 1 ? seq - 1 : null,
  body: JSON.stringify({ seq, text: 'x'.repeat(seq % 90) }),
  ...part,
});

export const recordsFrom = (first: number, count: number): JournalRecord[] =>
  Array.from({ length: count }, (_, index) => recordAt(first + index));

export const readRowAt = (n: number, part: Partial<ReadRow> = {}): ReadRow => ({
  atNs: startNs + BigInt(n) * 1_000_000n,
  method: n % 2 === 0 ? 'ListContainers' : 'ContainerStatus',
  code: n % 7 === 0 ? 5 : 0,
  durationNs: BigInt(n % 100) * 1000n,
  callerPid: 1234,
  callerUid: 0,
  subject: n % 2 === 0 ? '' : 'ab'.repeat(32),
  ...part,
});

/** Appends an own record of the journal as the engine does: with the next seq. */
export const recordOwnIn =
  (journal: KeptJournal, atNs: bigint = startNs) =>
  async (own: OwnRecord): Promise<void> =>
    journal.append([recordAt(journal.head().seq + 1, { ...own, atNs, cause: null, call: null })]);

export const pruneSeqs = async (journal: KeptJournal, seqs: readonly number[]): Promise<void> =>
  recordOwnIn(journal)(prunedRecord({ reason: 'test', seqs: rangesOfSeqs(seqs), segments: [] }));

export const closeReads = async (journal: KeptJournal): Promise<void> => {
  for (const sealed of await journal.sealReads()) await recordOwnIn(journal)(readsClosedRecord(sealed));
};

/** Opens a journal in a temporary directory (or at a path) that is closed and removed when the owner ends. */
export const openTemporary = async (owner: Owner, options: Partial<OpenOptions> = {}): Promise<OpenedJournal> => {
  const path = options.path ?? join(await tempDir(owner), 'journal.db');
  const opened = openJournal({ ...options, path });
  onCleanup(owner, () => opened.journal.close());
  return opened;
};

/** A connection that may do everything, for damaging a journal. */
export const tamper = <T>(path: string, work: (db: Database.Database) => T): T => {
  const db = new Database(path);
  try {
    return work(db);
  } finally {
    db.close();
  }
};

const PAGE_BYTES = 4_096;

/** Overwrites the page of a table's newest rows, or of an index's last, which a torn write hits first. */
export const tearEnd = async (path: string, table = 'records'): Promise<void> => {
  const page = tamper(path, (db) =>
    db
      .prepare<[string], number>(
        "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path DESC LIMIT 1",
      )
      .pluck()
      .get(table),
  );
  if (page === undefined) throw new Error(`${path} has no ${table}.`);
  await using file = await open(path, 'r+');
  await file.write(Buffer.alloc(PAGE_BYTES, 0xff), 0, PAGE_BYTES, (page - 1) * PAGE_BYTES);
};

export const dropTriggers = (db: Database.Database): void => {
  const names = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'trigger'").pluck().all();
  for (const name of names) db.exec(`DROP TRIGGER ${name}`);
};

/** Changes a journal as if it had no triggers; they are there again afterwards, since one that is gone is found. */
export const withoutTriggers = (db: Database.Database, work: () => void): void => {
  const triggers = db.prepare<[], { sql: string }>("SELECT sql FROM sqlite_schema WHERE type = 'trigger'").all();
  dropTriggers(db);
  try {
    work();
  } finally {
    for (const { sql } of triggers) db.exec(sql);
  }
};

/** Puts snapshots where they are wanted: the journal itself keeps none that are near others. */
export const insertSnapshots = (path: string, snapshots: readonly Snapshot[]): void =>
  tamper(path, (db) => {
    const hashAt = db.prepare<[number], Buffer | null>('SELECT hash FROM records WHERE seq = ?').pluck();
    withoutTriggers(db, () => {
      const insert = db.prepare(
        'INSERT INTO snapshots (seq, evolver_version, record_hash, state_hash, state) VALUES (?, ?, ?, ?, ?)',
      );
      for (const { seq, evolverVersion, state } of snapshots) {
        const [recordHash, bytes] = [hashAt.get(seq) ?? GENESIS, Buffer.from(state)];
        insert.run(seq, evolverVersion, recordHash, snapshotHash(seq, evolverVersion, recordHash, bytes), bytes);
      }
    });
  });

const uint63 = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });
const text = (maxLength: number): fc.Arbitrary<string> => fc.string({ unit: 'grapheme', minLength: 1, maxLength });

/** Columns of any record, within the bounds; its seq is for the caller to choose. */
export const anyColumns: fc.Arbitrary<Omit<JournalRecord, 'seq' | 'cause' | 'call'>> = fc.record(
  {
    atNs: uint63,
    monoNs: uint63,
    boot: text(10),
    type: text(20),
    v: fc.integer({ min: 1, max: 0x7fff_ffff }),
    stream: fc.oneof(
      text(40),
      fc.uuid().map((id) => `call/${id}`),
      fc.constant('node'),
    ),
    body: fc.json(),
  },
  { noNullPrototype: true },
);

export const anyReadRow: fc.Arbitrary<ReadRow> = fc.record(
  {
    atNs: uint63,
    method: fc.string({ maxLength: 40 }),
    code: fc.nat({ max: 16 }),
    durationNs: fc.bigInt({ min: 0n, max: 2n ** 53n - 1n }),
    callerPid: fc.nat({ max: 4_194_304 }),
    callerUid: fc.nat({ max: 0xffff_ffff }),
    subject: fc.string({ unit: 'grapheme', maxLength: 40 }),
  },
  { noNullPrototype: true },
);

export const collect = async <T>(items: AsyncIterable<T>): Promise<T[]> => Array.fromAsync(items);
