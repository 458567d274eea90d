/** The frozen bytes of journal format v1: the vectors of docs/journal-format.md, and that nothing else encodes alike. */
import assert from 'node:assert/strict';
import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { isSigned, signCheckpoint } from '../../src/journal/checkpoints.ts';
import {
  bodyHash,
  chainHash,
  chainHashHex,
  checkpointMessage,
  checkRecord,
  chunkRoot,
  createChain,
  decodeFrame,
  createTarget,
  encodedBytesMax,
  encodeRecord,
  GENESIS,
} from '../../src/journal/encoding.ts';
import { nameDigest } from '../../src/journal/names.ts';
import { decodeReadRows, encodeReadRow, READ_ROW_BYTES_MAX } from '../../src/journal/read-rows.ts';
import { snapshotHash } from '../../src/journal/snapshot-table.ts';
import type { JournalRecord, ReadRow } from '../../src/journal/types.ts';
import { anyColumns, anyReadRow, recordAt } from './support.ts';

interface Vectors {
  readonly records: readonly {
    readonly record: Omit<JournalRecord, 'atNs' | 'monoNs'> & { readonly atNs: string; readonly monoNs: string };
    readonly encoding: string;
    readonly body_hash: string;
    readonly hash: string;
  }[];
  readonly segment: number;
  readonly chunks: readonly {
    readonly row: Omit<ReadRow, 'atNs' | 'durationNs'> & { readonly atNs: string; readonly durationNs: string };
    readonly rows: string;
    readonly root: string;
  }[];
  readonly checkpoint: Readonly<Record<'hash' | 'atMaxNs' | 'message' | 'privateKey' | 'signature', string>> & {
    readonly seq: number;
  };
  readonly name: { readonly id: number; readonly name: string; readonly digest: string };
  readonly snapshot: {
    readonly seq: number;
    readonly evolverVersion: number;
    readonly recordHash: string;
    readonly state: string;
    readonly stateHash: string;
  };
}

const page = readFileSync(join(import.meta.dirname, '../../docs/journal-format.md'), 'utf8');
const block = /```json\n([\s\S]*?)\n```/.exec(page)?.[1] ?? '';
const vectors = JSON.parse(block) as Vectors;

const hexToBytes = (hex: string): Buffer => Buffer.from(hex, 'hex');

const encodingOf = (record: JournalRecord): Buffer => {
  const target = createTarget(encodedBytesMax(record));
  return target.bytes.subarray(0, encodeRecord(record, target, 0));
};

const rowBytes = (rows: readonly ReadRow[]): Buffer => {
  const buffer = Buffer.alloc(rows.length * READ_ROW_BYTES_MAX);
  return buffer.subarray(
    0,
    rows.reduce((end, row) => encodeReadRow(row, buffer, end), 0),
  );
};

test('C9: the documented test vectors are the ones that were frozen', () => {
  const digest = createHash('sha256').update(block).digest('hex');
  assert.equal(digest, '2987cfc97a5727db654971f9a8c0f98265b05e8fcdff874035bae87a26c1b396');
});

test('C9: records encode and chain as documented', () => {
  let previous: Uint8Array = GENESIS;
  const chain = createChain(GENESIS);
  for (const vector of vectors.records) {
    const { record } = vector;
    const whole: JournalRecord = { ...record, atNs: BigInt(record.atNs), monoNs: BigInt(record.monoNs) };
    checkRecord(whole, whole.seq);
    const encoding = encodingOf(whole);
    assert.equal(encoding.toString('hex'), vector.encoding);
    assert.equal(bodyHash(whole).toString('hex'), vector.body_hash);
    const hash = chainHash(previous, whole.seq, bodyHash(whole));
    assert.equal(hash.toString('hex'), vector.hash);
    assert.equal(chainHashHex(Buffer.from(previous).toString('hex'), whole.seq, vector.body_hash), vector.hash);
    chain.link(whole.seq, encoding);
    assert.deepEqual([chain.bodyHash, chain.hash], [hexToBytes(vector.body_hash), hexToBytes(vector.hash)]);
    previous = hash;
  }
});

test('C10: rows of read calls encode as documented, and a chunk gives the documented root', () => {
  let root: Uint8Array = GENESIS;
  vectors.chunks.forEach(({ row, ...vector }, chunk) => {
    const whole: ReadRow = { ...row, atNs: BigInt(row.atNs), durationNs: BigInt(row.durationNs) };
    assert.equal(rowBytes([whole]).toString('hex'), vector.rows);
    assert.deepEqual(decodeReadRows(hexToBytes(vector.rows)), [whole]);
    root = chunkRoot(root, vectors.segment, chunk, hexToBytes(vector.rows));
    assert.equal(Buffer.from(root).toString('hex'), vector.root);
  });
});

test('C9: a checkpoint signs the documented bytes', () => {
  const { seq, hash, atMaxNs, message, privateKey, signature } = vectors.checkpoint;
  const key = createPrivateKey({ key: hexToBytes(privateKey), format: 'der', type: 'pkcs8' });
  assert.equal(checkpointMessage(seq, hexToBytes(hash), BigInt(atMaxNs)).toString('hex'), message);
  const checkpoint = signCheckpoint(key, seq, hexToBytes(hash), BigInt(atMaxNs));
  assert.equal(Buffer.from(checkpoint.signature).toString('hex'), signature);
  assert.ok(isSigned(createPublicKey(key), checkpoint));
  assert.ok(!isSigned(createPublicKey(key), { ...checkpoint, seq: seq + 1 }));
});

test('C14: names and snapshots have the documented digests', () => {
  const { name, snapshot } = vectors;
  assert.equal(nameDigest(name.id, name.name).toString('hex'), name.digest);
  const { seq, evolverVersion, recordHash, state, stateHash } = snapshot;
  const computed = snapshotHash(seq, evolverVersion, hexToBytes(recordHash), Buffer.from(state));
  assert.equal(computed.toString('hex'), stateHash);
});

test('C9: an encoded record can be taken apart again', () => {
  fc.assert(
    fc.property(anyColumns, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), (columns, seq) => {
      const record: JournalRecord = { ...columns, seq, cause: seq > 1 ? seq - 1 : null, call: null };
      const bytes = Buffer.concat([Buffer.from('ahead'), encodingOf(record)]);
      const { bytes: whole, body, ...frame } = decodeFrame(bytes, 5);
      assert.deepEqual({ ...frame, body: Buffer.from(body).toString() }, record);
      assert.deepEqual(whole, encodingOf(record));
    }),
  );
});

test('C9: every column changes body_hash, and no text can pass for its neighbour', () => {
  const record = recordAt(9, { cause: 3, call: 4 });
  const others: Partial<JournalRecord>[] = [
    { seq: 10 },
    { atNs: record.atNs + 1n },
    { monoNs: record.monoNs + 1n },
    { boot: `${record.boot}x` },
    { type: `${record.type}x` },
    { v: 2 },
    { stream: `${record.stream}x` },
    { cause: 4 },
    { cause: null },
    { call: 3 },
    { call: null },
    { body: `${record.body} ` },
    { boot: `${record.boot}t`, type: record.type.slice(1) },
    { cause: 4, call: 3 },
  ];
  const hashes = [record, ...others.map((part) => ({ ...record, ...part }))].map((made) =>
    bodyHash(made).toString('hex'),
  );
  assert.equal(new Set(hashes).size, hashes.length);
});

test('read rows of any kind come back; long texts are cut, wild numbers become 0', () => {
  fc.assert(
    fc.property(fc.array(anyReadRow, { maxLength: 20 }), (rows) => {
      assert.deepEqual(decodeReadRows(rowBytes(rows)), rows);
    }),
  );
  const wild = { ...recordAt(1), method: 'm'.repeat(1000), code: -1, durationNs: 2n ** 80n, callerPid: Number.NaN };
  const [row] = decodeReadRows(rowBytes([{ ...wild, atNs: -5n, callerUid: 1.5, subject: '\u{1F6E0}'.repeat(500) }]));
  assert.deepEqual(
    [row?.method.length, row?.code, row?.durationNs, row?.callerPid, row?.callerUid],
    [200, 0, 0n, 0, 1],
  );
  assert.equal(row?.subject.length, 200);
});

test('bytes that are no read rows are refused, whatever they are', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      try {
        decodeReadRows(bytes);
      } catch (thrown) {
        assert.equal((thrown as { code?: unknown }).code, 'Corrupt');
      }
    }),
  );
});

test('C9: a record that breaks the bounds is refused with the column named', () => {
  const bad: readonly (readonly [Partial<JournalRecord>, RegExp])[] = [
    [{ seq: 8 }, /next sequence number is 7/],
    [{ atNs: -1n }, /time/],
    [{ monoNs: 2n ** 63n }, /time/],
    [{ v: 0 }, /version/],
    [{ v: 1.5 }, /version/],
    [{ type: '' }, /type is empty/],
    [{ type: 'x'.repeat(129) }, /type is longer/],
    [{ stream: 'x'.repeat(513) }, /stream is longer/],
    [{ body: '' }, /body is empty/],
    [{ body: '"\ud800"' }, /body is not well-formed/],
    [{ cause: 8 }, /cause 8/],
    [{ call: 0 }, /call 0/],
    [{ boot: 'x'.repeat(65) }, /boot is longer/],
  ];
  checkRecord(recordAt(7), 7);
  for (const [part, message] of bad)
    assert.throws(() => checkRecord(recordAt(7, part), 7), { code: 'BadRecord', message });
});
