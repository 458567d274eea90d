/**
 * What is said where SQLite cannot read on in a journal: its own words name neither what it read nor what can be done. Knows
 * them by their text, for an error that comes from another thread has nothing else. Pure.
 */
import { messageOf } from '../domain/model/errors.ts';

const WORDS_OF_SQLITE: readonly string[] = ['database disk image is malformed', 'file is not a database'];

const isDamage = (message: string): boolean => WORDS_OF_SQLITE.includes(message);

/** Whether it is this that was thrown. */
export const isDamageMet = (thrown: unknown): boolean => isDamage(messageOf(thrown));

const OF_A_COPY =
  'Of a copy: it may have been cut short, or made without journal.db-wal; make it anew with scribe journal backup.';

/** Why nothing is known of a record from which on a journal cannot be read. */
export const WHY_NO_FURTHER = `SQLite cannot read on in the journal; scribe verify says what is damaged. ${OF_A_COPY}`;

/** What `read` gives; null where SQLite cannot read what it takes, for whoever can show the rest without it. */
export const unlessDamaged = <T>(read: () => T): T | null => {
  try {
    return read();
  } catch (thrown) {
    if (isDamageMet(thrown)) return null;
    throw thrown;
  }
};

/** What is to be said for an error's message: itself, but where it is one of these. */
export const withRemedy = (message: string): string =>
  isDamage(message)
    ? `SQLite cannot read on in the journal: ${message}. scribe verify says from which record on; history and export read what was recorded before it, with --until. Where it names no record, all can be read: scribe journal compact, with the daemon stopped, writes the journal anew from them. ${OF_A_COPY}`
    : message;
