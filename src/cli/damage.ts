/**
 * What is said where SQLite cannot read on in a journal: its own words name neither what it read nor what can be done. Knows
 * them by their text, for an error that comes from another thread has nothing else. Pure.
 */
const WORDS_OF_SQLITE: readonly string[] = ['database disk image is malformed', 'file is not a database'];

/** What is to be said for an error's message: itself, but where it is one of these. */
export const withRemedy = (message: string): string =>
  WORDS_OF_SQLITE.includes(message)
    ? `SQLite cannot read on in the journal: ${message}. scribe verify says from which record on; history and export read what was recorded before it, with --until. Of a copy: it may have been cut short, or made without journal.db-wal; make it anew with scribe journal backup.`
    : message;
