/**
 * The process that unpacks archives, one after the other (C17). It loads, reads from its input what to unpack, waits to have the
 * directory that it is given as its root, opens the archive, gives up what it no longer needs, and only then looks at a byte.
 * Layers are in its root, where it can't change them; another archive it opens before. Decompressing runs in libuv's pool
 * beside the thread that hashes and writes. Whoever started it ends it; if it dies without a report, the archive is broken off.
 */
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync, writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { FailureError, isFullDisk, messageOf } from '../../../domain/model/errors.ts';
import { createFastestInflater } from '../../../platform/linux/inflate/fastest.ts';
import { enterJail } from '../../../platform/linux/jail.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { followArrivals, readArriving } from '../arrivals.ts';
import { plainOf, readPlain } from '../compression.ts';
import { createTarReader } from '../tar/reader.ts';
import { createSparseHandler } from '../tar/sparse.ts';
import { createExtractor } from './extract.ts';
import {
  type ArchiveForm,
  DIRECTORIES_BYTES_MAX,
  type UnpackReport,
  type UnpackRequest,
  wordsOfForm,
} from './protocol.ts';

const PROGRESS_BYTES = 1024 * 1024;

const lineOf = (message: UnpackReport): Buffer => Buffer.from(`${JSON.stringify(message)}\n`);

const REQUEST_BYTES_MAX = 64 * 1024;
const NEWLINE = 0x0a;
const STDIN = 0;
const STDOUT = 1;

/** The pipe waits for its reader. A stream would have to be watched for that, which is forbidden by then. */
const report = (message: UnpackReport): void => {
  const line = lineOf(message);
  for (let written = 0; written < line.length; ) written += writeSync(STDOUT, line, written);
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

/** Paths of four thousand characters say no more than their beginnings. */
const MESSAGE_CHARS_MAX = 400;
const bounded = (message: string): string =>
  message.length > MESSAGE_CHARS_MAX ? `${message.slice(0, MESSAGE_CHARS_MAX)}...` : message;

const asFailure = (error: unknown, form: ArchiveForm): FailureError => {
  const { what, again } = wordsOfForm[form];
  if (error instanceof FailureError) return error;
  const code = errorCodeOf(error);
  const message = messageOf(error);
  if (isFullDisk(error)) {
    return new FailureError('DiskFull', `The disk became full while it was unpacked: make room and ${again}.`);
  }
  const reason = code !== undefined && faultsOfArchive.has(code) ? 'ImageInvalid' : 'HostFailed';
  return new FailureError(reason, `${what} could not be unpacked: ${bounded(message)}.`);
};

/** Blobs of layers are the store's own. Where a checkpoint should lie, others may have put a link or a FIFO. */
const openArchive = (path: string, form: ArchiveForm): number => {
  if (form === 'layer') return openSync(path, 'r');
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  try {
    const archive = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fstatSync(archive).isFile()) return archive;
  } catch (error) {
    throw new FailureError('ImageInvalid', `It cannot be opened: ${messageOf(error)}.`, { cause: error });
  }
  throw new FailureError('ImageInvalid', 'It is not a regular file.');
};

/** An open archive, and what makes its bytes plain. */
interface Opened {
  readonly fd: number;
  readonly plain: (onInput: (bytes: number) => void) => Promise<AsyncIterable<Buffer>>;
}

const open = ({ archivePath, form, arriving }: UnpackRequest): Opened => {
  const fd = openArchive(archivePath, form);
  if (arriving === undefined) return { fd, plain: (onInput) => readPlain(fd, createFastestInflater, onInput) };
  const follower = followArrivals(arriving.arrivalsPath);
  return {
    fd,
    plain: (onInput) => plainOf(readArriving(fd, arriving.sizeBytes, follower), createFastestInflater, onInput),
  };
};

const isSame = (one: Stats, other: Stats): boolean => one.dev === other.dev && one.ino === other.ino;

/** The spawner makes the directory this process's root at its first word, and then says an empty line. */
const waitForRoot = (directory: string): void => {
  const own = statSync(directory);
  report({ kind: 'loaded' });
  readSync(STDIN, Buffer.alloc(1));
  if (!isSame(own, statSync('/'))) throw new FailureError('HostFailed', `It could not be locked into ${directory}.`);
};

/** Opens the first archive between the one and the other, for a download can't be followed once calls are filtered. */
const lockUpAndOpen = (request: UnpackRequest): Opened => {
  const { root, isOutside, memoryBytesMax, bytesMax } = request;
  const outside = isOutside ? open(request) : null;
  process.umask(0);
  waitForRoot(root);
  const opened = outside ?? open(request);
  enterJail({ memoryBytesMax, fileBytesMax: bytesMax });
  return opened;
};

const unpack = async (request: UnpackRequest, isFirst: boolean): Promise<void> => {
  const blob = isFirst ? lockUpAndOpen(request) : open(request);
  try {
    process.chdir(`/${request.within}`);
    await unpackOpened(request, blob);
  } finally {
    closeSync(blob.fd);
  }
};

const unpackOpened = async (request: UnpackRequest, blob: Opened): Promise<void> => {
  const { what } = wordsOfForm[request.form];
  const hash = createHash('sha256');
  const extractor = createExtractor(request);
  const mayBeSparse = request.form === 'layer' || request.form === 'changes';
  const reader = createTarReader(createSparseHandler(extractor.handler), { mayBeSparse });
  let bytesDone = 0;
  let bytesReported = 0;
  let plainBytes = 0;
  const plain = await blob.plain((bytes) => {
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
  const { implied, opaque, usedBytes, inodesUsed } = extractor.finish();
  const diffId = `sha256:${hash.digest('hex')}`;
  if (request.diffId !== null && diffId !== request.diffId) {
    throw new FailureError(
      'ImageInvalid',
      `A layer unpacks to ${diffId}, but the image's config names ${request.diffId}.`,
    );
  }
  const directories: readonly UnpackReport[] = [
    ...implied.map((path) => ({ kind: 'implied', path }) as const),
    ...opaque.map((path) => ({ kind: 'opaque', path }) as const),
  ];
  if (directories.reduce((bytes, message) => bytes + lineOf(message).length, 0) > DIRECTORIES_BYTES_MAX) {
    throw new FailureError('ImageInvalid', `${what} has too many directories that it does not describe, or replaces.`);
  }
  for (const message of directories) report(message);
  report({ kind: 'done', usedBytes, inodesUsed });
};

/** The line that is written to its input; null when there is nothing to unpack after all. */
const readRequest = (): UnpackRequest | null => {
  const bytes = Buffer.alloc(REQUEST_BYTES_MAX);
  let length = 0;
  while (length === 0 || bytes[length - 1] !== NEWLINE) {
    const read = readSync(STDIN, bytes, length, bytes.length - length, null);
    if (read === 0) return null;
    length += read;
  }
  return JSON.parse(bytes.toString('utf8', 0, length)) as UnpackRequest;
};

/** false: what it has read is not to be trusted any further. */
const answer = async (request: UnpackRequest, isFirst: boolean): Promise<boolean> => {
  try {
    await unpack(request, isFirst);
    return true;
  } catch (error) {
    const { reason, message } = asFailure(error, request.form).failure;
    report({ kind: 'failed', reason, message });
    process.exitCode = 1;
    return false;
  }
};

/** A gzip file of nothing. */
const NOTHING = Buffer.from('H4sIAAAAAAAAAwMAAAAAAAAAAAA=', 'base64');

/** Reads a file of nothing while there is time: what this compiles and loads, the first bytes of a layer need not wait for. */
const rehearse = async (): Promise<void> => {
  let at = 0;
  const read = (into: Buffer): Promise<number> => {
    const bytes = NOTHING.copy(into, 0, at);
    at += bytes;
    return Promise.resolve(bytes);
  };
  const reader = createTarReader({ entry: () => undefined, data: () => undefined, endEntry: () => undefined });
  const hash = createHash('sha256');
  for await (const chunk of await plainOf(read, createFastestInflater, () => undefined)) reader.push(chunk);
  reader.end();
  hash.digest();
};

await rehearse();
// What the compile cache still has to write must be written before its directory is out of reach.
flushCompileCache();
for (let [asked, isFirst] = [readRequest(), true]; asked !== null; [asked, isFirst] = [readRequest(), false])
  if (!(await answer(asked, isFirst))) break;
