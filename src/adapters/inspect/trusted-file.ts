/**
 * Reading a file that may have programs run on the node, or devices handed out: only one that none but root can have
 * written. Bounded, and never waiting for a writer. Must not know what the file says.
 */
import type { BigIntStats } from 'node:fs';
import { constants, open, stat } from 'node:fs/promises';
import { FailureError } from '../../domain/model/errors.ts';
import { signatureOf } from '../../platform/linux/file-signature.ts';

const OTHERS_WRITE = 0o022n;

/** Why this is not root's alone; null when it is. */
const whoElseWrites = ({ uid, mode }: BigIntStats): string | null => {
  if (uid !== 0n) return `belongs to the user ${uid}: it must belong to root`;
  if ((mode & OTHERS_WRITE) !== 0n) return 'can be written by others than root: take that right from them';
  return null;
};

/** Rejects with HostFailed for a directory in which others than root can put files; with the system's error for none. */
export async function checkTrustedDirectory(path: string): Promise<void> {
  const problem = whoElseWrites(await stat(path, { bigint: true }));
  if (problem !== null) throw new FailureError('HostFailed', `the directory ${path} ${problem}`);
}

export interface TrustedFile {
  readonly signature: string;
  /** null: it is as `known` says. */
  readonly text: string | null;
}

/**
 * Reads the file unless its signature is `known`. Rejects with HostFailed when it is not regular, too large, or others
 * than root can write to it; with the system's error when it cannot be opened.
 */
export async function readTrustedFile(path: string, maxBytes: number, known?: string): Promise<TrustedFile> {
  const { O_RDONLY, O_NONBLOCK, O_NOCTTY } = constants;
  const file = await open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  try {
    const stats = await file.stat({ bigint: true });
    const bad = (problem: string): never => {
      throw new FailureError('HostFailed', `${path} ${problem}`);
    };
    if (!stats.isFile()) bad('is no regular file');
    const problem = whoElseWrites(stats);
    if (problem !== null) bad(problem);
    const signature = signatureOf(stats);
    if (signature === known) return { signature, text: null };
    if (stats.size > BigInt(maxBytes)) bad(`has ${stats.size} bytes, more than the ${maxBytes} that are read`);
    // No further than stat said: a file that grows meanwhile is not run after.
    const buffer = Buffer.alloc(Number(stats.size));
    let filled = 0;
    while (filled < buffer.length) {
      const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return { signature, text: buffer.toString('utf8', 0, filled) };
  } finally {
    await file.close();
  }
}
