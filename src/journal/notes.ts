/**
 * Checkpoints of the tree as signed notes (c2sp.org/tlog-checkpoint, c2sp.org/signed-note): what other people's verifiers
 * read. The key is that of the chain's checkpoints; the name is the journal's own, from its first record, so a journal that
 * is begun anew is another log. Writes and reads the text; computes no tree.
 */
import { createPublicKey, type KeyObject, sign as signBytes, verify as verifyBytes } from 'node:crypto';
import { HASH_BYTES, sha256 } from './encoding.ts';

/** A tree, as a note tells of it. */
export interface TreeHead {
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
}

export interface NoteSignature {
  readonly name: string;
  /** The key's id in four bytes, and what it made. */
  readonly bytes: Uint8Array;
}

export interface Note extends TreeHead {
  readonly signatures: readonly NoteSignature[];
}

/** Of signed-note: an Ed25519 key that signs notes. */
const ED25519 = 0x01;
const KEY_ID_BYTES = 4;
/** DER of every Ed25519 public key, before its 32 bytes. */
export const SPKI_HEAD = Buffer.from('302a300506032b6570032100', 'hex');
const DASH = '\u2014';

/** The log's name: no two journals begin with the same record. */
export const originOf = (firstBodyHash: Uint8Array): string =>
  `scribe.journal/${Buffer.from(firstBodyHash).toString('hex').slice(0, 32)}`;

const rawOf = (key: KeyObject): Buffer => {
  const { x } = (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'jwk' });
  return Buffer.from(x ?? '', 'base64url');
};

const keyIdOf = (name: string, raw: Uint8Array): Buffer =>
  sha256(Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ED25519), raw])).subarray(0, KEY_ID_BYTES);

/** The key as verifiers of notes take it: name, key id and public key. */
export const vkeyOf = (name: string, key: KeyObject): string => {
  const raw = rawOf(key);
  return `${name}+${keyIdOf(name, raw).toString('hex')}+${Buffer.concat([Buffer.of(ED25519), raw]).toString('base64')}`;
};

/** The 32 bytes of an Ed25519 public key, for createPublicKey. */
const publicKeyOf = (raw: Uint8Array): { key: Buffer; format: 'der'; type: 'spki' } => ({
  key: Buffer.concat([SPKI_HEAD, raw]),
  format: 'der',
  type: 'spki',
});

/** The public key in a vkey; null for anything else. */
export const keyOfVkey = (text: string): KeyObject | null => {
  const [, encoded] = /^[^\s+]+\+[0-9a-f]{8}\+([A-Za-z0-9+/]+=*)$/.exec(text.trim()) ?? [];
  const bytes = Buffer.from(encoded ?? '', 'base64');
  if (bytes.length !== 1 + HASH_BYTES || bytes[0] !== ED25519) return null;
  return createPublicKey(publicKeyOf(bytes.subarray(1)));
};

/** What is signed of a note. */
export const noteBody = ({ origin, size, root }: TreeHead): string =>
  `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;

const lineOf = ({ name, bytes }: NoteSignature): string => `${DASH} ${name} ${Buffer.from(bytes).toString('base64')}\n`;

export const noteText = (note: Note): string => `${noteBody(note)}\n${note.signatures.map(lineOf).join('')}`;

/** Signs a tree by the journal's own key, under its own name. */
export const signNote = (key: KeyObject, head: TreeHead): Note => {
  const id = keyIdOf(head.origin, rawOf(key));
  const bytes = Buffer.concat([id, signBytes(null, Buffer.from(noteBody(head)), key)]);
  return { ...head, signatures: [{ name: head.origin, bytes }] };
};

/** Whether one of its signatures is by this key under the log's name. */
export const isNoteSigned = (key: KeyObject, note: Note): boolean => {
  const id = keyIdOf(note.origin, rawOf(key));
  const message = Buffer.from(noteBody(note));
  return note.signatures.some(
    ({ name, bytes }) =>
      name === note.origin &&
      id.equals(bytes.subarray(0, KEY_ID_BYTES)) &&
      verifyBytes(null, message, key, bytes.subarray(KEY_ID_BYTES)),
  );
};

const signatureOf = (line: string): NoteSignature | null => {
  const [, name, encoded] = /^\u2014 ([^\s+]+) ([A-Za-z0-9+/]+=*)$/.exec(line) ?? [];
  const bytes = Buffer.from(encoded ?? '', 'base64');
  return name === undefined || bytes.length <= KEY_ID_BYTES ? null : { name, bytes };
};

/** The signatures of lines as a note has them; null for anything else. */
export const parseSignatures = (lines: string): NoteSignature[] | null => {
  const signatures = lines.trimEnd().split('\n').map(signatureOf);
  return signatures.some((signature) => signature === null) ? null : signatures.filter((one) => one !== null);
};

/** The note that a text is; null for anything else. Says nothing about its signatures. */
export const parseNote = (text: string): Note | null => {
  const parted = /^([^\n]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n\n((?:[^\n]+\n)+)$/.exec(text);
  if (parted === null) return null;
  const [, origin = '', size = '', root = '', lines = ''] = parted;
  const signatures = parseSignatures(lines);
  return signatures === null ? null : { origin, size: Number(size), root: Buffer.from(root, 'base64'), signatures };
};
