/**
 * Texts that many records share, stored once: boot ids, types and streams, but not the streams of single calls,
 * of which there is one per call. Where a text is stored changes nothing about a record or its hashes.
 */
import type { Db } from './connect.ts';
import { sha256 } from './encoding.ts';

const cachedMax = 16_384;
const digestBytes = 8;

export const nameDigest = (id: number, name: string): Buffer => {
  const input = Buffer.alloc(8 + Buffer.byteLength(name));
  input.writeBigUInt64BE(BigInt(id));
  input.write(name, 8);
  return sha256(input).subarray(0, digestBytes);
};

/** A Map that forgets everything when it has grown too large: streams come and go for as long as the daemon runs. */
export const remember = <K, V>(cache: Map<K, V>, key: K, value: V): V => {
  if (cache.size >= cachedMax) cache.clear();
  cache.set(key, value);
  return value;
};

export interface NameReader {
  readonly nameOf: (id: number) => string | undefined;
  readonly idOf: (name: string) => number | undefined;
}

export const createNameReader = (db: Db): NameReader => {
  const cache = new Map<number, string>();
  const byId = db.prepare<[number], string>('SELECT name FROM names WHERE id = ?').pluck();
  const byName = db.prepare<[string], number>('SELECT id FROM names WHERE name = ?').pluck();
  return {
    nameOf: (id) => {
      const known = cache.get(id);
      if (known !== undefined) return known;
      const name = byId.get(id);
      return name === undefined ? undefined : remember(cache, id, name);
    },
    idOf: (name) => byName.get(name),
  };
};

export interface NameWriter {
  /** The id of a text; a new one is stored first. Within the caller's transaction. */
  readonly idOf: (name: string) => number;
  /** Deletes a name that no record uses any more. Within a transaction that prunes. */
  readonly forget: (id: number) => void;
}

export const createNameWriter = (db: Db): NameWriter => {
  const cache = new Map<string, number>();
  const byName = db.prepare<[string], number>('SELECT id FROM names WHERE name = ?').pluck();
  const insert = db.prepare('INSERT INTO names (id, name, digest) VALUES (?, ?, ?)');
  // The newest name stays even when it is unused: an id must never come to mean something else under a reader.
  const remove = db.prepare('DELETE FROM names WHERE id = ? AND id < (SELECT max(id) FROM names)');
  let nextId = 1 + (db.prepare<[], number | null>('SELECT max(id) FROM names').pluck().get() ?? 0);
  return {
    idOf: (name) => {
      const known = cache.get(name) ?? byName.get(name);
      if (known !== undefined) return remember(cache, name, known);
      const id = nextId++;
      insert.run(id, name, nameDigest(id, name));
      return remember(cache, name, id);
    },
    forget: (id) => {
      cache.clear();
      remove.run(id);
    },
  };
};
