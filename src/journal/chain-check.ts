/**
 * Checks a stretch of the chain, row by row, against every column and hash. Reads in pages (short transactions), so
 * it may run beside a writer. Must not stop at the first bad row: a person who looks for damage wants all of it.
 */
import { type Db, isCorruption } from './connect.ts';
import { chainHashHex, createReusedTarget, encodedBytesMax, encodeRecord, HASH_BYTES, sha256Hex } from './encoding.ts';
import { errorOf } from './errors.ts';
import { isOwnType, JOURNAL_PRUNED, type Pruning, parsePruned, parseReadsClosed, READS_CLOSED } from './own-records.ts';
import { isVersion, type RawRecord } from './raw-record.ts';
import { createSoundPages } from './sound-page.ts';
import type { JournalRecord, SealedSegment, SeqRange } from './types.ts';

/** Something in a journal that is not as it was written. seq: the record it concerns, null for none. */
export interface Finding {
  readonly seq: number | null;
  readonly what: string;
  /** Something could not be looked at: nothing is known to be wrong with it. */
  readonly isUnchecked?: true;
}

export interface Stretch {
  readonly fromSeq: number;
  readonly toSeq: number;
  /** hash of the record before fromSeq. */
  readonly previousHash: Uint8Array;
}

export interface ChainPart {
  readonly findings: readonly Finding[];
  readonly records: number;
  readonly pruned: readonly SeqRange[];
  readonly prunings: readonly Pruning[];
  readonly closed: readonly { readonly seq: number; readonly sealed: SealedSegment }[];
  /** hash by seq, for the seqs that were asked for. */
  readonly hashes: ReadonlyMap<number, Uint8Array>;
  /** Why SQLite could not read all of it, and the first record that it could not. */
  readonly unreadable: { readonly fromSeq: number; readonly error: Error } | null;
}

/** Enough to see a pattern; a journal full of damage must not fill the memory. */
const findingsMax = 1000;
const pageRows = 500;
const hexChars = 2 * HASH_BYTES;

/** A row as SQLite stores it: integers as bigint, so that a double in their place is seen. */
type Row = readonly [
  seq: bigint,
  at: unknown,
  mono: unknown,
  boot: unknown,
  type: unknown,
  v: unknown,
  stream: unknown,
  cause: unknown,
  call: unknown,
  body: unknown,
  bodyHash: string,
  hash: string,
  hashTypes: string,
];

const isInteger = (value: unknown): value is bigint => typeof value === 'bigint';
const isReference = (value: unknown): value is bigint | null => value === null || (isInteger(value) && value > 0n);

/** The record that a row stores, or what is wrong with its columns. */
const recordOf = (row: Row, names: ReadonlyMap<number, string>): JournalRecord | string => {
  const [seq, at, mono, boot, type, v, stream, cause, call, body] = row;
  if (!isInteger(at) || !isInteger(mono)) return 'at or mono is no integer';
  // A number of 32 bits in what is hashed: of a larger one the rest would go unseen.
  if (!isInteger(v) || !isVersion(Number(v))) return 'v is no version';
  if (!isReference(cause) || !isReference(call)) return 'cause or call is no sequence number';
  if (typeof body !== 'string') return 'body is no text';
  const nameOf = (id: unknown): string | undefined => (isInteger(id) ? names.get(Number(id)) : undefined);
  const [bootName, typeName] = [nameOf(boot), nameOf(type)];
  const streamName = typeof stream === 'string' ? stream : nameOf(stream);
  if (bootName === undefined || typeName === undefined || streamName === undefined) {
    return 'boot, type or stream is not in names';
  }
  return {
    seq: Number(seq),
    atNs: at,
    monoNs: mono,
    boot: bootName,
    type: typeName,
    v: Number(v),
    stream: streamName,
    cause: cause === null ? null : Number(cause),
    call: call === null ? null : Number(call),
    body,
  };
};

const isPruned = (row: Row): boolean => row.slice(1, 10).every((value) => value === null) && row[11] === '';

export const readNames = (db: Db): ReadonlyMap<number, string> =>
  new Map(db.prepare<[], [number, string]>('SELECT id, name FROM names').raw().all());

/** The rows of a stretch, or some of the first of them. */
const createPages = (db: Db) => {
  const select = db
    .prepare<[fromSeq: number, toSeq: number, count: number], Row>(
      `SELECT seq, at, mono, boot, type, v, stream, cause, call, body, lower(hex(body_hash)), lower(hex(hash)),
         typeof(body_hash) || typeof(hash)
       FROM records WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?`,
    )
    .raw()
    .safeIntegers();
  /** SQLite gives none of the rows where it cannot read one: the fewer are asked for, the better is known which that is. */
  const rowsFrom = (fromSeq: number, toSeq: number, count = pageRows): Row[] => {
    try {
      return select.all(fromSeq, toSeq, Math.min(count, toSeq - fromSeq + 1));
    } catch (thrown) {
      if (count === 1 || !isCorruption(thrown)) throw thrown;
      return rowsFrom(fromSeq, toSeq, Math.floor(count / 2));
    }
  };
  return rowsFrom;
};

/** An encoder with one buffer for all rows. */
const createHasher = (): ((record: JournalRecord) => string) => {
  const target = createReusedTarget();
  return (record) => sha256Hex(target.first(encodeRecord(record, target.withRoomFor(encodedBytesMax(record)), 0)));
};

/** What else the caller wants of a stretch. */
export interface ChainOptions {
  /** Seqs whose hash is to be compared with something. */
  readonly wanted?: ReadonlySet<number>;
  /** Told after each page how many records were checked so far. */
  readonly onPage?: (records: number) => void;
  /** Told every body_hash that is stored and can be one, in order, and where it begins; to be read until the next is told. */
  readonly onBodyHash?: (seq: number, bytes: Buffer, from: number) => void;
  /** Told the rows of each page in which every column is as it was written; not of those that are looked at one by one. */
  readonly onSound?: (rows: readonly RawRecord[]) => void;
  /** By their ids; read anew by default. */
  readonly names?: ReadonlyMap<number, string>;
}

export const checkChain = (db: Db, stretch: Stretch, options: ChainOptions = {}): ChainPart => {
  const { wanted = new Set(), names = readNames(db) } = options;
  const { onPage = () => {}, onBodyHash = () => {}, onSound = () => {} } = options;
  const findings: Finding[] = [];
  const pruned: [number, number][] = [];
  const prunings: Pruning[] = [];
  const closed: { seq: number; sealed: SealedSegment }[] = [];
  const hashes = new Map<number, Uint8Array>();
  const hashRecord = createHasher();
  const rowsFrom = createPages(db);
  const soundPage = createSoundPages(db, names, isOwnType);
  let expected = stretch.fromSeq;
  let previous: string | null = Buffer.from(stretch.previousHash).toString('hex');
  let records = 0;
  let unreadable: ChainPart['unreadable'] = null;

  const find = (seq: number, what: string): void => {
    if (findings.length < findingsMax) findings.push({ seq, what });
  };

  const notePruned = (seq: number): void => {
    const last = pruned.at(-1);
    if (last !== undefined && last[1] === seq - 1) last[1] = seq;
    else pruned.push([seq, seq]);
  };

  const noteOwn = (record: Pick<JournalRecord, 'seq' | 'type' | 'body'>): void => {
    try {
      if (record.type === JOURNAL_PRUNED) prunings.push(parsePruned(record));
      if (record.type === READS_CLOSED) closed.push({ seq: record.seq, sealed: parseReadsClosed(record) });
    } catch (thrown) {
      find(record.seq, errorOf(thrown).message);
    }
  };

  const checkColumns = (row: Row, seq: number): void => {
    const record = recordOf(row, names);
    if (typeof record === 'string') return find(seq, `${record}.`);
    if (row[12] !== 'blobblob') find(seq, 'body_hash or hash is no blob.');
    if (hashRecord(record) !== row[10]) find(seq, 'its columns do not give its body_hash.');
    noteOwn(record);
  };

  const checkRow = (row: Row): void => {
    const seq = Number(row[0]);
    if (seq !== expected) {
      find(expected, `${seq === expected + 1 ? 'the record is' : `the records up to ${seq - 1} are`} missing.`);
      previous = null;
    }
    expected = seq + 1;
    records++;
    const [bodyHash, hash] = [row[10], row[11]];
    if (bodyHash.length !== hexChars) find(seq, `body_hash has ${bodyHash.length / 2} bytes.`);
    else if (row[12].startsWith('blob')) onBodyHash(seq, Buffer.from(bodyHash, 'hex'), 0);
    const computed = previous === null || bodyHash.length !== hexChars ? null : chainHashHex(previous, seq, bodyHash);
    if (isPruned(row)) {
      if (row[12] !== 'blobnull') find(seq, 'it is pruned, but its hashes are not as pruning leaves them.');
      notePruned(seq);
      previous = computed;
    } else {
      checkColumns(row, seq);
      if (computed !== null && computed !== hash) {
        find(seq, 'its hash does not follow from the record before it and its body_hash.');
      }
      previous = hash.length === hexChars ? hash : null;
    }
    if (previous !== null && wanted.has(seq)) hashes.set(seq, Buffer.from(previous, 'hex'));
  };

  /** Checks the next records all at once, where nothing is wrong with them. */
  const checkSound = (): boolean => {
    if (previous === null) return false;
    const sound = soundPage(expected, Math.min(expected + pageRows - 1, stretch.toSeq), previous);
    if (sound === null) return false;
    const last = expected + sound.rows.length - 1;
    for (const record of sound.told) noteOwn(record);
    for (let seq = expected; seq <= last; seq++) {
      onBodyHash(seq, sound.hashes, sound.bodyHashAt(seq));
      if (wanted.has(seq)) hashes.set(seq, Buffer.from(sound.hashOf(seq), 'hex'));
    }
    previous = sound.hashOf(last);
    records += sound.rows.length;
    expected = last + 1;
    onSound(sound.rows);
    return true;
  };

  try {
    while (expected <= stretch.toSeq) {
      if (!checkSound()) {
        const rows = rowsFrom(expected, stretch.toSeq);
        if (rows.length === 0) break;
        rows.forEach(checkRow);
      }
      onPage(records);
    }
    if (expected <= stretch.toSeq) find(expected, `the records up to ${stretch.toSeq} are missing.`);
  } catch (thrown) {
    unreadable = { fromSeq: expected, error: errorOf(thrown) };
    find(expected, `SQLite cannot read on from here: ${unreadable.error.message}.`);
  }
  return { findings, records, pruned, prunings, closed, hashes, unreadable };
};
