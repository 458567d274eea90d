/**
 * The tree of a journal for those who hand it to other people's verifiers: its name, tiles, proofs, and the checkpoint that
 * they are about. Reads only, whether or not the journal's daemon runs; a checkpoint is signed, but nothing is written.
 */
import { existsSync } from 'node:fs';
import { loadPublicKey, readNoteFile, readSigningKey } from './checkpoints.ts';
import { connectReader } from './connect.ts';
import { newestCosigned } from './cosigned.ts';
import { JournalError } from './errors.ts';
import { journalFiles } from './files.ts';
import { createTree } from './merkle.ts';
import { isNoteSigned, type Note, originOf, signNote, vkeyOf } from './notes.ts';
import { createReader } from './reader.ts';
import { createTreeReader, type TreeReader } from './tree-table.ts';

export interface OpenedTree extends TreeReader, ReturnType<typeof createTree> {
  readonly origin: string;
  /** Leaves that there are: the newest record's seq. */
  readonly size: number;
  /** The journal's key as verifiers take it. Throws when there is none. */
  readonly vkey: () => string;
  /**
   * The newest checkpoint that a witness has cosigned, where it knows record `seq`, or the one beside the journal, else one that is signed for this. Throws JournalError
   * when that takes a key that cannot be read, or when the checkpoint is not of these records.
   */
  readonly checkpoint: (seq: number) => Note;
  readonly close: () => void;
}

const checkpointOf = (path: string, tree: Omit<OpenedTree, 'checkpoint' | 'close' | 'vkey'>, seq: number): Note => {
  const { origin, size, root } = tree;
  const { key: keyPath, note: notePath } = journalFiles(path);
  const isTree = (note: Note): boolean => note.origin === origin && Buffer.from(root(note.size)).equals(note.root);
  const ownKey = loadPublicKey(keyPath);
  const isOwn = (note: Note): boolean => isTree(note) && (ownKey === null || isNoteSigned(ownKey, note));
  const cosigned = newestCosigned(path, seq, size, isOwn);
  if (cosigned !== null) return cosigned;
  const beside = readNoteFile(notePath);
  if (beside !== null && beside.size >= seq && beside.size <= size) {
    if (isOwn(beside)) return beside;
    throw new JournalError('Corrupt', `${notePath} is not of the records of ${path}: scribe verify says more.`);
  }
  const key = readSigningKey(keyPath);
  if (key !== null) return signNote(key, { origin, size, root: root(size) });
  const known = beside === null ? 'there is none' : `it knows ${beside.size} records`;
  // A copy has no key, unless somebody wanted it along: nobody can read there what is not there.
  const [what, remedy] = existsSync(keyPath)
    ? ['cannot be read', 'run this as root']
    : ['is not there', 'ask the journal that this is a copy of, or a copy that is made now with scribe journal backup'];
  throw new JournalError(
    'Unsafe',
    `${keyPath} ${what} to sign record ${seq}, and of the checkpoint ${notePath} ${known}: ${remedy}.`,
  );
};

/** Throws JournalError when there is no journal, or nothing in it. */
export const openTree = (path: string): OpenedTree => {
  if (!existsSync(path)) throw new JournalError('Unsafe', `There is no journal at ${path}.`);
  const db = connectReader(path);
  try {
    const reader = createTreeReader(db);
    const size = createReader(db).headSeq();
    if (size === 0)
      throw new JournalError('Unsafe', `The journal ${path} has no records, so there is nothing to prove.`);
    const [first = new Uint8Array()] = reader.leaves(0, 1);
    const tree = { ...reader, ...createTree(reader.tileOf), origin: originOf(first), size };
    return {
      ...tree,
      vkey: () => {
        const { key: keyPath } = journalFiles(path);
        const key = loadPublicKey(keyPath);
        if (key === null) throw new JournalError('Unsafe', `${keyPath} is missing or no key, or you may not read it.`);
        return vkeyOf(tree.origin, key);
      },
      checkpoint: (seq) => checkpointOf(path, tree, seq),
      close: () => db.close(),
    };
  } catch (thrown) {
    db.close();
    throw thrown;
  }
};

/** The key of a journal as verifiers take it. Throws JournalError when there is no journal, nothing in it, or no key. */
export const vkeyIn = (path: string): string => {
  const tree = openTree(path);
  try {
    return tree.vkey();
  } finally {
    tree.close();
  }
};
