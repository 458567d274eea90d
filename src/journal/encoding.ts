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

/** Bytes to write an encoding to, and the same for numbers: a DataView writes those in a fraction of the time that a Buffer takes. */
export interface EncodingTarget {
  readonly bytes: Buffer;
  readonly numbers: DataView;
}

const targetOf = (bytes: Buffer): EncodingTarget => ({
  bytes,
  numbers: new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
});

export const createTarget = (sizeBytes: number): EncodingTarget => targetOf(Buffer.allocUnsafeSlow(sizeBytes));

/** A text as it stands in an encoding, behind its length: made once of what many records bear. */
export type EncodedText = Uint8Array;

const LENGTH_BYTES = 4;

export const encodeText = (text: string): EncodedText => {
  const target = targetOf(Buffer.allocUnsafe(LENGTH_BYTES + Buffer.byteLength(text)));
  writeText(target, text, 0);
  return target.bytes;
};

type Text = string | EncodedText;

/** At least as many bytes as its encoding takes. */
export const encodedBytesMax = ({
  boot,
  type,
  stream,
  body,
}: Readonly<Record<'boot' | 'type' | 'stream' | 'body', Text>>): number =>
  fixedBytes + 3 * (boot.length + type.length + stream.length + body.length);

const writeSeq = (numbers: DataView, seq: number, at: number): number => {
  numbers.setUint32(at, Math.floor(seq / 0x1_0000_0000));
  numbers.setUint32(at + 4, seq >>> 0);
  return at + 8;
};

const readSeq = (source: Buffer, at: number): number =>
  source.readUInt32BE(at) * 0x1_0000_0000 + source.readUInt32BE(at + 4);

const writeText = ({ bytes, numbers }: EncodingTarget, text: Text, at: number): number => {
  if (typeof text === 'string') {
    const written = bytes.write(text, at + LENGTH_BYTES);
    numbers.setUint32(at, written);
    return at + LENGTH_BYTES + written;
  }
  bytes.set(text, at);
  return at + text.length;
};

interface Rest extends Pick<JournalRecord, 'v' | 'cause' | 'call' | 'body'> {
  readonly boot: Text;
  readonly type: Text;
  readonly stream: Text;
}

/** What comes behind the times. */
const writeRest = (target: EncodingTarget, { boot, type, v, stream, cause, call, body }: Rest, at: number): number => {
  let end = writeText(target, boot, at);
  end = writeText(target, type, end);
  target.numbers.setUint32(end, v);
  end = writeText(target, stream, end + 4);
  end = writeSeq(target.numbers, cause ?? 0, end);
  end = writeSeq(target.numbers, call ?? 0, end);
  return writeText(target, body, end);
};

/** Where the times begin: behind the version and seq. */
const writeStart = ({ numbers }: EncodingTarget, seq: number, at: number): number => {
  numbers.setUint8(at, FORMAT_VERSION);
  return writeSeq(numbers, seq, at + 1);
};

const TIMES_BYTES = 16;

/** Writes a record's encoding at `at` and returns where it ends. The target must have encodedBytesMax left. */
export const encodeRecord = (record: JournalRecord, target: EncodingTarget, at: number): number => {
  const timesAt = writeStart(target, record.seq, at);
  target.numbers.setBigInt64(timesAt, record.atNs);
  target.numbers.setBigInt64(timesAt + 8, record.monoNs);
  return writeRest(target, record, timesAt + TIMES_BYTES);
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
export const encodeHalved = (record: HalvedRecord, target: EncodingTarget, at: number): number => {
  const timesAt = writeStart(target, record.seq, at);
  target.numbers.setInt32(timesAt, record.atHigh);
  target.numbers.setUint32(timesAt + 4, record.atLow);
  target.numbers.setInt32(timesAt + 8, record.monoHigh);
  target.numbers.setUint32(timesAt + 12, record.monoLow);
  return writeRest(target, record, timesAt + TIMES_BYTES);
};

/** Encodings are mostly no longer, and of each length there is one view to hand out. */
const VIEWED_BYTES_MAX = 16 * 1024;

/** A target that grows and is written over each time, with views of its first bytes, made once for each length. */
export const createReusedTarget = () => {
  let target = createTarget(VIEWED_BYTES_MAX);
  let views: Buffer[] = [];
  return {
    withRoomFor: (bytes: number): EncodingTarget => {
      if (bytes > target.bytes.length) {
        target = createTarget(2 * bytes);
        views = [];
      }
      return target;
    },
    first: (bytes: number): Buffer =>
      bytes > VIEWED_BYTES_MAX ? target.bytes.subarray(0, bytes) : (views[bytes] ??= target.bytes.subarray(0, bytes)),
  };
};

/** body_hash: SHA-256 over all columns but the hashes. */
export const bodyHash = (record: JournalRecord): Buffer => {
  const target = createTarget(encodedBytesMax(record));
  return sha256(target.bytes.subarray(0, encodeRecord(record, target, 0)));
};

const createChainInput = (): EncodingTarget => targetOf(Buffer.alloc(HASH_BYTES + 8 + HASH_BYTES));

const chainInput = createChainInput();

/** hash: SHA-256 over the previous hash, seq and body_hash. */
export const chainHash = (previous: Uint8Array, seq: number, body: Uint8Array): Buffer => {
  const { bytes, numbers } = chainInput;
  bytes.set(previous, 0);
  writeSeq(numbers, seq, HASH_BYTES);
  bytes.set(body, HASH_BYTES + 8);
  return sha256(bytes);
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
  const { bytes, numbers } = createChainInput();
  bytes.set(from, 0);
  return {
    hash: bytes.subarray(0, HASH_BYTES),
    bodyHash: bytes.subarray(HASH_BYTES + 8),
    link: (seq, encoding) => {
      bytes.write(hash('sha256', encoding, 'binary'), HASH_BYTES + 8, 'binary');
      writeSeq(numbers, seq, HASH_BYTES);
      bytes.write(hash('sha256', bytes, 'binary'), 0, 'binary');
    },
  };
};

/** The same, all in hex: for checking long chains. */
export const chainHashHex = (previous: string, seq: number, body: string): string => {
  const { bytes, numbers } = chainInput;
  bytes.write(previous, 0, 'hex');
  writeSeq(numbers, seq, HASH_BYTES);
  bytes.write(body, HASH_BYTES + 8, 'hex');
  return sha256Hex(bytes);
};

const checkpointTag = 'scribe checkpoint 1\n';

/** What a checkpoint signs: the chain up to `seq`, and the greatest `at` in it. */
export const checkpointMessage = (seq: number, head: Uint8Array, atMaxNs: bigint): Buffer => {
  const { bytes, numbers } = targetOf(Buffer.alloc(checkpointTag.length + 8 + HASH_BYTES + 8));
  bytes.write(checkpointTag, 'latin1');
  writeSeq(numbers, seq, checkpointTag.length);
  bytes.set(head, checkpointTag.length + 8);
  numbers.setBigInt64(checkpointTag.length + 8 + HASH_BYTES, atMaxNs);
  return bytes;
};

/** A segment's root after one more chunk. */
export const chunkRoot = (previous: Uint8Array, segment: number, chunk: number, rows: Uint8Array): Buffer => {
  const { bytes, numbers } = targetOf(Buffer.alloc(16));
  writeSeq(numbers, chunk, writeSeq(numbers, segment, 0));
  return sha256(Buffer.concat([previous, bytes, rows]));
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
