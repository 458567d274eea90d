/**
 * Paths as text: what Linux paths mean without asking a file system. The domain has no other way to handle them.
 * Must not resolve symbolic links: that is a fact, which the inspect adapter finds out.
 */

export const isAbsolute = (path: string): boolean => path.startsWith('/');

/** The same absolute path without empty, "." and ".." parts; ".." at the root stays at the root. */
export function cleanPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..') parts.pop();
    else parts.push(part);
  }
  return `/${parts.join('/')}`;
}

export const hasParentPart = (path: string): boolean => path.split('/').includes('..');

/** How many parts a path has: "/" has none. */
export const pathDepth = (path: string): number =>
  cleanPath(path)
    .split('/')
    .filter((part) => part !== '').length;

/** "a/b" for "/x/a/b" or "a/b" below "/x"; the empty string for the directory itself. */
export const baseName = (path: string): string => cleanPath(path).split('/').at(-1) ?? '';
