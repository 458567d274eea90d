/** The thread of file-digest.ts: reads, hashes, copies where that is asked for, says the digest and ends. */
import { createHash } from 'node:crypto';
import { readSync, writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import type { DigestWork } from './file-digest.ts';

const PIECE_BYTES = 1024 * 1024;

const { from, sizeBytes, to } = workerData as DigestWork;
const hash = createHash('sha256');
const buffer = Buffer.allocUnsafe(PIECE_BYTES);
for (let done = 0; done < sizeBytes; ) {
  const read = readSync(from, buffer, 0, Math.min(PIECE_BYTES, sizeBytes - done), done);
  if (read === 0) break;
  const piece = buffer.subarray(0, read);
  hash.update(piece);
  for (let written = 0; to !== null && written < read; )
    written += writeSync(to, piece, written, read - written, done + written);
  done += read;
}
parentPort?.postMessage(`sha256:${hash.digest('hex')}`);
