/**
 * The bytes of journal format v1: what a record's hashes, a read chunk's root and a checkpoint's signature are taken
 * over. Frozen: docs/journal-format.md describes it, test vectors hold it in place.
 * Pure; everything multi-byte is big-endian, text is UTF-8 behind its length.
 */
import { hash } from 'node:crypto';
import { JournalError } from './errors.ts';
import { BODY_BYTES_MAX, type JournalRecord } from './types.ts';

const FORMAT_VERSION = 1;
export const HASH_BYTES = 32;
/** The hash before the first record, and the root before a segment's first chunk. */
export const GENESIS: Uint8Array = new Uint8Array(HASH_BYTES);

const bounds = { bootBytes: 64, typeBytes: 128, streamBytes: 512, bodyBytes: BODY_BYTES_MAX } as const;
const int64Max = 2n ** 63n - 1n;

/** Bytes of a record's encoding besides its four texts. */
const fixedBytes = 1 + 8 + 8 + 8 + 4 + 4 + 4 + 4 + 8 + 8 + 4;

export const sha256 = (data: Uint8Array): Buffer => hash('sha256', data, 'buffer');

/** As text a digest costs a third of what a Buffer costs, and verifying a journal takes millions. */
export const sha256Hex = (data: Uint8Array): string => hash('sha256', data, 'hex');

/** At least as many bytes as encodeRecord will write for it. */
export const encodedBytesMax = (record: Pick<JournalRecord, 'boot' | 'type' | 'stream' | 'body'>): number =>
  fixedBytes + 3 * (record.boot.length + record.type.length + record.stream.length + record.body.length);

const writeSeq = (target: Buffer, seq: number, at: number): number => {
  target.writeUInt32BE(Math.floor(seq / 0x1_0000_0000), at);
  return target.writeUInt32BE(seq >>> 0, at + 4);
};

const readSeq = (source: Buffer, at: number): number =>
  source.readUInt32BE(at) * 0x1_0000_0000 + source.readUInt32BE(at + 4);

const writeText = (target: Buffer, text: string, at: number): number => {
  const written = target.write(text, at + 4);
  target.writeUInt32BE(written, at);
  return at + 4 + written;
};

type Rest = Pick<JournalRecord, 'boot' | 'type' | 'v' | 'stream' | 'cause' | 'call' | 'body'>;

/** What comes behind the times. */
const writeRest = (target: Buffer, { boot, type, v, stream, cause, call, body }: Rest, at: number): number => {
  let end = writeText(target, boot, at);
  end = writeText(target, type, end);
  end = target.writeUInt32BE(v, end);
  end = writeText(target, stream, end);
  end = writeSeq(target, cause ?? 0, end);
  end = writeSeq(target, call ?? 0, end);
  return writeText(target, body, end);
};

/** Writes a record's encoding at `at` and returns where it ends. The target must have encodedBytesMax left. */
export const encodeRecord = (record: JournalRecord, target: Buffer, at: number): number => {
  let end = target.writeUInt8(FORMAT_VERSION, at);
  end = writeSeq(target, record.seq, end);
  end = target.writeBigInt64BE(record.atNs, end);
  end = target.writeBigInt64BE(record.monoNs, end);
  return writeRest(target, record, end);
};

/** A record whose times are two halves each, as SQLite can give them: bigints take longer to make than all the rest. */
export interface HalvedRecord extends Rest {
  readonly seq: number;
  readonly atHigh: number;
  readonly atLow: number;
  readonly monoHigh: number;
  readonly monoLow: number;
}

/** encodeRecord of a halved record: the same bytes. */
export const encodeHalved = (record: HalvedRecord, target: Buffer, at: number): number => {
  let end = target.writeUInt8(FORMAT_VERSION, at);
  end = writeSeq(target, record.seq, end);
  end = target.writeInt32BE(record.atHigh, end);
  end = target.writeUInt32BE(record.atLow, end);
  end = target.writeInt32BE(record.monoHigh, end);
  end = target.writeUInt32BE(record.monoLow, end);
  return writeRest(target, record, end);
};

/** body_hash: SHA-256 over all columns but the hashes. */
export const bodyHash = (record: JournalRecord): Buffer => {
  const buffer = Buffer.allocUnsafe(encodedBytesMax(record));
  return sha256(buffer.subarray(0, encodeRecord(record, buffer, 0)));
};

const chainInput = Buffer.alloc(HASH_BYTES + 8 + HASH_BYTES);

/** hash: SHA-256 over the previous hash, seq and body_hash. */
export const chainHash = (previous: Uint8Array, seq: number, body: Uint8Array): Buffer => {
  chainInput.set(previous, 0);
  writeSeq(chainInput, seq, HASH_BYTES);
  chainInput.set(body, HASH_BYTES + 8);
  return sha256(chainInput);
};

export interface Chain {
  /** Views of the newest link's hashes: the next link writes over them. */
  readonly hash: Uint8Array;
  readonly bodyHash: Uint8Array;
  /** Adds a record, given its encoding. */
  readonly link: (seq: number, encoding: Uint8Array) => void;
}

/** A chain that goes on from a hash without allocating anything per record: for the writer. */
export const createChain = (from: Uint8Array): Chain => {
  const input = Buffer.alloc(HASH_BYTES + 8 + HASH_BYTES);
  input.set(from, 0);
  return {
    hash: input.subarray(0, HASH_BYTES),
    bodyHash: input.subarray(HASH_BYTES + 8),
    link: (seq, encoding) => {
      input.write(hash('sha256', encoding, 'binary'), HASH_BYTES + 8, 'binary');
      writeSeq(input, seq, HASH_BYTES);
      input.write(hash('sha256', input, 'binary'), 0, 'binary');
    },
  };
};

/** The same, all in hex: for checking long chains. */
export const chainHashHex = (previous: string, seq: number, body: string): string => {
  chainInput.write(previous, 0, 'hex');
  writeSeq(chainInput, seq, HASH_BYTES);
  chainInput.write(body, HASH_BYTES + 8, 'hex');
  return sha256Hex(chainInput);
};

const checkpointTag = 'scribe checkpoint 1\n';

/** What a checkpoint signs: the chain up to `seq`, and the greatest `at` in it. */
export const checkpointMessage = (seq: number, head: Uint8Array, atMaxNs: bigint): Buffer => {
  const message = Buffer.alloc(checkpointTag.length + 8 + HASH_BYTES + 8);
  message.write(checkpointTag, 'latin1');
  writeSeq(message, seq, checkpointTag.length);
  message.set(head, checkpointTag.length + 8);
  message.writeBigInt64BE(atMaxNs, checkpointTag.length + 8 + HASH_BYTES);
  return message;
};

/** A segment's root after one more chunk. */
export const chunkRoot = (previous: Uint8Array, segment: number, chunk: number, rows: Uint8Array): Buffer => {
  const numbers = Buffer.alloc(16);
  writeSeq(numbers, chunk, writeSeq(numbers, segment, 0));
  return sha256(Buffer.concat([previous, numbers, rows]));
};

const refuse = (record: JournalRecord, why: string): never => {
  throw new JournalError('BadRecord', `The journal refuses record ${record.seq} (${record.type}): ${why}.`);
};

const checkText = (record: JournalRecord, name: string, text: string, bytesMax: number): void => {
  if (text === '') refuse(record, `its ${name} is empty`);
  if (text.length > bytesMax) refuse(record, `its ${name} is longer than ${bytesMax} bytes`);
  if (!text.isWellFormed()) refuse(record, `its ${name} is not well-formed Unicode`);
};

const checkReference = (record: JournalRecord, name: string, seq: number | null): void => {
  if (seq !== null && !(Number.isSafeInteger(seq) && seq >= 1 && seq <= record.seq)) {
    refuse(record, `its ${name} ${seq} is not an earlier record`);
  }
};

/** Throws a JournalError BadRecord unless this is the record with `seq` and every column is within its bounds. */
export const checkRecord = (record: JournalRecord, seq: number): void => {
  if (record.seq !== seq) refuse(record, `the next sequence number is ${seq}`);
  for (const clockNs of [record.atNs, record.monoNs]) {
    if (clockNs < 0n || clockNs > int64Max) refuse(record, `its time ${clockNs} ns is out of range`);
  }
  if (!Number.isInteger(record.v) || record.v < 1 || record.v > 0x7fff_ffff)
    refuse(record, `v ${record.v} is no version`);
  checkText(record, 'boot', record.boot, bounds.bootBytes);
  checkText(record, 'type', record.type, bounds.typeBytes);
  checkText(record, 'stream', record.stream, bounds.streamBytes);
  checkText(record, 'body', record.body, bounds.bodyBytes);
  checkReference(record, 'cause', record.cause);
  checkReference(record, 'call', record.call);
};

/** A record's encoding taken apart without copying it: texts stay bytes until somebody needs them. */
export interface RecordFrame {
  readonly seq: number;
  readonly atNs: bigint;
  readonly monoNs: bigint;
  readonly boot: string;
  readonly type: string;
  readonly v: number;
  readonly stream: string;
  readonly cause: number | null;
  readonly call: number | null;
  readonly body: Uint8Array;
  /** The whole encoding: what body_hash is taken over. */
  readonly bytes: Uint8Array;
}

/** The frame that starts at `at`; for bytes that encodeRecord wrote. */
export const decodeFrame = (source: Buffer, at: number): RecordFrame => {
  let end = at + 25;
  const bytes = (): Buffer => {
    const start = end + 4;
    end = start + source.readUInt32BE(end);
    return source.subarray(start, end);
  };
  const seq = (): number => {
    end += 8;
    return readSeq(source, end - 8);
  };
  const boot = bytes().toString();
  const type = bytes().toString();
  const v = source.readUInt32BE(end);
  end += 4;
  const stream = bytes().toString();
  const cause = seq();
  const call = seq();
  const body = bytes();
  return {
    seq: readSeq(source, at + 1),
    atNs: source.readBigInt64BE(at + 9),
    monoNs: source.readBigInt64BE(at + 17),
    boot,
    type,
    v,
    stream,
    cause: cause === 0 ? null : cause,
    call: call === 0 ? null : call,
    body,
    bytes: source.subarray(at, end),
  };
};
