/**
 * Reads a file that may be gzip, zstd or neither, and gives its plain bytes. The first bytes say which it is: media
 * types are what somebody claims. Everything is streamed; what is broken or cut off throws FailureError ImageInvalid.
 */
import { createReadStream } from 'node:fs';
import { Readable, type Transform } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { FailureError } from '../../domain/model/errors.ts';

const CHUNK_BYTES = 1024 * 1024;
const GZIP_MAGIC = 0x8b1f;
const ZSTD_MAGIC = 0xfd2fb528;
const ZSTD_SKIPPABLE_MAGIC = 0x184d2a50;
const ZSTD_SKIPPABLE_MASK = 0xfffffff0;
const MAGIC_BYTES = 4;

const broken = (what: string): FailureError =>
  new FailureError('ImageInvalid', `The compressed data is malformed: ${what}.`);

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

const through = (source: Readable, decoder: Transform): AsyncIterable<Buffer> => {
  source.on('error', (error) => decoder.destroy(error));
  return source.pipe(decoder) as AsyncIterable<Buffer>;
};

/** The first bytes, and a way to have the whole again. */
const peek = async (source: AsyncIterable<Buffer>): Promise<{ head: Buffer; whole: () => AsyncGenerator<Buffer> }> => {
  const iterator = source[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  let next = await iterator.next();
  while (next.done !== true && head.length < MAGIC_BYTES) {
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value]);
    next = await iterator.next();
  }
  async function* whole(): AsyncGenerator<Buffer> {
    if (head.length > 0) yield head;
    while (next.done !== true) {
      yield next.value;
      next = await iterator.next();
    }
  }
  return { head, whole };
};

async function* failingAsImage(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
    if (code?.startsWith('Z_') || code?.startsWith('ZSTD_') || code === 'ERR_STREAM_PREMATURE_CLOSE') {
      throw broken((error as Error).message);
    }
    throw error;
  }
}

/**
 * The plain bytes of the open file `fd`, from where it stands. `onInput` is told of compressed bytes as they are read.
 * Leaves the descriptor open.
 */
export const readPlain = (fd: number, onInput: (bytes: number) => void): Promise<AsyncIterable<Buffer>> =>
  plainOf(createReadStream('', { fd, autoClose: false, highWaterMark: CHUNK_BYTES }), onInput);

/** As readPlain, of bytes that come from wherever. */
export const plainOf = async (
  packed: AsyncIterable<Buffer>,
  onInput: (bytes: number) => void,
): Promise<AsyncIterable<Buffer>> => {
  async function* counted(): AsyncGenerator<Buffer> {
    for await (const chunk of packed) {
      onInput(chunk.length);
      yield chunk;
    }
  }
  const { head, whole } = await peek(counted());
  if (head.length >= 2 && head.readUInt16LE() === GZIP_MAGIC) {
    return failingAsImage(through(Readable.from(whole()), createGunzip({ chunkSize: CHUNK_BYTES })));
  }
  const magic = head.length >= MAGIC_BYTES ? head.readUInt32LE() : 0;
  if (magic === ZSTD_MAGIC || isSkippable(magic)) {
    const frames = Readable.from(cutZstdFrames(whole()));
    return failingAsImage(through(frames, createZstdDecompress({ chunkSize: CHUNK_BYTES })));
  }
  return whole();
};
