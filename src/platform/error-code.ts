/** Tells system errors apart. Loads nothing, so that what is to start quickly can ask it, too. */

/** The code of a system error (ENOENT, …), or undefined for any other thing that was thrown. */
export const errorCodeOf = (error: unknown): string | undefined =>
  error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
