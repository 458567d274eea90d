/**
 * gunzip by Intel's ISA-L (libisal2 in Debian), called directly, on libuv's pool: of programs it takes three quarters of the
 * time of Node's zlib. It has no function that tells how its state lies in memory. So what is known of its version 2 is tried on a
 * few bytes before it is used, and a library that fails at them is taken for none.
 */
import { type LibraryHandle, load } from 'koffi';
import { callInPool, functionsOf } from '../native.ts';
import type { Inflated, Inflater } from './inflater.ts';
import { createStreamMemory, type StreamPlaces } from './stream-memory.ts';

export const ISAL_LIBRARY = 'libisal.so.2';

/** struct inflate_state (isa-l/igzip_lib.h) where pointers have 64 bits; it is 87,368 bytes in 2.30. */
const STATE_BYTES = 128 * 1024;
const PLACES: StreamPlaces = { nextIn: 16, availableIn: 32, nextOut: 0, availableOut: 8 };
const BLOCK_STATE = 21_160;
const CHECKSUM_KIND = 21_172;
const ISAL_BLOCK_FINISH = 5;
/** What is deflated is followed by gzip's checksum and length, which are compared. */
const ISAL_GZIP_NO_HDR_VER = 6;
const ISAL_DECOMP_OK = 0;
const ISAL_END_INPUT = 1;

/** struct isal_gzip_header: where nothing is wanted of a header it is zeros, and 72 bytes in 2.30. */
const HEADER_BYTES = 256;

const functionsIn = (library: LibraryHandle) => {
  const isal = functionsOf(library);
  return {
    init: isal<[Uint8Array]>('void isal_inflate_init(void *state)'),
    reset: isal<[Uint8Array]>('void isal_inflate_reset(void *state)'),
    readHeader: isal<[Uint8Array, Uint8Array]>('int isal_read_gzip_header(void *state, void *header)'),
    inflate: isal<[Uint8Array]>('int isal_inflate(void *state)'),
  };
};

type Isal = ReturnType<typeof functionsIn>;

interface IsalInflater extends Inflater {
  /** As inflate, on the calling thread. */
  readonly inflateHere: (output: Buffer) => Inflated;
}

const inflaterOf = (isal: Isal): IsalInflater => {
  const { memory, leftBytes, give, peek, offer, writtenBytes } = createStreamMemory(STATE_BYTES, PLACES);
  const header = Buffer.from(new ArrayBuffer(HEADER_BYTES));
  let isHeaderRead = false;
  let leftBefore = 0;

  /** Reads the header, which may come in pieces; what it says is dropped. Null: bytes can be inflated into the output. */
  const begin = (output: Buffer): Inflated | null => {
    leftBefore = leftBytes();
    if (!isHeaderRead) {
      if (leftBefore === 0) return { writtenBytes: 0, state: 'starved' };
      const result = isal.readHeader(memory, header);
      if (result === ISAL_END_INPUT) return { writtenBytes: 0, state: 'inside' };
      if (result !== ISAL_DECOMP_OK) return { writtenBytes: 0, state: 'damaged' };
      memory.writeUInt32LE(ISAL_GZIP_NO_HDR_VER, CHECKSUM_KIND);
      isHeaderRead = true;
    }
    offer(output);
    return null;
  };

  const outcome = (output: Buffer, result: number): Inflated => {
    const written = { writtenBytes: writtenBytes(output) };
    if (result !== ISAL_DECOMP_OK) return { ...written, state: 'damaged' };
    if (memory.readUInt32LE(BLOCK_STATE) === ISAL_BLOCK_FINISH) return { ...written, state: 'memberEnd' };
    const isStuck = written.writtenBytes === 0 && leftBytes() === leftBefore;
    return { ...written, state: isStuck ? 'starved' : 'inside' };
  };

  isal.init(memory);
  return {
    leftBytes,
    give,
    peek,
    inflate: async (output) => begin(output) ?? outcome(output, await callInPool(isal.inflate, [memory])),
    inflateHere: (output) => begin(output) ?? outcome(output, isal.inflate(memory)),
    nextMember: () => {
      isal.reset(memory);
      header.fill(0);
      isHeaderRead = false;
    },
    end: () => undefined,
  };
};

const KNOWN = 'scribe';
const KNOWN_PACKED = Buffer.from('H4sIAAAAAAACAytOLspMSgUAG9fFDgYAAAA=', 'base64');
const CHECKSUM_AT = KNOWN_PACKED.length - 8;

/** Whether what is known of its memory holds: it inflates what is known, twice, and finds out another checksum. */
const isAsKnown = (isal: Isal): boolean => {
  const damaged = Buffer.from(KNOWN_PACKED);
  damaged.writeUInt32LE(~damaged.readUInt32LE(CHECKSUM_AT) >>> 0, CHECKSUM_AT);
  const inflater = inflaterOf(isal);
  return [KNOWN_PACKED, KNOWN_PACKED, damaged].every((packed) => {
    const output = Buffer.alloc(2 * KNOWN.length);
    inflater.give(packed);
    const { writtenBytes, state } = inflater.inflateHere(output);
    if (state === 'memberEnd') inflater.nextMember();
    const isInflated = output.toString('latin1', 0, writtenBytes) === KNOWN && inflater.leftBytes() === 0;
    return isInflated && state === (packed === damaged ? 'damaged' : 'memberEnd');
  });
};

const loaded = (): Isal | null => {
  try {
    const isal = functionsIn(load(ISAL_LIBRARY));
    return isAsKnown(isal) ? isal : null;
  } catch {
    return null;
  }
};

const isal = loaded();

/** Null where ISA-L is not installed. */
export const createIsalInflater: (() => Inflater) | null = isal && (() => inflaterOf(isal));
