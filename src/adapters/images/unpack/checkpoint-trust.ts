/**
 * Decides whose archives are restored. A process that goes on takes its credentials from CRIU's images, which nothing
 * reads before CRIU does: so an archive must be one that this node wrote, unchanged, or one that carries a signature by
 * a key of the configuration. The judgement is about a copy that nobody else can write to, and the same copy is
 * unpacked.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, readFile } from 'node:fs/promises';
import type { GivenArchive } from '../../../domain/model/effects/checkpoint.ts';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import { digestOf } from '../../../platform/linux/file-digest.ts';
import { keepFreeSpace } from '../../../platform/linux/free-space.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';

const COPY_MODE = 0o600;
/** Of Ed25519. */
const SIGNATURE_BYTES = 64;

/** Where an archive should lie, others may have put a link or a FIFO. */
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
const READ_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

interface Judged {
  readonly archive: GivenArchive;
  /** Files with the keys of those who may have signed others. */
  readonly trustedKeyPaths: readonly string[];
}

interface Copied extends Judged {
  /** Where the copy is to be, in a directory that only root can reach into. */
  readonly copy: string;
  /** What must stay free on its file system. */
  readonly directory: string;
  readonly reservedBytes: number;
  readonly signal: AbortSignal;
}

const refuse = (path: string, problem: string): never => {
  throw new FailureError('InvalidField', `The checkpoint ${path}: ${problem}.`);
};

const openArchive = async (path: string): Promise<{ readonly file: FileHandle; readonly sizeBytes: number }> => {
  const file = await open(path, READ_FLAGS).catch((error: unknown) =>
    refuse(path, `It cannot be opened: ${messageOf(error)}`),
  );
  const stats = await file.stat();
  if (stats.isFile()) return { file, sizeBytes: stats.size };
  await file.close();
  return refuse(path, 'It is not a regular file');
};

/** null: none, or none that a signature can be. */
const readSignature = async (path: string): Promise<Buffer | null> => {
  const file = await open(path, READ_FLAGS).catch((error: unknown) => {
    if (['ENOENT', 'ELOOP', 'ENXIO'].includes(errorCodeOf(error) ?? '')) return null;
    throw error;
  });
  if (file === null) return null;
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size !== SIGNATURE_BYTES) return null;
    const bytes = Buffer.alloc(SIGNATURE_BYTES);
    const { bytesRead } = await file.read(bytes, 0, SIGNATURE_BYTES, 0);
    return bytesRead === SIGNATURE_BYTES ? bytes : null;
  } finally {
    await file.close();
  }
};

const readKey = async (path: string): Promise<KeyObject> => {
  try {
    const key = createPublicKey(await readFile(path));
    if (key.asymmetricKeyType === 'ed25519') return key;
    throw new Error(`it is one of ${key.asymmetricKeyType ?? 'another kind'}`);
  } catch (error) {
    const message = `checkpoint.trusted_keys: ${path} is no Ed25519 public key (PEM): ${messageOf(error)}.`;
    throw new FailureError('HostLacks', message, { cause: error });
  }
};

/** Throws CheckpointUntrusted. The digest's bytes are what is signed: an archive may be larger than what is signed at once. */
const checkTrust = async ({ archive, trustedKeyPaths }: Judged, digest: string): Promise<void> => {
  const { path, knownDigests } = archive;
  if (knownDigests.includes(digest)) return;
  const signature = await readSignature(`${path}.sig`);
  const signed = Buffer.from(digest.replace('sha256:', ''), 'hex');
  if (signature !== null)
    for (const keyPath of trustedKeyPaths) if (verify(null, signed, await readKey(keyPath), signature)) return;
  const unsigned = signature === null ? 'nobody has signed it' : `${path}.sig is by no key that is trusted`;
  const message = `The checkpoint ${path} is not as this node made it (it has ${digest}), and ${unsigned}: restore one that CheckpointContainer or CheckpointPod wrote here, or have it signed by a key that checkpoint.trusted_keys names.`;
  throw new FailureError('CheckpointUntrusted', message);
};

/** Copies an archive that may be restored. Throws FailureError, or the signal's reason; then the copy is for nobody. */
export const copyTrusted = async (asked: Copied): Promise<void> => {
  const { copy, directory, reservedBytes, signal } = asked;
  const { path } = asked.archive;
  const { file, sizeBytes } = await openArchive(path);
  try {
    const message = `The disk is too full to restore the checkpoint ${path}: make room and restore it again.`;
    await keepFreeSpace({ directory, reservedBytes, everyBytes: 1, message })(sizeBytes);
    const made = await open(copy, 'wx', COPY_MODE);
    try {
      await checkTrust(asked, await digestOf({ from: file.fd, sizeBytes, to: made.fd }, signal));
    } finally {
      await made.close();
    }
  } finally {
    await file.close();
  }
};
