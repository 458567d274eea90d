/**
 * Takes away what a command made only for itself when its process has ended before it could: by a signal, for want of memory,
 * or because nobody reads what it writes. Readers work in long turns in which they hear no signal, and nobody hears SIGKILL.
 */
import { spawn } from 'node:child_process';
import { Socket } from 'node:net';

export interface Passing {
  /** They stay from now on, or are gone already. */
  readonly keep: () => void;
}

const TAKE_AWAY =
  'read -r _; until [ "$1" = "" ]; do rm -rf -- "$1"; shift; done; shift; for dir; do rmdir -- "$dir"; done';

/**
 * Files and directories that go with this process, unless they are kept before; of `emptied`, an inner one before an outer one, those
 * that nothing is left in. Where no shell can be started they stay.
 */
export const passing = (paths: readonly string[], emptied: readonly string[] = []): Passing => {
  // It has a session of its own: the key that interrupts is not meant for it. Its input ends when this process does.
  const child = spawn('sh', ['-c', TAKE_AWAY, 'sh', ...paths, '', ...emptied], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.on('error', () => undefined);
  child.unref();
  if (child.stdin instanceof Socket) child.stdin.unref();
  return { keep: () => void child.kill('SIGKILL') };
};
