/** How NRI says that something is taken away: by a "-" before its key. */

export const MARK = '-';

export const isMarked = (key: string): boolean => key.startsWith(MARK);

/** The key without its mark. */
export const bareKey = (key: string): string => (isMarked(key) ? key.slice(MARK.length) : key);
