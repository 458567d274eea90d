/**
 * Names of archive members as paths inside the jail. A member's name is taken apart before anything is done with it;
 * symbolic links on the way are resolved here, inside the layer, so that only directories are ever walked into.
 * Runs in the unpacking child only, whose working directory is the layer's.
 */
import { lstatSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, type Stats, unlinkSync } from 'node:fs';
import { isWhiteout } from '../../../platform/linux/overlay-marks.ts';
import { invalidArchive } from '../tar/header.ts';

const NAME_BYTES_MAX = 255;
const LINKS_MAX = 40;
const RESOLVED_MAX = 10_000;
const NOT_ASCII = /[^\0-\x7f]/;

/** A latin1 path as Node's fs takes it, whatever its bytes. The layer's root is "./". */
export const fsPath = (path: string): string | Buffer => {
  const relative = `./${path}`;
  return NOT_ASCII.test(relative) ? Buffer.from(relative, 'latin1') : relative;
};

/** The same for a system call: bytes with a NUL at the end. */
export const callPath = (path: string): Buffer => Buffer.from(`./${path}\0`, 'latin1');

export const inDirectory = (directory: string, name: string): string =>
  directory === '' ? name : `${directory}/${name}`;

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

/** What is at `path` itself; null when nothing is. No exception for that: most members are new, and errors are dear. */
export const statOf = (path: string): Stats | null => lstatSync(fsPath(path), { throwIfNoEntry: false }) ?? null;

/** Takes away what is at the real path, a directory with all that is in it, and tells of each thing that goes. */
export const removeWhole = (path: string, onGone: (path: string) => void): void => {
  if (statOf(path)?.isDirectory() === true) {
    for (const name of readdirSync(fsPath(path), 'latin1')) removeWhole(`${path}/${name}`, onGone);
    rmdirSync(fsPath(path));
  } else {
    unlinkSync(fsPath(path));
  }
  onGone(path);
};

/** Where a member goes: the real path of its directory, and its name there. */
export interface Place {
  readonly directory: string;
  readonly name: string;
}

export interface DirectoryResolver {
  /** Where the member of this name goes; null for the root itself. Makes directories that are missing. */
  readonly place: (name: string) => Place | null;
  /** The real path of the directory these components name; null when there is none. */
  readonly find: (components: readonly string[]) => string | null;
  /** A directory is known to be at this real path. */
  readonly note: (path: string) => void;
  /** Something at this real path is no more, be it a directory or a link to one. */
  readonly forget: (path: string) => void;
}

/** `makeOver` turns a whiteout of this layer into a directory that hides what is below it. */
export const createDirectoryResolver = (handlers: {
  readonly implied: (path: string) => void;
  readonly makeOver: (path: string) => void;
}): DirectoryResolver => {
  const known = new Set<string>(['']);
  /** What names of directories, as the archive spells them, turned out to be: members of one follow each other. */
  const resolved = new Map<string, string>();

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

  const resolve = (components: readonly string[]): string => walk(components, true) ?? '';

  const directoryOf = (name: string): string => {
    const found = resolved.get(name);
    if (found !== undefined) return found;
    const directory = resolve(componentsOf(name));
    if (resolved.size >= RESOLVED_MAX) resolved.clear();
    resolved.set(name, directory);
    return directory;
  };

  return {
    place: (name) => {
      const trimmed = name.endsWith('/') ? name.replace(/\/+$/, '') : name;
      const slash = trimmed.lastIndexOf('/');
      const [last, ...more] = componentsOf(trimmed.slice(slash + 1));
      if (last !== undefined && more.length === 0) {
        return { directory: slash < 0 ? '' : directoryOf(trimmed.slice(0, slash)), name: last };
      }
      const components = componentsOf(name);
      const own = components.at(-1);
      return own === undefined ? null : { directory: resolve(components.slice(0, -1)), name: own };
    },
    find: (components) => walk(components, false),
    note: (path) => known.add(path),
    forget: (path) => {
      known.delete(path);
      resolved.clear();
    },
  };
};
