/**
 * The process that unpacks one archive (C17). It opens the archive, locks itself into the directory it is given, and only then
 * looks at a byte of it. Decompressing runs in libuv's pool beside the thread that hashes and writes. Its exit code
 * says nothing beyond its reports; if it dies without one, the layer is broken off.
 */
import { createHash } from 'node:crypto';
import { constants, fstatSync, openSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { FailureError, messageOf } from '../../../domain/errors.ts';
import { enterJail } from '../../linux/jail.ts';
import { errorCodeOf } from '../../linux/syscalls.ts';
import { readPlain } from '../compression.ts';
import { createTarReader } from '../tar/reader.ts';
import { createSparseHandler } from '../tar/sparse.ts';
import { createExtractor } from './extract.ts';
import { type ArchiveForm, IMPLIED_BYTES_MAX, type UnpackReport, type UnpackRequest, wordsOfForm } from './protocol.ts';

const PROGRESS_BYTES = 1024 * 1024;

const lineOf = (message: UnpackReport): Buffer => Buffer.from(`${JSON.stringify(message)}\n`);

/** The stream waits where the pipe does not: it may be a non-blocking one. What is written goes out before the end. */
const report = (message: UnpackReport): void => {
  process.stdout.write(lineOf(message));
};

/** Errors of the kernel that a hostile archive brings about at will. */
const faultsOfArchive = new Set([
  'ENAMETOOLONG',
  'ELOOP',
  'EMLINK',
  'EFBIG',
  'ENOTDIR',
  'EISDIR',
  'EINVAL',
  'ERANGE',
  'E2BIG',
]);

const asFailure = (error: unknown, form: ArchiveForm): FailureError => {
  const { what, again } = wordsOfForm[form];
  if (error instanceof FailureError) return error;
  const code = errorCodeOf(error);
  const message = messageOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new FailureError('DiskFull', `The disk became full while it was unpacked: make room and ${again}.`);
  }
  const reason = code !== undefined && faultsOfArchive.has(code) ? 'ImageInvalid' : 'HostFailed';
  return new FailureError(reason, `${what} could not be unpacked: ${message}.`);
};

/** Blobs of layers are the store's own. Where a checkpoint should lie, others may have put a link or a FIFO. */
const openArchive = (path: string, form: ArchiveForm): number => {
  if (form === 'layer') return openSync(path, 'r');
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const archive = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fstatSync(archive).isFile()) return archive;
  } catch (error) {
    throw new FailureError('ImageInvalid', `It can not be opened: ${messageOf(error)}.`, { cause: error });
  }
  throw new FailureError('ImageInvalid', 'It is not a regular file.');
};

const unpack = async (request: UnpackRequest): Promise<void> => {
  const { what } = wordsOfForm[request.form];
  const blob = openArchive(request.blobPath, request.form);
  process.umask(0);
  // What the compile cache still has to write must be written before its directory is out of reach.
  flushCompileCache();
  enterJail(request.directory, { memoryBytesMax: request.memoryBytesMax, fileBytesMax: request.bytesMax });

  const hash = createHash('sha256');
  const extractor = createExtractor(request);
  const mayBeSparse = request.form === 'changes';
  const reader = createTarReader(createSparseHandler(extractor.handler), { mayBeSparse });
  let bytesDone = 0;
  let bytesReported = 0;
  let plainBytes = 0;
  const plain = await readPlain(blob, (bytes) => {
    bytesDone += bytes;
    if (bytesDone - bytesReported < PROGRESS_BYTES) return;
    bytesReported = bytesDone;
    report({ kind: 'progress', bytesDone });
  });
  for await (const chunk of plain) {
    plainBytes += chunk.length;
    // Padding and headers are not counted as content, and are no more than that many blocks.
    if (plainBytes > request.bytesMax + request.entriesMax * 4096) {
      throw new FailureError('ImageInvalid', `${what} unpacks to more than ${request.bytesMax} bytes.`);
    }
    hash.update(chunk);
    reader.push(chunk);
  }
  reader.end();
  const { implied, usedBytes, inodesUsed } = extractor.finish();
  const diffId = `sha256:${hash.digest('hex')}`;
  if (request.diffId !== null && diffId !== request.diffId) {
    throw new FailureError(
      'ImageInvalid',
      `A layer unpacks to ${diffId}, but the image's config names ${request.diffId}.`,
    );
  }
  const impliedReports: readonly UnpackReport[] = implied.map((path) => ({ kind: 'implied', path }));
  if (impliedReports.reduce((bytes, message) => bytes + lineOf(message).length, 0) > IMPLIED_BYTES_MAX) {
    throw new FailureError('ImageInvalid', `${what} has too many directories that it does not describe.`);
  }
  for (const message of impliedReports) report(message);
  report({ kind: 'done', usedBytes, inodesUsed });
};

const asked = JSON.parse(process.argv[2] ?? '') as UnpackRequest;
try {
  await unpack(asked);
} catch (error) {
  const { reason, message } = asFailure(error, asked.form).failure;
  report({ kind: 'failed', reason, message });
  process.exitCode = 1;
}
