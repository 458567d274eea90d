/**
 * What a check of `scribe doctor` says, as data. Printing it, and deciding on an exit status, is the command's.
 */

export interface DoctorResult {
  /** What was looked at, in a few words: the same text on every machine. */
  readonly check: string;
  /** warning: pods run, but something will be worse than it could be. problem: pods, or some of them, won't run. */
  readonly status: 'ok' | 'warning' | 'problem';
  /** What was found. */
  readonly detail: string;
  /** What to do about it; null when there is nothing to do. */
  readonly remedy: string | null;
}

export const ok = (check: string, detail: string): DoctorResult => ({ check, status: 'ok', detail, remedy: null });

export const warning = (check: string, detail: string, remedy: string): DoctorResult => ({
  check,
  status: 'warning',
  detail,
  remedy,
});

export const problem = (check: string, detail: string, remedy: string): DoctorResult => ({
  check,
  status: 'problem',
  detail,
  remedy,
});
