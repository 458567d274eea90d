/**
 * Writes the journal's tree as files that verifiers of tile-based logs read (c2sp.org/tlog-tiles): tiles, entries and, last,
 * the checkpoint, so that whoever reads meanwhile finds all that it names. An entry is a record's body_hash: no body is in it.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { TILE_WIDTH, tileWidth } from '../../journal/merkle.ts';
import { type Note, noteText, parseNote } from '../../journal/notes.ts';
import type { OpenedTree } from '../../journal/open-tree.ts';
import { makeDirectories } from '../../platform/linux/make-directories.ts';
import { failure } from '../command.ts';
import { counted, grouped } from '../format.ts';

const CHECKPOINT = 'checkpoint';
/** So many files are written at once. */
const FILES_AT_ONCE = 16;

/** 1234067 is x001/x234/067; a tile that is not full says how many hashes it has. */
const pathOf = (level: number | 'entries', n: number, width: number): string => {
  const groups = String(n)
    .padStart(Math.ceil(String(n).length / 3) * 3, '0')
    .match(/\d{3}/g);
  const name = (groups ?? []).map((group, index, all) => (index < all.length - 1 ? `x${group}` : group)).join('/');
  return `tile/${level}/${name}${width < TILE_WIDTH ? `.p/${width}` : ''}`;
};

const bundleOf = (leaves: readonly Uint8Array[]): Buffer =>
  Buffer.concat(leaves.flatMap((leaf) => [Buffer.of(leaf.length >> 8, leaf.length & 0xff), leaf]));

interface TlogFile {
  readonly path: string;
  readonly content: Buffer;
}

function* filesOf(tree: OpenedTree, size: number): Generator<TlogFile> {
  for (let level = 0; tileWidth(level, 0, size) > 0; level++) {
    for (let n = 0; ; n++) {
      const width = tileWidth(level, n, size);
      if (width === 0) break;
      if (level === 0)
        yield { path: pathOf('entries', n, width), content: bundleOf(tree.leaves(n * TILE_WIDTH, width)) };
      yield { path: pathOf(level, n, width), content: Buffer.concat(tree.tileOf(level, n, width)) };
    }
  }
}

/** null: there is none yet. A sentence for what is there and is no checkpoint: what it was of must not be written over. */
const checkpointIn = async (dir: string): Promise<Note | string | null> => {
  const text = await readFile(join(dir, CHECKPOINT), 'utf8').catch((thrown: NodeJS.ErrnoException) => {
    // Where no directory can be, writing into it says so.
    if (thrown.code === 'ENOENT' || thrown.code === 'ENOTDIR') return null;
    throw failure(`--tlog ${dir}: its checkpoint cannot be read: ${thrown.message}.`, thrown);
  });
  return text === null ? null : (parseNote(text) ?? 'its checkpoint is none that scribe reads');
};

/**
 * A log grows, and whoever verifies it trusts in that: another log's files must not come under this one's checkpoint, nor may an
 * older copy of the journal, or one that went on otherwise from there, take back what was said of it.
 */
const whyNotOver = (there: Note, tree: OpenedTree): string | null => {
  if (there.origin !== tree.origin)
    return `there is the log ${there.origin} already, and this journal is ${tree.origin}`;
  if (there.size > tree.size)
    return `its checkpoint knows ${counted(there.size, 'record')}, and this journal has ${grouped(tree.size)}: it is an older copy, or was put back`;
  return Buffer.from(tree.root(there.size)).equals(there.root)
    ? null
    : `the ${counted(there.size, 'record')} that its checkpoint knows are others than this journal has: one of the two was put back, or rewritten`;
};

const refuseOther = async (dir: string, tree: OpenedTree): Promise<void> => {
  const there = await checkpointIn(dir);
  const why = there === null || typeof there === 'string' ? there : whyNotOver(there, tree);
  if (why !== null) throw failure(`--tlog ${dir}: ${why}: name another directory.`);
};

const refuseIn =
  (dir: string) =>
  (thrown: Error): never => {
    throw failure(
      `--tlog ${dir} cannot be written: ${thrown.message}. Make room there, or name a directory that can be written.`,
      thrown,
    );
  };

/** As the umask leaves it: others may read what is published. */
const DIRECTORY_MODE = 0o777;

/** A batch is begun and waited for as one, so that no failure in it is nobody's. */
const writeFiles = async (dir: string, files: Iterable<TlogFile>): Promise<void> => {
  const made = new Set<string>();
  const writeOne = async ({ path, content }: TlogFile): Promise<void> => {
    const parent = dirname(join(dir, path));
    if (!made.has(parent)) await makeDirectories(parent, DIRECTORY_MODE);
    made.add(parent);
    await writeFile(join(dir, path), content);
  };
  const writeAll = async (batch: readonly TlogFile[]): Promise<void> => {
    await Promise.all(batch.map(writeOne)).catch(refuseIn(dir));
  };
  let batch: TlogFile[] = [];
  for (const file of files) {
    batch.push(file);
    if (batch.length < FILES_AT_ONCE) continue;
    await writeAll(batch);
    batch = [];
  }
  await writeAll(batch);
};

const writeCheckpoint = async (dir: string, note: Note): Promise<void> => {
  const path = join(dir, CHECKPOINT);
  await writeFile(`${path}.new`, noteText(note));
  await rename(`${path}.new`, path);
};

/** @returns the checkpoint that all of it is about: of the newest record there is */
export const exportTlog = async (tree: OpenedTree, dir: string): Promise<Note> => {
  await refuseOther(dir, tree);
  const note = tree.checkpoint(tree.size);
  await writeFiles(dir, filesOf(tree, note.size));
  await writeCheckpoint(dir, note).catch(refuseIn(dir));
  return note;
};
