/**
 * Names of archive members as paths inside the jail. A member's name is taken apart before anything is done with it;
 * symbolic links on the way are resolved here, inside the layer, so that only directories are ever walked into.
 * Runs in the unpacking child only, whose root is the layer's directory.
 */
import { lstatSync, mkdirSync, readlinkSync, type Stats } from 'node:fs';
import { errorCodeOf } from '../../linux/syscalls.ts';
import { invalidArchive } from '../tar/header.ts';

const NAME_BYTES_MAX = 255;
const LINKS_MAX = 40;
const NOT_ASCII = /[^\0-\x7f]/;

/** A latin1 path as Node's fs takes it, whatever its bytes. The root is "/". */
export const fsPath = (path: string): string | Buffer => {
  const absolute = `/${path}`;
  return NOT_ASCII.test(absolute) ? Buffer.from(absolute, 'latin1') : absolute;
};

/** The same for a system call: bytes with a NUL at the end. */
export const callPath = (path: string): Buffer => Buffer.from(`/${path}\0`, 'latin1');

/** A path for messages. */
export const shownPath = (path: string): string =>
  JSON.stringify(Buffer.from(path, 'latin1').toString('utf8').slice(0, 200));

/**
 * Components of a member's name, without "." and empty ones: "./a//b/" is [a, b], the root is []. Absolute names are
 * taken from the layer's root. Throws FailureError ImageInvalid for ".." and for names no file system takes.
 */
export const componentsOf = (name: string): readonly string[] => {
  const components = name.split('/').filter((component) => component !== '' && component !== '.');
  for (const component of components) {
    if (component === '..') throw invalidArchive(`the name ${shownPath(name)} leads out of the image`);
    if (component.length > NAME_BYTES_MAX || component.includes('\0')) {
      throw invalidArchive(`no file can be called ${shownPath(name)}`);
    }
  }
  return components;
};

/** What is at `path` itself; null when nothing is. */
export const statOf = (path: string): Stats | null => {
  try {
    return lstatSync(fsPath(path));
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
};

/** A character device 0:0 stands for a name that the layers below are to be without. */
export const isWhiteout = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;

export interface DirectoryResolver {
  /** The real path of the directory these components name. Makes what is missing (`implied` is told of it). */
  readonly resolve: (components: readonly string[]) => string;
  /** As resolve, but null when there is no such directory. */
  readonly find: (components: readonly string[]) => string | null;
  /** A directory is known to be at this real path. */
  readonly note: (path: string) => void;
  /** There is none any more. */
  readonly forget: (path: string) => void;
}

/** `makeOver` turns a whiteout of this layer into a directory that hides what is below it. */
export const createDirectoryResolver = (handlers: {
  readonly implied: (path: string) => void;
  readonly makeOver: (path: string) => void;
}): DirectoryResolver => {
  const known = new Set<string>(['']);

  const walk = (components: readonly string[], make: boolean): string | null => {
    const ahead = [...components].reverse();
    let links = 0;
    let at = '';
    for (let component = ahead.pop(); component !== undefined; component = ahead.pop()) {
      if (component === '..') {
        at = at.slice(0, Math.max(0, at.lastIndexOf('/')));
        continue;
      }
      const next = at === '' ? component : `${at}/${component}`;
      if (known.has(next)) {
        at = next;
        continue;
      }
      const stats = statOf(next);
      if (stats === null || (make && isWhiteout(stats))) {
        if (!make) return null;
        if (stats === null) {
          mkdirSync(fsPath(next), 0o755);
          handlers.implied(next);
        } else {
          handlers.makeOver(next);
        }
        known.add(next);
        at = next;
      } else if (stats.isSymbolicLink()) {
        links += 1;
        if (links > LINKS_MAX)
          throw invalidArchive(`too many symbolic links lead to ${shownPath(components.join('/'))}`);
        const target = readlinkSync(fsPath(next), 'latin1');
        if (target.startsWith('/')) at = '';
        ahead.push(
          ...target
            .split('/')
            .filter((part) => part !== '' && part !== '.')
            .reverse(),
        );
      } else if (stats.isDirectory()) {
        known.add(next);
        at = next;
      } else if (make) {
        throw invalidArchive(`${shownPath(next)} is used as a directory and is none`);
      } else {
        return null;
      }
    }
    return at;
  };

  return {
    resolve: (components) => walk(components, true) ?? '',
    find: (components) => walk(components, false),
    note: (path) => known.add(path),
    forget: (path) => known.delete(path),
  };
};
