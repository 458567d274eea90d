/**
 * Waiting for exit codes after a restart (C18): a container found dead lists as EXITED at once, but its code is its
 * shim's to tell, and a code once shown must never change. So whoever asks for one waits, bounded.
 */
import { filter, firstValueFrom, map, throwError, timeout } from 'rxjs';
import type { ReadModel } from '../../engine/ports.ts';
import { FailureError } from '../../domain/model/errors.ts';

/** Longer than a shim is waited for after a restart, shorter than kubelet waits. */
const EXIT_WAIT_MS = 8_000;

/**
 * Resolves once `isKnown`, asked at every change of the read model, says so.
 * @throws {FailureError} NotServing when that takes too long; `whose` names the object
 */
export function whenExitsAreKnown(
  view: Pick<ReadModel, 'changes'>,
  isKnown: () => boolean,
  whose: string,
): Promise<void> {
  const late = (): FailureError =>
    new FailureError(
      'NotServing',
      `The shim of ${whose} has not told how it ended since the daemon's restart; try again.`,
    );
  return firstValueFrom(
    view.changes.pipe(
      filter(() => isKnown()),
      map(() => undefined),
      timeout({ first: EXIT_WAIT_MS, with: () => throwError(late) }),
    ),
  );
}
