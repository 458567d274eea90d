/**
 * SPDY header blocks: names and values with their lengths, compressed with one zlib stream per direction and
 * connection. A client's blocks are inflated within bounds. The server always sends the empty block, in zlib's stored
 * form: no compressor has to be kept per connection, and every inflater reads it.
 */
import { constants, createInflate } from 'node:zlib';
import { headerDictionary } from './dictionary.ts';
import { SpdyProtocolError } from './frames.ts';

export type SpdyHeaders = ReadonlyMap<string, string>;

/** One block as inflated. */
const blockBytesMax = 65_536;
const headersMax = 64;

/** Reads an inflated block. Throws SpdyProtocolError. */
export const parseHeaders = (block: Buffer): SpdyHeaders => {
  let offset = 0;
  const number = (): number => {
    if (block.length < offset + 4) throw new SpdyProtocolError('a header block ends too early');
    offset += 4;
    return block.readUInt32BE(offset - 4);
  };
  const text = (): string => {
    const sizeBytes = number();
    if (block.length < offset + sizeBytes) throw new SpdyProtocolError('a header is longer than its block');
    offset += sizeBytes;
    return block.toString('utf8', offset - sizeBytes, offset);
  };
  const count = number();
  if (count > headersMax) throw new SpdyProtocolError(`${count} headers are above the limit of ${headersMax}`);
  const headers = new Map<string, string>();
  for (let i = 0; i < count; i += 1) {
    const name = text().toLowerCase();
    const [value = ''] = text().split('\0');
    headers.set(name, value);
  }
  return headers;
};

export interface HeaderInflater {
  /** Must be called with every block of the connection in turn, one at a time: each depends on those before it. */
  readonly inflate: (block: Buffer) => Promise<Buffer>;
  readonly close: () => void;
}

export const createHeaderInflater = (): HeaderInflater => {
  const zlib = createInflate({
    dictionary: headerDictionary,
    flush: constants.Z_SYNC_FLUSH,
    chunkSize: 4096,
  });
  let chunks: Buffer[] = [];
  let sizeBytes = 0;
  let refuse: (error: Error) => void = () => undefined;

  const fail = (message: string): void => {
    zlib.destroy();
    refuse(new SpdyProtocolError(message));
  };
  zlib.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    sizeBytes += chunk.length;
    if (sizeBytes > blockBytesMax) fail(`a header block is above the limit of ${blockBytesMax} bytes`);
  });
  zlib.on('error', (error) => {
    fail(`headers cannot be decompressed: ${error.message}`);
  });
  zlib.on('end', () => {
    fail('the compression of headers has ended');
  });

  return {
    inflate: (block) =>
      new Promise((resolve, reject) => {
        refuse = reject;
        if (zlib.destroyed || block.length === 0) {
          fail('a frame has no headers');
          return;
        }
        chunks = [];
        sizeBytes = 0;
        zlib.write(block, (error) => {
          // 'error' tells why.
          if (error) return;
          // What has been inflated but not emitted yet goes to 'data' now.
          while (zlib.read() !== null);
          resolve(Buffer.concat(chunks));
        });
      }),
    close: () => {
      fail('the connection has closed');
    },
  };
};

/** zlib's own header: deflate, no dictionary. Goes before the first block of a connection. */
const zlibHeader = Buffer.from('7801', 'hex');
/** A stored piece with the count 0, then the empty one by which inflaters know to hand out what they have. */
const storedEmptyBlock = Buffer.from('000400fbff' + '00000000' + '000000ffff', 'hex');

/** Makes the blocks of one connection: each is the empty set of headers. */
export const createEmptyBlocks = (): (() => Buffer) => {
  let isFirst = true;
  return () => {
    const block = isFirst ? Buffer.concat([zlibHeader, storedEmptyBlock]) : storedEmptyBlock;
    isFirst = false;
    return block;
  };
};
