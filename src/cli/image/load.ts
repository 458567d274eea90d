/** `scribe image load`: streams an archive to the daemon, which is the only one that writes images. */
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { ImagesDefinition, type LoadRequest } from '../../wire/scribe/v1/images.ts';
import { connectDaemon } from '../client.ts';
import { command, failure } from '../command.ts';
import type { Io } from '../io.ts';
import { configOption, socketOf, socketOption } from '../places.ts';
import { createTransfer, showTransfer, type Transfer } from './transfer.ts';

const STDIN = '-';
const CHUNK_BYTES = 256 * 1024;

interface Source {
  readonly stream: Readable;
  /** 0 when nobody knows. */
  readonly sizeBytes: number;
}

const openArchive = async (path: string): Promise<Source> => {
  let file: FileHandle;
  try {
    file = await open(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw failure(`There is no archive at ${path}.`, error);
    throw failure(`The archive ${path} can't be opened: ${message}.`, error);
  }
  const stat = await file.stat();
  if (stat.isDirectory()) {
    await file.close();
    throw failure(`${path} is a directory; pack it first: tar -C ${path} -cf image.tar .`);
  }
  return { stream: file.createReadStream({ highWaterMark: CHUNK_BYTES }), sizeBytes: stat.isFile() ? stat.size : 0 };
};

async function* chunksOf({ stream, sizeBytes }: Source, name: string, transfer: Transfer): AsyncGenerator<LoadRequest> {
  let sentBytes = 0;
  for await (const data of stream) {
    const chunk = Buffer.from(data as Uint8Array | string);
    // A client may hand over more at once than a message may hold.
    for (let from = 0; from < chunk.length; from += CHUNK_BYTES) {
      const part = chunk.subarray(from, from + CHUNK_BYTES);
      yield { chunk: part };
      sentBytes += part.length;
      transfer.note(name, 'sending', sentBytes, sizeBytes);
    }
  }
  transfer.note(name, 'done', sentBytes, sentBytes);
}

const sourceOf = async (path: string, io: Io): Promise<Source> =>
  path === STDIN ? { stream: io.stdin, sizeBytes: 0 } : openArchive(path);

export const imageLoad = command({
  name: 'image load',
  summary: 'load the images of an archive',
  description: [
    'Sends an archive to the daemon, which loads every image in it, and prints their ids. The archive is an OCI image layout or what docker save writes (tar; it may be compressed with gzip or zstd).',
    'With - as FILE it is read from standard input.',
  ],
  options: { socket: socketOption, config: configOption },
  operands: { name: 'FILE', count: 1 },
  examples: [
    ['scribe image load busybox.tar', 'Loads a file.'],
    ['docker save app:1 | scribe image load -', 'Loads an image that docker has.'],
  ],
  run: async (values, [path = ''], io) => {
    const source = await sourceOf(path, io);
    try {
      const daemon = await connectDaemon(await socketOf(values));
      try {
        const transfer = createTransfer(io);
        const name = path === STDIN ? 'standard input' : path;
        const chunks = chunksOf(source, name, transfer);
        await showTransfer(transfer, daemon.duplex(ImagesDefinition, ImagesDefinition.methods.load, chunks), io);
      } finally {
        daemon.close();
      }
    } finally {
      source.stream.destroy();
    }
    return 0;
  },
});
