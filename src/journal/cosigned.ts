/**
 * Checkpoints of the tree that witnesses have cosigned, a file beside the journal for each witness: reading and writing them,
 * and telling whether a cosignature is by the witness that it names (c2sp.org/tlog-cosignature). Asks no witness.
 */
import { createPublicKey, type KeyObject, verify as verifyBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readNoteFile } from './checkpoints.ts';
import { HASH_BYTES, sha256 } from './encoding.ts';
import { type Note, noteBody, noteText, parseNote, parseSignatures, SPKI_HEAD } from './notes.ts';

const KEY_ID_BYTES = 4;
const TIME_BYTES = 8;
const NAME_BYTES_MAX = 255;
/** The end of the year 9999: beyond it nothing that shows a time knows one. */
const SECONDS_MAX = 253_402_300_799n;
const FILE_MODE = 0o600;

/** A witness by its vkey. */
export interface Cosigner {
  readonly name: string;
  readonly id: Uint8Array;
  readonly key: KeyObject;
  readonly kind: CosignerKind;
}

/** What keys of one algorithm sign, and how long both are. */
interface CosignerKind {
  /** The algorithm in key ids and vkeys, of signed-note. */
  readonly algorithm: number;
  readonly keyBytes: number;
  readonly signatureBytes: number;
  /** DER of every public key of this kind, before its own bytes. */
  readonly spkiHead: Buffer;
  readonly message: (cosigner: string, seconds: bigint, note: Note) => Buffer;
}

const ED25519_V1: CosignerKind = {
  algorithm: 0x04,
  keyBytes: HASH_BYTES,
  signatureBytes: 64,
  spkiHead: SPKI_HEAD,
  message: (_cosigner, seconds, note) => Buffer.from(`cosignature/v1\ntime ${seconds}\n${noteBody(note)}`),
};

const uint64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
};

const opaque = (text: string): Buffer => {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
};

/** A checkpoint is the subtree that begins at leaf 0. Signs the cosigner's name, too, and knows no lines behind the root. */
const ML_DSA_44_V1: CosignerKind = {
  algorithm: 0x06,
  keyBytes: 1312,
  signatureBytes: 2420,
  spkiHead: Buffer.from('30820532300b06096086480165030403110382052100', 'hex'),
  message: (cosigner, seconds, { origin, size, root }) =>
    Buffer.concat([
      Buffer.from('subtree/v1\n\0'),
      opaque(cosigner),
      uint64(seconds),
      opaque(origin),
      uint64(0n),
      uint64(BigInt(size)),
      root,
    ]),
};

const KINDS: readonly CosignerKind[] = [ED25519_V1, ML_DSA_44_V1];

/** null: no vkey of a cosigner. */
export const cosignerOf = (vkey: string): Cosigner | null => {
  const [, name = '', id = '', encoded = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/.exec(vkey.trim()) ?? [];
  const bytes = Buffer.from(encoded, 'base64');
  const kind = KINDS.find(({ algorithm, keyBytes }) => bytes[0] === algorithm && bytes.length === 1 + keyBytes);
  if (kind === undefined || Buffer.byteLength(name) > NAME_BYTES_MAX) return null;
  const own = sha256(Buffer.concat([Buffer.from(`${name}\n`), bytes])).subarray(0, KEY_ID_BYTES);
  if (own.toString('hex') !== id) return null;
  const der = Buffer.concat([kind.spkiHead, bytes.subarray(1)]);
  return { name, id: own, key: createPublicKey({ key: der, format: 'der', type: 'spki' }), kind };
};

/** When a witness cosigned a note, in seconds since 1970; null when it did not, or says no time. */
export const cosignedAtSeconds = (cosigner: Cosigner, note: Note): number | null => {
  const { signatureBytes, message } = cosigner.kind;
  for (const { name, bytes } of note.signatures) {
    const signature = Buffer.from(bytes);
    if (name !== cosigner.name || signature.length !== KEY_ID_BYTES + TIME_BYTES + signatureBytes) continue;
    if (!signature.subarray(0, KEY_ID_BYTES).equals(cosigner.id)) continue;
    const seconds = signature.readBigUInt64BE(KEY_ID_BYTES);
    if (seconds === 0n || seconds > SECONDS_MAX) continue;
    const own = signature.subarray(KEY_ID_BYTES + TIME_BYTES);
    if (verifyBytes(null, message(name, seconds, note), cosigner.key, own)) return Number(seconds);
  }
  return null;
};

/** The note with what a witness added; null when none of it is by that witness. */
export const withCosignature = (note: Note, lines: string, cosigner: Cosigner): Note | null => {
  const added = parseSignatures(lines)?.filter(({ name }) => name === cosigner.name) ?? [];
  const cosigned = { ...note, signatures: [...note.signatures, ...added] };
  return cosignedAtSeconds(cosigner, cosigned) === null ? null : cosigned;
};

/** Where the newest checkpoint is that a witness, by its name in the configuration, has cosigned. */
export const cosignedPath = (journalPath: string, witness: string): string => `${journalPath}.cosigned.${witness}`;

/** null: it has cosigned none. */
export const readCosigned = async (journalPath: string, witness: string): Promise<Note | null> => {
  const text = await readFile(cosignedPath(journalPath, witness), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return parseNote(text);
};

export const writeCosigned = async (journalPath: string, witness: string, note: Note): Promise<void> => {
  const path = cosignedPath(journalPath, witness);
  await writeFile(`${path}.new`, noteText(note), { mode: FILE_MODE, flush: true });
  await rename(`${path}.new`, path);
};

const allCosigned = (journalPath: string): Note[] => {
  const dir = dirname(journalPath);
  const start = `${basename(journalPath)}.cosigned.`;
  const names = existsSync(dir) ? readdirSync(dir) : [];
  return names
    .filter((name) => name.startsWith(start) && !name.endsWith('.new'))
    .flatMap((name) => readNoteFile(join(dir, name)) ?? []);
};

const isSameTree = (a: Note, b: Note): boolean =>
  a.origin === b.origin && a.size === b.size && Buffer.from(a.root).equals(b.root);

/**
 * The newest cosigned checkpoint from `sizeMin` to `sizeMax` leaves that `isOwn` says is of this journal, with the
 * cosignatures of all witnesses that signed the same; null when there is none.
 */
export const newestCosigned = (
  journalPath: string,
  sizeMin: number,
  sizeMax: number,
  isOwn: (note: Note) => boolean,
): Note | null => {
  const notes = allCosigned(journalPath).filter((note) => note.size >= sizeMin && note.size <= sizeMax);
  const newest = notes.sort((a, b) => b.size - a.size).find(isOwn);
  if (newest === undefined) return null;
  const others = notes.filter((note) => note !== newest && isSameTree(note, newest));
  const added = others.flatMap(({ signatures }) => signatures.filter(({ name }) => name !== newest.origin));
  return { ...newest, signatures: [...newest.signatures, ...added] };
};
