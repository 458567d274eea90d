/**
 * How the daemon ends when it can't go on: the reason goes to the log and into the crash file, which the next start takes
 * into the journal (C7), and a report for replay, each without what may be a client's word (C12); the process ends at once. Pods stay. Must not tidy up: nobody knows what still works.
 */
import type { Logger } from 'pino';
import { KnownError } from '../domain/model/errors.ts';
import { knownMessageOf } from '../domain/model/error-words.ts';
import { writeCrashFile } from './crash-file.ts';
import { type CrashScene, writeCrashReport } from './crash-report.ts';
import { loggable } from './log.ts';

/** Says what went wrong, then gives the function that is told why and does not return. */
export type Die = (what: string) => (error: unknown) => void;

/** From here on exceptions that nobody handles end the daemon, too. */
export function createDie(stateDir: string, scene: CrashScene, log: Logger): Die {
  const die: Die = (what) => (error) => {
    log.fatal({ error: loggable(error) }, `${what}: the daemon ends, pods stay`);
    writeCrashReport(scene, what, error);
    writeCrashFile(stateDir, new KnownError(`${what}: ${knownMessageOf(error)}`, { cause: error }));
    log.flush();
    process.exit(1);
  };
  process.on('uncaughtException', die('an exception nobody handled'));
  process.on('unhandledRejection', die('a rejection nobody handled'));
  return die;
}

/** Parts without which there is no daemon, each with what tells that it ended by itself. */
export interface VitalParts {
  readonly journal: { readonly failed: Promise<Error> };
  readonly cni: { readonly failed: Promise<Error> };
  readonly cri: { readonly ended: Promise<Error> };
  /** Where shims report events: rejects when it ended by itself. */
  readonly shim: { readonly ended: Promise<void> };
  readonly spawner: { readonly ended: Promise<unknown> };
}

/** From here on the end of any of them is that of the daemon as a whole (C20); `isEnding`: it ends in order already. */
export function dieWith({ journal, cni, cri, shim, spawner }: VitalParts, die: Die, isEnding: () => boolean): void {
  const unlessEnding =
    (what: string) =>
    (error: unknown): void =>
      isEnding() ? undefined : die(what)(error);
  journal.failed.then(die('the journal failed'), () => undefined);
  // What it still sees then cannot be recorded any more.
  cni.failed.then(unlessEnding('the watch of the CNI configuration ended'), () => undefined);
  cri.ended.then(die('the CRI socket ended'), () => undefined);
  shim.ended.then(() => undefined, die('the events server ended'));
  spawner.ended.then(
    () => unlessEnding('the spawner ended')(new KnownError('It ended by itself or was killed.')),
    () => undefined,
  );
}
