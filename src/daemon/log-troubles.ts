/**
 * Logs of containers that the log keeper can't write, as where their disk is full: told to `scribe doctor` as it is when that
 * asks, since only the keeper knows. All in one sentence: a full disk is one of all containers' logs.
 */
import type { LogTrouble } from '../adapters/log-keeper/types.ts';
import { messageOf } from '../domain/model/errors.ts';

const REMEDY =
  'make room there, or take away what stands in the way; the containers go on, and their logs when they can';

const sumOf = (troubles: readonly LogTrouble[]): number =>
  troubles.reduce((sum, { lostRecords }) => sum + lostRecords, 0);

/** null: there are none. */
export const troublesInWords = (troubles: readonly LogTrouble[]): string | null => {
  const [first, ...others] = troubles.toSorted((a, b) => a.sinceMs - b.sinceMs);
  if (first === undefined) return null;
  const { containerId, logPath, why, sinceMs } = first;
  const beside = others.length === 0 ? '' : `, and those of ${others.length} other containers`;
  const lost = `${sumOf(troubles)} lines are lost since ${new Date(sinceMs).toISOString()}`;
  return `The log of container ${containerId}, ${logPath}, can not be written (${why})${beside}: ${lost}; ${REMEDY}`;
};

/** A sentence, or none. Never rejects. */
export const logTroubles = async (ask: () => Promise<readonly LogTrouble[]>): Promise<readonly string[]> => {
  const words = await ask().then(
    troublesInWords,
    (error: unknown) => `Whether logs of containers are written is not known: ${messageOf(error)}`,
  );
  return words === null ? [] : [words];
};
