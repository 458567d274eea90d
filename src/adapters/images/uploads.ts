/**
 * Archives of images on their way in: the stream of each, kept until the effect that loads it names it, and made a file
 * for the thread that reads archives. Must not look into them.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { keepFreeSpace } from '../../platform/linux/free-space.ts';
import { WRITING_SUFFIX } from './layout.ts';

const DIRECTORY_MODE = 0o700;
const SPACE_CHECK_BYTES = 16 * 1024 * 1024;

export interface Uploads {
  /** Keeps a stream for the LoadImages effect that will name it. It is destroyed if `forget` comes first. */
  readonly accept: (upload: string, stream: Readable) => void;
  readonly forget: (upload: string) => void;
  /** Resolves with the path of a file that holds all of it. Throws FailureError, or the signal's reason. */
  readonly receive: (upload: string, signal: AbortSignal) => Promise<string>;
}

/** @param reservedBytes  as much of the file system must stay free */
export const createUploads = (directory: string, reservedBytes: number): Uploads => {
  const uploads = new Map<string, Readable>();

  async function* withinSpace(stream: Readable): AsyncGenerator<Buffer> {
    const keep = keepFreeSpace({
      directory,
      reservedBytes,
      everyBytes: SPACE_CHECK_BYTES,
      message: 'The disk is too full for the image archive: make room and load it again.',
    });
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      await keep(chunk.length);
      yield chunk;
    }
  }

  return {
    accept: (upload, stream) => {
      uploads.set(upload, stream);
    },
    forget: (upload) => {
      uploads.get(upload)?.destroy();
      uploads.delete(upload);
    },
    receive: async (upload, signal) => {
      const stream = uploads.get(upload);
      uploads.delete(upload);
      if (stream === undefined)
        throw new FailureError('Interrupted', 'The image archive is not being sent any more: load it again.');
      await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
      const path = join(directory, `${randomUUID()}${WRITING_SUFFIX}`);
      try {
        await pipeline(stream, withinSpace, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal });
        return path;
      } catch (error) {
        await rm(path, { force: true });
        signal.throwIfAborted();
        if (error instanceof FailureError) throw error;
        const message = messageOf(error);
        throw new FailureError('Interrupted', `The image archive did not arrive whole: ${message}.`);
      }
    },
  };
};
