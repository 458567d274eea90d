/**
 * Numbers of users and groups, as Linux holds them and as texts name them. Must not know whose they are, nor refuse
 * anything itself.
 */

/** The last 32-bit id means "no change" to the kernel. */
export const LAST_ID = 0xfffffffe;

/** It names nobody: it is a number, whether or not anything can have it. */
export const isNumber = (text: string): boolean => /^\d+$/.test(text);

/** The id that the text is; null when it is none. */
export function idOf(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,10}$/.test(text)) return null;
  const id = Number(text);
  return id <= LAST_ID ? id : null;
}
