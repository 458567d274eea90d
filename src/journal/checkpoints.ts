/**
 * Signed checkpoints: the key beside the journal, signing and checking, and the newest checkpoint once more in a file
 * of its own, by which a journal that was put back to an older copy, or cut, is found out. The owner of the key file
 * can forge; docs/journal-format.md has what stays undetected then.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from 'node:crypto';
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { Db } from './connect.ts';
import { checkpointMessage, HASH_BYTES } from './encoding.ts';
import { errorOf } from './errors.ts';
import { keyOfVkey, type Note, noteText, parseNote } from './notes.ts';

export interface Checkpoint {
  readonly seq: number;
  readonly hash: Uint8Array;
  readonly atMaxNs: bigint;
  readonly signature: Uint8Array;
}

const keyMode = 0o600;

/** Writes a file so that it is there whole or not at all. */
const writeWhole = (path: string, content: string, mode: number): void => {
  const temporary = `${path}.new`;
  rmSync(temporary, { force: true });
  writeFileSync(temporary, content, { mode, flag: 'wx', flush: true });
  renameSync(temporary, path);
};

const makeKey = (path: string): void => {
  const { privateKey } = generateKeyPairSync('ed25519');
  writeWhole(path, String(privateKey.export({ type: 'pkcs8', format: 'pem' })), keyMode);
};

const readKey = (path: string): KeyObject => {
  const key = createPrivateKey(readFileSync(path));
  if (key.asymmetricKeyType !== 'ed25519') throw new Error(`it is a key of type ${key.asymmetricKeyType}`);
  return key;
};

const numbered = (path: string, word: string, number: number): string => `${path}.${word}-${number}`;

const firstFree = (path: string, word: string): number => {
  let number = 1;
  while (existsSync(numbered(path, word, number))) number++;
  return number;
};

/** The first path of this form that is free: `<path>.<word>-1`, -2, … */
export const freePath = (path: string, word: string): string => numbered(path, word, firstFree(path, word));

/** The one before that; null where all are free. */
export const takenPath = (path: string, word: string): string | null => {
  const number = firstFree(path, word) - 1;
  return number === 0 ? null : numbered(path, word, number);
};

/**
 * The signing key; made on first use. A key file that can't be used is set aside and replaced: that ends the proof
 * of what it signed, so it is a finding, but no reason not to start (C20).
 */
export const loadKey = (path: string, findings: string[]): KeyObject => {
  if (!existsSync(path)) makeKey(path);
  if ((statSync(path).mode & 0o077) !== 0) {
    chmodSync(path, keyMode);
    findings.push(`${path} could be read by others than its owner; it cannot any more, but may have been.`);
  }
  try {
    return readKey(path);
  } catch (thrown) {
    const aside = freePath(path, 'unusable');
    renameSync(path, aside);
    findings.push(
      `${path} is no Ed25519 key (${errorOf(thrown).message}); it is now ${aside}, and a new one was made.`,
    );
    makeKey(path);
    return readKey(path);
  }
};

/** The signing key, for whoever may read it; null for anybody else. Makes none. */
export const readSigningKey = (path: string): KeyObject | null => {
  try {
    return readKey(path);
  } catch {
    return null;
  }
};

/** The key that checks signatures, from a key file or one that holds a vkey; null when there is none in it. */
export const loadPublicKey = (path: string): KeyObject | null => {
  try {
    const content = readFileSync(path);
    return keyOfVkey(content.toString('latin1')) ?? createPublicKey(content);
  } catch {
    return null;
  }
};

export const signCheckpoint = (key: KeyObject, seq: number, hash: Uint8Array, atMaxNs: bigint): Checkpoint => ({
  seq,
  hash,
  atMaxNs,
  signature: signBytes(null, checkpointMessage(seq, hash, atMaxNs), key),
});

export const isSigned = (key: KeyObject, { seq, hash, atMaxNs, signature }: Checkpoint): boolean =>
  hash.length === HASH_BYTES && verifyBytes(null, checkpointMessage(seq, hash, atMaxNs), key, signature);

const NO_ROOM: readonly unknown[] = ['ENOSPC', 'EDQUOT'];

/** Puts a checkpoint beside the journal. An older one stays when there is no room: it only proves less. */
const writeBeside = (path: string, text: string): void => {
  try {
    writeWhole(path, text, keyMode);
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && NO_ROOM.includes(thrown.code))) throw thrown;
    rmSync(`${path}.new`, { force: true });
  }
};

/** Puts the newest checkpoint beside the journal. */
export const writeHeadFile = (path: string, checkpoint: Checkpoint): void => {
  const text = JSON.stringify({
    seq: checkpoint.seq,
    hash: Buffer.from(checkpoint.hash).toString('hex'),
    atMaxNs: String(checkpoint.atMaxNs),
    signature: Buffer.from(checkpoint.signature).toString('hex'),
  });
  writeBeside(path, `${text}\n`);
};

/** Puts the newest checkpoint of the tree beside the journal. */
export const writeNoteFile = (path: string, note: Note): void => writeBeside(path, noteText(note));

/** A bound on what is read as a note: it has a line for each signature. */
const noteBytesMax = 64 * 1024;

/** The note in a file; null when there is none in it, or no file. */
export const readNoteFile = (path: string): Note | null => {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return size === 0 || size > noteBytesMax ? null : parseNote(readFileSync(path, 'utf8'));
};

const noCheckpoint = (path: string): string =>
  `${path} is no checkpoint: a copy of journal.db.head or journal.db.checkpoint is wanted.`;

/** The checkpoint beside the journal; null when there is none, a sentence when it can't be used. */
export const readHeadFile = (path: string): Checkpoint | string | null => {
  try {
    if (!existsSync(path)) return null;
    const parsed = JSON.parse(readFileSync(path, 'utf8')) as Partial<Record<string, unknown>>;
    const { seq, hash, atMaxNs, signature } = parsed;
    if (typeof seq !== 'number' || typeof hash !== 'string' || typeof signature !== 'string') return noCheckpoint(path);
    return {
      seq,
      hash: Buffer.from(hash, 'hex'),
      atMaxNs: BigInt(String(atMaxNs)),
      signature: Buffer.from(signature, 'hex'),
    };
  } catch {
    return noCheckpoint(path);
  }
};

interface CheckpointRow {
  readonly seq: bigint;
  readonly hash: Buffer;
  readonly at_max: bigint;
  readonly signature: Buffer;
}

const ofRow = (row: CheckpointRow): Checkpoint => ({
  seq: Number(row.seq),
  hash: row.hash,
  atMaxNs: row.at_max,
  signature: row.signature,
});

/** The checkpoints in the journal itself, from `fromSeq` to `toSeq`, in order. */
export const readCheckpoints = (db: Db, fromSeq: number, toSeq: number): Checkpoint[] =>
  db
    .prepare<[number, number], CheckpointRow>('SELECT * FROM checkpoints WHERE seq >= ? AND seq <= ? ORDER BY seq')
    .safeIntegers()
    .all(fromSeq, toSeq)
    .map(ofRow);

/** The newest of them, not later than `throughSeq`. */
export const readNewestCheckpoint = (db: Db, throughSeq: number = Number.MAX_SAFE_INTEGER): Checkpoint | null => {
  const row = db
    .prepare<[number], CheckpointRow>('SELECT * FROM checkpoints WHERE seq <= ? ORDER BY seq DESC LIMIT 1')
    .safeIntegers()
    .get(throughSeq);
  return row === undefined ? null : ofRow(row);
};
