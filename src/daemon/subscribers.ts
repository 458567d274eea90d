/**
 * Subscribers of the view fail on their own account: an exception of one of them is a line in the log and a finding,
 * and the others, the engine and the daemon go on (C20). rxjs would throw it again where nobody handles it, which ends
 * the daemon. A subscriber that threw hears the next change all the same.
 */
import { config } from 'rxjs';
import { knownHeadOf } from '../domain/model/error-words.ts';
import { loggable } from './log.ts';

/** @param log  told of the error and its stack; @param report  told in a sentence */
export function reportThrownBySubscribers(
  log: { readonly error: (fields: object, message: string) => void },
  report: (message: string) => void,
): void {
  config.onUnhandledError = (error: unknown) => {
    log.error({ error: loggable(error) }, 'a subscriber of the view threw');
    report(`Something that follows what the daemon records failed, and goes on: ${knownHeadOf(error)}`);
  };
}
