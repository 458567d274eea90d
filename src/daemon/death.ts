/**
 * How the daemon ends when it can't go on: the reason goes to the log and into the crash file, which the next start takes
 * into the journal (C7), and the process ends at once. Pods stay. Must not tidy up: nobody knows what still works.
 */
import type { Logger } from 'pino';
import { writeCrashFile } from './crash-file.ts';

/** Says what went wrong, then gives the function that is told why and does not return. */
export type Die = (what: string) => (error: unknown) => void;

/** From here on exceptions that nobody handles end the daemon, too. */
export function createDie(stateDir: string, log: Logger): Die {
  const die: Die = (what) => (error) => {
    log.fatal({ error }, `${what}: the daemon ends, pods stay`);
    writeCrashFile(stateDir, new Error(what, { cause: error }));
    log.flush();
    process.exit(1);
  };
  process.on('uncaughtException', die('an exception nobody handled'));
  process.on('unhandledRejection', die('a rejection nobody handled'));
  return die;
}
