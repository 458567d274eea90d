/**
 * Waiting for exit codes after a restart (C18): a container found dead lists as EXITED at once, but its code is its
 * shim's to tell, and a code once shown must never change. So whoever asks for one waits, bounded.
 */
import type { ReadModel } from '../../engine/ports.ts';
import { FailureError } from '../../domain/model/errors.ts';

/** Longer than a shim is waited for after a restart, shorter than kubelet waits. */
const EXIT_WAIT_MS = 8_000;

/**
 * Resolves once `isKnown`, asked at every change of the read model, says so.
 * @throws {FailureError} NotServing when that takes too long; `whose` names the object
 */
export function whenExitsAreKnown(
  view: Pick<ReadModel, 'onChange'>,
  isKnown: () => boolean,
  whose: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = view.onChange(() => {
      if (!isKnown()) return;
      clearTimeout(timer);
      stop();
      resolve();
    });
    const timer = setTimeout(() => {
      stop();
      const message = `The shim of ${whose} has not told how it ended since the daemon's restart; try again.`;
      reject(new FailureError('NotServing', message));
    }, EXIT_WAIT_MS);
  });
}
