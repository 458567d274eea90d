/**
 * Reads a file that may be gzip, zstd or neither, and gives its plain bytes. The first bytes say which it is: media
 * types are what somebody claims. Everything is streamed; what is broken or cut off throws FailureError ImageInvalid.
 */
import { read } from 'node:fs';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { constants, createZstdDecompress } from 'node:zlib';
import { errorCodeOf } from '../../platform/error-code.ts';
import { FailureError } from '../../domain/model/errors.ts';
import type { Inflater } from '../../platform/linux/inflate/inflater.ts';

/** Fills the beginning of the buffer with what comes next, and resolves with how many bytes that are; 0: there are no more. */
export type ReadPacked = (into: Buffer) => Promise<number>;

const CHUNK_BYTES = 1024 * 1024;
/** What one thread has written the other should find in its cache; each piece costs two turns of two threads. */
const INFLATED_BYTES = 512 * 1024;
const GZIP_MAGIC = 0x8b1f;
const ZSTD_MAGIC = 0xfd2fb528;
const ZSTD_SKIPPABLE_MAGIC = 0x184d2a50;
const ZSTD_SKIPPABLE_MASK = 0xfffffff0;
const MAGIC_BYTES = 4;
/** 512 MiB, as containerd takes them. */
const ZSTD_WINDOW_LOG_MAX = 29;

const broken = (what: string): FailureError =>
  new FailureError('ImageInvalid', `The compressed data is malformed: ${what}.`);

const tooLittleMemory = (): FailureError =>
  new FailureError(
    'ImageInvalid',
    'The compressed data needs more memory than limits.unpack_memory_max leaves, for a large zstd window: allow more, or compress it without --long.',
  );

/** What the reader of a zstd stream expects next: bytes it has to look at, or bytes that only pass. */
type Expected =
  | { readonly look: number; readonly then: (bytes: Buffer) => Expected; readonly isFrameStart?: boolean }
  | { readonly pass: number; readonly then: () => Expected; readonly isFrameEnd: boolean };

const isSkippable = (magic: number): boolean => (magic & ZSTD_SKIPPABLE_MASK) >>> 0 === ZSTD_SKIPPABLE_MAGIC;

const frameStart = (): Expected => ({
  look: MAGIC_BYTES,
  isFrameStart: true,
  then: (bytes) => {
    const magic = bytes.readUInt32LE();
    if (magic === ZSTD_MAGIC) return { look: 1, then: (descriptor) => frameHeader(descriptor.readUInt8()) };
    if (!isSkippable(magic)) throw broken('something that is no zstd frame follows a frame');
    return { look: 4, then: (size) => ({ pass: size.readUInt32LE(), then: frameStart, isFrameEnd: true }) };
  },
});

const frameHeader = (descriptor: number): Expected => {
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const hasChecksum = (descriptor & 0x04) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 0x03] ?? 0;
  const contentSizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const bytes = (isSingleSegment ? 0 : 1) + dictionaryBytes + contentSizeBytes;
  return { pass: bytes, then: () => blockHeader(hasChecksum), isFrameEnd: false };
};

const blockHeader = (hasChecksum: boolean): Expected => ({
  look: 3,
  then: (bytes) => {
    const header = bytes.readUIntLE(0, 3);
    const isLast = (header & 1) !== 0;
    const isRunLength = ((header >> 1) & 3) === 1;
    const size = isRunLength ? 1 : header >> 3;
    if (!isLast) return { pass: size, then: () => blockHeader(hasChecksum), isFrameEnd: false };
    return { pass: size + (hasChecksum ? 4 : 0), then: frameStart, isFrameEnd: true };
  },
});

/**
 * Cuts a zstd stream between its frames. Node's decoder takes a new frame only at the start of a chunk and drops what
 * follows a frame within one, and layers of many frames are common (zstd:chunked, parallel compressors).
 */
async function* cutZstdFrames(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let expected = frameStart();
  let looked: Buffer = Buffer.alloc(0);
  let left = 0;
  for await (const chunk of chunks) {
    let cut = 0;
    for (let offset = 0; offset < chunk.length; ) {
      if ('look' in expected) {
        const taken = chunk.subarray(offset, offset + expected.look - looked.length);
        looked = Buffer.concat([looked, taken]);
        offset += taken.length;
        if (looked.length < expected.look) continue;
        expected = expected.then(looked);
        looked = Buffer.alloc(0);
        left = 'pass' in expected ? expected.pass : 0;
      } else {
        const taken = Math.min(left, chunk.length - offset);
        offset += taken;
        left -= taken;
      }
      while ('pass' in expected && left === 0) {
        if (expected.isFrameEnd) {
          yield chunk.subarray(cut, offset);
          cut = offset;
        }
        expected = expected.then();
        left = 'pass' in expected ? expected.pass : 0;
      }
    }
    if (cut < chunk.length) yield chunk.subarray(cut);
  }
  if (!('look' in expected && expected.isFrameStart === true && looked.length === 0)) throw broken('it is cut off');
}

async function* zstdOf(read: ReadPacked): AsyncGenerator<Buffer> {
  const frames = Readable.from(cutZstdFrames(chunksOf(read)));
  const params = { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX };
  const decoder = createZstdDecompress({ chunkSize: CHUNK_BYTES, params });
  frames.on('error', (error) => decoder.destroy(error));
  try {
    yield* frames.pipe(decoder) as AsyncIterable<Buffer>;
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ZSTD_error_memory_allocation') throw tooLittleMemory();
    if (code?.startsWith('Z_') || code?.startsWith('ZSTD_') || code === 'ERR_STREAM_PREMATURE_CLOSE') {
      throw broken((error as Error).message);
    }
    throw error;
  }
}

/** One piece ahead, into two buffers in turn: a piece is valid until the next but one is asked for. */
const readAhead = (read: ReadPacked): (() => Promise<Buffer>) => {
  let [buffer, other] = [Buffer.allocUnsafeSlow(CHUNK_BYTES), Buffer.allocUnsafeSlow(CHUNK_BYTES)] as const;
  let reading: Promise<number> | null = null;
  return async () => {
    const bytes = await (reading ?? read(buffer));
    const piece = buffer.subarray(0, bytes);
    [buffer, other] = [other, buffer];
    reading = bytes === 0 ? Promise.resolve(0) : read(buffer);
    // It is waited for when the next piece is asked for, if it is.
    reading.catch(() => undefined);
    return piece;
  };
};

/**
 * Every member of a gzip file, into two buffers in turn: one is filled while the other is out. As gzip(1) does, it leaves what follows
 * a member after a zero byte.
 */
async function* gunzip(read: ReadPacked, createInflater: () => Inflater): AsyncGenerator<Buffer> {
  const inflater = createInflater();
  const nextInput = readAhead(read);
  let place: 'inside' | 'betweenMembers' | 'end' = 'inside';
  let inflating: Promise<unknown> | null = null;
  let isLeft = false;

  /** Resolves with how many bytes of the buffer were filled: less than all of it at the end alone. */
  const fill = async (output: Buffer): Promise<number> => {
    let filled = 0;
    while (filled < output.length && place !== 'end') {
      if (inflater.leftBytes() === 0) inflater.give(await nextInput());
      if (isLeft) break;
      if (place === 'betweenMembers') {
        place = inflater.leftBytes() === 0 || inflater.peek() === 0 ? 'end' : 'inside';
        if (place === 'end') break;
        inflater.nextMember();
      }
      const running = inflater.inflate(output.subarray(filled));
      inflating = running;
      const { writtenBytes, state } = await running;
      filled += writtenBytes;
      if (state === 'damaged') throw broken('it is no gzip data, or was damaged');
      if (state === 'starved') throw broken('it is cut off');
      if (state === 'memberEnd') place = 'betweenMembers';
    }
    return filled;
  };

  let [output, other] = [Buffer.allocUnsafeSlow(INFLATED_BYTES), Buffer.allocUnsafeSlow(INFLATED_BYTES)] as const;
  let filling = fill(output);
  try {
    for (let filled = await filling; filled > 0; filled = await filling) {
      const out = output.subarray(0, filled);
      [output, other] = [other, output];
      filling = fill(output);
      // It is waited for in the next turn, if there is one.
      filling.catch(() => undefined);
      yield out;
    }
  } finally {
    isLeft = true;
    await (inflating as Promise<unknown> | null)?.catch(() => undefined);
    inflater.end();
  }
}

/** In buffers of their own. */
async function* chunksOf(read: ReadPacked): AsyncGenerator<Buffer> {
  for (;;) {
    const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
    const bytes = await read(chunk);
    if (bytes === 0) return;
    yield chunk.subarray(0, bytes);
  }
}

/** The first bytes, and a way to have the whole again. */
const peek = async (read: ReadPacked): Promise<{ readonly head: Buffer; readonly whole: ReadPacked }> => {
  const first = Buffer.alloc(MAGIC_BYTES);
  let length = 0;
  for (let bytes = -1; bytes !== 0 && length < MAGIC_BYTES; length += bytes) bytes = await read(first.subarray(length));
  const head = first.subarray(0, length);
  let isGiven = false;
  const whole: ReadPacked = async (into) => {
    if (isGiven || length === 0) return await read(into);
    isGiven = true;
    return head.copy(into);
  };
  return { head, whole };
};

const readAt = promisify(read);

/**
 * The plain bytes of the open file `fd`, from where it stands; each piece is valid until the next is asked for. `onInput` is told of
 * compressed bytes as they are read. Leaves the descriptor open.
 */
export const readPlain = (
  fd: number,
  createInflater: () => Inflater,
  onInput: (bytes: number) => void,
): Promise<AsyncIterable<Buffer>> =>
  plainOf(async (into) => (await readAt(fd, into, 0, into.length, null)).bytesRead, createInflater, onInput);

/** As readPlain, of bytes that come from wherever. */
export const plainOf = async (
  read: ReadPacked,
  createInflater: () => Inflater,
  onInput: (bytes: number) => void,
): Promise<AsyncIterable<Buffer>> => {
  const { head, whole } = await peek(async (into) => {
    const bytes = await read(into);
    if (bytes > 0) onInput(bytes);
    return bytes;
  });
  if (head.length >= 2 && head.readUInt16LE() === GZIP_MAGIC) return gunzip(whole, createInflater);
  const magic = head.length >= MAGIC_BYTES ? head.readUInt32LE() : 0;
  return magic === ZSTD_MAGIC || isSkippable(magic) ? zstdOf(whole) : chunksOf(whole);
};
