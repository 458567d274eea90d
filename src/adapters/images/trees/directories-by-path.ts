/**
 * Directories in an unpacked tree by paths that the unpacking child named. It read what strangers wrote, so each path has
 * to prove that it leads through directories only, each of them looked at once. Nothing changes the tree meanwhile.
 */
import type { LayerCalls } from './layer-calls.ts';

const SLASH = Buffer.from('/');

export const inDirectory = (directory: Buffer, name: string): Buffer =>
  Buffer.concat([directory, SLASH, Buffer.from(name, 'latin1')]);

export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

const isPlainPath = (path: string): boolean =>
  path === '' || path.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && !part.includes('\0'));

/** Gives the real path of a latin1 path below `root`, or rejects; "" is the root. */
export const provenDirectories = (
  root: string,
  { lstat }: Pick<LayerCalls, 'lstat'>,
): ((path: string) => Promise<Buffer>) => {
  const known = new Map<string, Buffer>([['', Buffer.from(root)]]);
  const find = async (path: string): Promise<Buffer> => {
    const found = known.get(path);
    if (found !== undefined) return found;
    if (!isPlainPath(path)) throw new Error('the unpacking process named a directory outside of the layer');
    const own = inDirectory(await find(parentOf(path)), nameOf(path));
    if (!(await lstat(own)).isDirectory()) throw new Error('the unpacking process named a directory that is none');
    known.set(path, own);
    return own;
  };
  return find;
};
