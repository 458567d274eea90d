/**
 * gunzip by the zlib that Node brings along and exports for add-ons, called directly, on libuv's pool.
 */
import { address } from 'koffi';
import { native } from '../native.ts';
import type { Inflater } from './inflater.ts';

const nativeInit = native<[Uint8Array, number, string, number]>(
  'int inflateInit2_(void *stream, int windowBits, const char *version, int streamBytes)',
);
const nativeInflate = native<[Uint8Array, number]>('int inflate(void *stream, int flush)');
const nativeReset = native<[Uint8Array]>('int inflateReset(void *stream)');
const nativeEnd = native<[Uint8Array]>('int inflateEnd(void *stream)');

/** z_stream (zlib.h) where pointers and longs have 64 bits. It says where it is in its own state: it stays where it is. */
const STREAM_BYTES = 112;
const NEXT_IN = 0;
const AVAILABLE_IN = 8;
const NEXT_OUT = 24;
const AVAILABLE_OUT = 32;

/** The largest window, and gzip's header and trailer around what is deflated. */
const GZIP_WINDOW_BITS = 15 + 16;
/** Only the first digit is compared. */
const ZLIB_VERSION = process.versions.zlib;
const Z_NO_FLUSH = 0;
const Z_OK = 0;
const Z_STREAM_END = 1;
const Z_BUF_ERROR = -5;

export const createZlibInflater = (): Inflater => {
  // Not of a pool that others write to; memory of buffers does not move.
  const stream = Buffer.from(new ArrayBuffer(STREAM_BYTES));
  let given: Buffer = Buffer.alloc(0);
  const started = nativeInit(stream, GZIP_WINDOW_BITS, ZLIB_VERSION, STREAM_BYTES);
  if (started !== Z_OK) throw new Error(`inflateInit2 answered ${started}`);
  const leftBytes = (): number => stream.readUInt32LE(AVAILABLE_IN);

  const call = (): Promise<number> =>
    new Promise((resolve, reject) => {
      nativeInflate.async(stream, Z_NO_FLUSH, (failure: Error | null, result: number) => {
        if (failure) reject(failure);
        else resolve(result);
      });
    });

  return {
    leftBytes,
    give: (input) => {
      given = input;
      stream.writeBigUInt64LE(address(input), NEXT_IN);
      stream.writeUInt32LE(input.length, AVAILABLE_IN);
    },
    peek: () => given[given.length - leftBytes()],
    inflate: async (output) => {
      stream.writeBigUInt64LE(address(output), NEXT_OUT);
      stream.writeUInt32LE(output.length, AVAILABLE_OUT);
      const result = await call();
      const writtenBytes = output.length - stream.readUInt32LE(AVAILABLE_OUT);
      if (result === Z_STREAM_END) return { writtenBytes, state: 'memberEnd' };
      if (result === Z_BUF_ERROR) return { writtenBytes, state: 'starved' };
      return { writtenBytes, state: result === Z_OK ? 'inside' : 'damaged' };
    },
    nextMember: () => void nativeReset(stream),
    end: () => void nativeEnd(stream),
  };
};
