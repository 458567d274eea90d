/**
 * Logs of containers that the log keeper can't write, as where their disk is full: told in the log when that begins and when it
 * is over, and to `scribe doctor` as it is when that asks. All in one sentence: a full disk is one of all containers' logs.
 */
import type { Logger } from 'pino';
import type { LogTrouble } from '../adapters/log-keeper/types.ts';
import { messageOf } from '../domain/model/errors.ts';

export interface LogTroubles {
  /** A sentence, or none. Never rejects. */
  readonly findings: () => Promise<readonly string[]>;
  readonly close: () => void;
}

interface Options {
  readonly ask: () => Promise<readonly LogTrouble[]>;
  readonly log: Pick<Logger, 'warn' | 'info'>;
  readonly everyMs?: number;
}

const LOOK_EVERY_MS = 30_000;
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

export const watchLogTroubles = ({ ask, log, everyMs = LOOK_EVERY_MS }: Options): LogTroubles => {
  let isTold = false;
  const look = async (): Promise<string | null> => {
    const words = await ask().then(
      troublesInWords,
      (error: unknown) => `Whether logs of containers are written is not known: ${messageOf(error)}`,
    );
    if (words !== null && !isTold) log.warn(words);
    if (words === null && isTold) log.info('all logs of containers are written again');
    isTold = words !== null;
    return words;
  };
  const timer = setInterval(() => void look(), everyMs).unref();
  return {
    findings: async () => {
      const words = await look();
      return words === null ? [] : [words];
    },
    close: () => clearInterval(timer),
  };
};
