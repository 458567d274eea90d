/**
 * The places that one daemon has for itself: its socket, its state directory, and that of the pods it finds; the root
 * directory is claimed by the journal's own lock (src/journal/lock.ts). Claimed before anything in them is touched, and given
 * back last of all.
 * A place that another daemon has ends the start at once, with the pid of who is there. Must write nothing else.
 */
import { existsSync, statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { dirname, join } from 'node:path';
import { FailureError } from '../domain/model/errors.ts';
import { errorCodeOf } from '../platform/error-code.ts';
import { peerCredentials } from '../platform/linux/syscalls.ts';
import type { NodeFacts } from '../domain/model/node-facts.ts';
import type { NodeState } from '../domain/model/state.ts';
import { takeLock } from '../journal/lock.ts';
import { makeDirectoriesSync } from '../platform/linux/make-directories.ts';
import type { Opened } from './closing.ts';

interface Places {
  readonly stateDir: string;
  readonly socketPath: string;
}

/** Throws JournalError Locked, or FailureError, that names the process that has a place already. The state directory is there. */
export async function claimPlaces({ stateDir, socketPath }: Places, opened: Opened): Promise<void> {
  opened.defer(takeLock(join(stateDir, 'scribe.lock'), `The state directory ${stateDir}`));
  makeDirectoriesSync(dirname(socketPath), 0o711);
  opened.defer(takeLock(`${socketPath}.lock`, `The socket ${socketPath}`));
  const listener = await listenerAt(socketPath);
  if (listener !== null)
    throw new FailureError(
      'HostFailed',
      `The socket ${socketPath} is in use: ${listener} listens there. Stop it first, or serve at another one (--socket).`,
    );
}

/**
 * A copy of another daemon's root directory names pods that are that one's: their shims would obey both daemons, and each
 * would end what the other runs. The other has the state directory in which they are. After a reboot they are nobody's.
 * Throws JournalError Locked.
 */
export function claimPlaceOfPods(
  { facts: before, sandboxes }: Pick<NodeState, 'facts' | 'sandboxes'>,
  { stateDir }: Pick<Places, 'stateDir'>,
  { bootId }: Pick<NodeFacts, 'bootId'>,
  opened: Opened,
): void {
  if (before === null || before.node.bootId !== bootId || before.stateDir === stateDir || sandboxes.size === 0) return;
  const lock = join(before.stateDir, 'scribe.lock');
  // The same directory by another name would be refused for this daemon's own lock.
  if (!existsSync(lock) || isSameFile(lock, join(stateDir, 'scribe.lock'))) return;
  opened.defer(takeLock(lock, `The state directory ${before.stateDir} of the pods in this journal`));
}

function isSameFile(one: string, other: string): boolean {
  const [{ dev, ino }, than] = [statSync(one), statSync(other)];
  return dev === than.dev && ino === than.ino;
}

/** Who answers at a socket: daemons of other kinds know nothing of the lock. null: nobody, or there is no socket. */
const listenerAt = async (socketPath: string): Promise<string | null> =>
  new Promise((resolve) => {
    const socket = createConnection(socketPath);
    socket.once('connect', () => {
      resolve(`process ${peerCredentials(socket).pid}`);
      socket.destroy();
    });
    // A listener whose queue is full is there all the same.
    socket.once('error', (error) => resolve(errorCodeOf(error) === 'EAGAIN' ? 'another process' : null));
  });
