/**
 * gunzip by the zlib that Node brings along and exports for add-ons, called directly, on libuv's pool.
 */
import { callInPool, native } from '../native.ts';
import type { Inflater } from './inflater.ts';
import { createStreamMemory, type StreamPlaces } from './stream-memory.ts';

const nativeInit = native<[Uint8Array, number, string, number]>(
  'int inflateInit2_(void *stream, int windowBits, const char *version, int streamBytes)',
);
const nativeInflate = native<[Uint8Array, number]>('int inflate(void *stream, int flush)');
const nativeReset = native<[Uint8Array]>('int inflateReset(void *stream)');
const nativeEnd = native<[Uint8Array]>('int inflateEnd(void *stream)');

/** z_stream (zlib.h) where pointers and longs have 64 bits. It says where it is in its own state: it stays where it is. */
const STREAM_BYTES = 112;
const PLACES: StreamPlaces = { nextIn: 0, availableIn: 8, nextOut: 24, availableOut: 32 };

/** The largest window, and gzip's header and trailer around what is deflated. */
const GZIP_WINDOW_BITS = 15 + 16;
/** Only the first digit is compared. */
const ZLIB_VERSION = process.versions.zlib;
const Z_NO_FLUSH = 0;
const Z_OK = 0;
const Z_STREAM_END = 1;
const Z_BUF_ERROR = -5;

export const createZlibInflater = (): Inflater => {
  const { memory, leftBytes, give, peek, offer, writtenBytes } = createStreamMemory(STREAM_BYTES, PLACES);
  const started = nativeInit(memory, GZIP_WINDOW_BITS, ZLIB_VERSION, STREAM_BYTES);
  if (started !== Z_OK) throw new Error(`inflateInit2 answered ${started}`);
  return {
    leftBytes,
    give,
    peek,
    inflate: async (output) => {
      offer(output);
      const result = await callInPool(nativeInflate, [memory, Z_NO_FLUSH]);
      const written = { writtenBytes: writtenBytes(output) };
      if (result === Z_STREAM_END) return { ...written, state: 'memberEnd' };
      if (result === Z_BUF_ERROR) return { ...written, state: 'starved' };
      return { ...written, state: result === Z_OK ? 'inside' : 'damaged' };
    },
    nextMember: () => void nativeReset(memory),
    end: () => void nativeEnd(memory),
  };
};
