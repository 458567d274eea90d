/**
 * What can go wrong with a journal, as codes that a caller can act on. The journal imports nothing of the rest of
 * the project, so it has an error type of its own; who wires it translates.
 */

export type JournalErrorCode =
  /** The caller broke the contract: wrong seq, a field out of bounds. Nothing was taken. */
  | 'BadRecord'
  /** Another process has the journal open for writing. */
  | 'Locked'
  /** A newer scribe wrote it; this one must not touch it. */
  | 'NewerSchema'
  /** SQLite cannot read it, or it is no journal. Set it aside whole. */
  | 'Corrupt'
  /** Nothing can be written where it lies, and SQLite needs that even to read it: a copy elsewhere can be read. */
  | 'Unwritable'
  /** Its file system does not give it, which says nothing of what was written. */
  | 'Unreadable'
  /** SQLite, the file system or a setting is not what durability needs. */
  | 'Unsafe'
  /** A commit failed: the journal takes nothing more. */
  | 'Failed'
  | 'Closed';

export class JournalError extends Error {
  readonly code: JournalErrorCode;
  constructor(code: JournalErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'JournalError';
    this.code = code;
  }
}

export const errorOf = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/** Whether it can be read once it is copied to another place. */
export const isUnwritable = (thrown: unknown): boolean =>
  thrown instanceof JournalError && thrown.code === 'Unwritable';

/** Whether its file system does not give it. */
export const isUnreadable = (thrown: unknown): boolean =>
  thrown instanceof JournalError && thrown.code === 'Unreadable';

/** Whether a later scribe can read it. */
export const isNewer = (thrown: unknown): boolean => thrown instanceof JournalError && thrown.code === 'NewerSchema';
