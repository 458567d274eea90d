/**
 * Turns the members of an archive into files below the working directory, those of an image's layer in overlayfs' form: whiteouts become 0:0 character
 * devices (image-spec, layer.md). Runs in the jailed child only, whose root that directory is, or is in. Directories that the archive
 * does not describe are reported, never guessed from the host, and so are opaque ones: marking them is beyond its rights.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  ftruncateSync,
  chmodSync,
  lchownSync,
  linkSync,
  mkdirSync,
  openSync,
  statfsSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { CHECKPOINT_FILES } from '../../../domain/model/checkpoint-files.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import { makeNodeNow, setTimesNow, setTimesOfOpenNow, writeXattrNow } from '../../../platform/linux/jail.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { deviceNumber, NodeType } from '../../../platform/linux/syscalls.ts';
import { isWhiteout } from '../../../platform/linux/overlay-marks.ts';
import { invalidArchive } from '../tar/header.ts';
import type { TarEntry } from '../tar/reader.ts';
import type { FileHandler } from '../tar/sparse.ts';
import { type ArchiveForm, wordsOfForm } from './protocol.ts';
import {
  callPath,
  componentsOf,
  createDirectoryResolver,
  fsPath,
  inDirectory,
  removeWhole,
  shownPath,
  statOf,
} from './paths.ts';
import { ELSEWHERE_XATTRS, isOpaqueMark, mayCarry, refusedXattr, XATTR_FAULTS } from './xattrs.ts';

export interface ExtractLimits {
  readonly form: ArchiveForm;
  readonly entriesMax: number;
  readonly bytesMax: number;
  /** To be left free on the file system. */
  readonly reservedBytes: number;
}

export interface Extractor {
  readonly handler: FileHandler;
  /** After the last member: gives directories what only holds once nothing is made in them any more. */
  readonly finish: () => ExtractResult;
}

export interface ExtractResult {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  /** Directories that were made without being described; "" is the layer's root. latin1 paths. */
  readonly implied: readonly string[];
  /** Directories that hide what is below them. latin1 paths. */
  readonly opaque: readonly string[];
}

const WHITEOUT_PREFIX = '.wh.';
const OPAQUE_MARKER = '.wh..wh..opq';
/** AUFS' own files, of no meaning to others. */
const AUFS_PREFIX = '.wh..wh.';
/** -1 as an unsigned number means "leave it" to chown(2). */
const ID_MAX = 0xffff_fffe;
/** What mknod(2) takes: of greater numbers the rest is dropped, so that another device would be made, or a whiteout. */
const MAJOR_MAX = 0xfff;
const MINOR_MAX = 0xf_ffff;
const PERMISSIONS = 0o777;
const DISK_BLOCK_BYTES = 4096;
const SPACE_CHECK_BYTES = 32 * 1024 * 1024;
const SPACE_CHECK_ENTRIES = 4096;
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;

/** What was made takes room, and the archive may not ask for more than its limits. */
const createTally = (limits: ExtractLimits) => {
  const { what, again } = wordsOfForm[limits.form];
  let entries = 0;
  let bytes = 0;
  let usedBytes = 0;
  let inodesUsed = 0;
  let bytesSinceCheck = 0;

  const count = (sizeBytes: number): void => {
    inodesUsed += 1;
    usedBytes += Math.ceil(sizeBytes / DISK_BLOCK_BYTES) * DISK_BLOCK_BYTES;
  };

  const hasSpace = (): boolean => {
    const { bavail, bsize } = statfsSync('.');
    return bavail * bsize >= limits.reservedBytes;
  };

  const checkSpace = (): void => {
    if (!hasSpace()) {
      throw new FailureError('DiskFull', `The disk is too full to unpack it: make room and ${again}.`);
    }
  };

  return {
    count,
    hasSpace,
    takeEntry: (entry: TarEntry): void => {
      entries += 1;
      bytes += entry.sizeBytes;
      if (entries > limits.entriesMax) throw tooMuch(what, `more than ${limits.entriesMax} files`);
      if (bytes > limits.bytesMax) throw tooMuch(what, `more than ${limits.bytesMax} bytes`);
      if (entry.uid > ID_MAX || entry.gid > ID_MAX) {
        throw invalidArchive(`the owner of ${shownPath(entry.path)} is beyond the range of user ids`);
      }
      if (entries % SPACE_CHECK_ENTRIES === 1) checkSpace();
    },
    takeData: (lengthBytes: number): void => {
      bytesSinceCheck += lengthBytes;
      if (bytesSinceCheck < SPACE_CHECK_BYTES) return;
      bytesSinceCheck = 0;
      checkSpace();
    },
    used: () => ({ usedBytes, inodesUsed }),
  };
};

type Tally = ReturnType<typeof createTally>;

/** The directories of the tree and what is known of them; what is in the way of something else goes. */
const createTree = (form: ExtractLimits['form'], { count, hasSpace }: Pick<Tally, 'count' | 'hasSpace'>) => {
  const described = new Map<string, TarEntry>();
  const implied = new Set<string>(['']);
  const opaque = new Set<string>();

  const setXattrs = (path: string, entry: TarEntry): void => {
    for (const [name, value] of entry.xattrs) {
      if (form === 'changes' && ELSEWHERE_XATTRS.includes(name))
        throw invalidArchive(`${shownPath(path)} has been renamed in a way (${name}) that cannot be restored`);
      if (form === 'changes' && isOpaqueMark(name, value) && entry.type === 'directory') opaque.add(path);
      if (!mayCarry(name)) continue;
      try {
        writeXattrNow(callPath(path), name, value);
      } catch (error) {
        // Not every file system has every attribute, and only files and directories have user.* ones.
        const code = errorCodeOf(error);
        // ext4 says of attributes that do not fit beside each other what it says of a full disk.
        if (code === 'ENOSPC' && hasSpace())
          throw refusedXattr(path, name, value, 'the file system of images cannot hold');
        if (XATTR_FAULTS.includes(code)) throw refusedXattr(path, name, value, `no such file can have (${code})`);
        if (code !== 'ENOTSUP' && !(code === 'EPERM' && name.startsWith('user.'))) throw error;
      }
    }
  };

  const directories = createDirectoryResolver({
    implied: (path) => {
      implied.add(path);
      count(DISK_BLOCK_BYTES);
    },
    makeOver: (path) => {
      unlinkSync(fsPath(path));
      mkdirSync(fsPath(path), 0o755);
      opaque.add(path);
    },
  });

  /** Runs `make`, which must not replace anything; what is in its way is removed first, if it may be. */
  const makeExclusively = (path: string, make: () => void): void => {
    try {
      make();
      return;
    } catch (error) {
      if (errorCodeOf(error) !== 'EEXIST') throw error;
    }
    removeWhole(path, (gone) => {
      described.delete(gone);
      implied.delete(gone);
      opaque.delete(gone);
      directories.forget(gone);
    });
    make();
  };

  const makeDirectory = (path: string, entry: TarEntry): void => {
    const existing = path === '' ? null : statOf(path);
    if (existing !== null && !existing.isDirectory()) {
      unlinkSync(fsPath(path));
      directories.forget(path);
      mkdirSync(fsPath(path), 0o700);
      if (isWhiteout(existing)) opaque.add(path);
      count(DISK_BLOCK_BYTES);
    } else if (existing === null && path !== '') {
      mkdirSync(fsPath(path), 0o700);
      count(DISK_BLOCK_BYTES);
    }
    directories.note(path);
    implied.delete(path);
    described.set(path, entry);
  };

  /** Directories take their looks last, for making what is in them changes these. */
  const finish = (): Pick<ExtractResult, 'implied' | 'opaque'> => {
    for (const [path, entry] of described) {
      lchownSync(fsPath(path), entry.uid, entry.gid);
      chmodSync(fsPath(path), entry.mode);
      setXattrs(path, entry);
      setTimesNow(callPath(path), entry.mtime.seconds, entry.mtime.nanoseconds);
    }
    return { implied: [...implied], opaque: [...opaque] };
  };

  return { opaque, directories, setXattrs, makeExclusively, makeDirectory, finish };
};

type Tree = ReturnType<typeof createTree>;

/** Regular files, each written to while it is the current member. */
const createFiles = ({ setXattrs, makeExclusively }: Tree, { count, takeData }: Tally) => {
  let open: { readonly fd: number; readonly path: string; readonly entry: TarEntry; at: number } | null = null;

  const makeFile = (path: string, entry: TarEntry): void => {
    let fd = -1;
    makeExclusively(path, () => {
      fd = openSync(fsPath(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, entry.mode & PERMISSIONS);
    });
    open = { fd, path, entry, at: 0 };
    count(entry.sizeBytes);
  };

  const finishFile = (): void => {
    if (open === null) return;
    const { fd, path, entry } = open;
    open = null;
    // In this order: a change of owner clears set-user-ID bits and capabilities, everything changes times.
    if (entry.uid !== 0 || entry.gid !== 0) fchownSync(fd, entry.uid, entry.gid);
    if (entry.mode > PERMISSIONS) fchmodSync(fd, entry.mode);
    setXattrs(path, entry);
    setTimesOfOpenNow(fd, entry.mtime.seconds, entry.mtime.nanoseconds);
    closeSync(fd);
  };

  const write: FileHandler['data'] = (chunk) => {
    if (open === null) return;
    for (let written = 0; written < chunk.length; )
      written += writeSync(open.fd, chunk, written, chunk.length - written, open.at + written);
    open.at += chunk.length;
    takeData(chunk.length);
  };

  const skip: FileHandler['hole'] = (lengthBytes) => {
    if (open === null) return;
    open.at += lengthBytes;
    ftruncateSync(open.fd, open.at);
  };

  return { makeFile, finishFile, write, skip };
};

/** Links, nodes and whiteouts: what is made in one step. */
const createMakers = (form: ExtractLimits['form'], tree: Tree, { count }: Tally) => {
  const { opaque, directories, setXattrs, makeExclusively } = tree;

  const makeSymbolicLink = (path: string, entry: TarEntry): void => {
    if (entry.linkPath === '') throw invalidArchive(`the symbolic link ${shownPath(path)} is empty`);
    const target = Buffer.from(entry.linkPath, 'latin1');
    makeExclusively(path, () => symlinkSync(target, fsPath(path)));
    lchownSync(fsPath(path), entry.uid, entry.gid);
    setXattrs(path, entry);
    setTimesNow(callPath(path), entry.mtime.seconds, entry.mtime.nanoseconds);
    count(0);
  };

  const makeHardLink = (path: string, entry: TarEntry): void => {
    const components = componentsOf(entry.linkPath);
    const name = components.at(-1);
    const directory = name === undefined ? null : directories.find(components.slice(0, -1));
    const target = directory === null || name === undefined ? null : inDirectory(directory, name);
    const stats =
      target === null || (form === 'layer' && name?.startsWith(WHITEOUT_PREFIX) === true) ? null : statOf(target);
    const isNone = target === null || stats === null || stats.isDirectory() || isWhiteout(stats);
    if (isNone || target.startsWith(`${path}/`)) {
      throw invalidArchive(`the hard link ${shownPath(path)} leads to no file of the same layer`);
    }
    if (target === path) return;
    makeExclusively(path, () => linkSync(fsPath(target), fsPath(path)));
  };

  const makeNode = (path: string, entry: TarEntry, nodeType: number): void => {
    const isDevice = nodeType !== NodeType.fifo;
    if (isDevice && (entry.major > MAJOR_MAX || entry.minor > MINOR_MAX))
      throw invalidArchive(
        `the device ${shownPath(path)} has a number (${entry.major}:${entry.minor}) that none can have`,
      );
    const device = isDevice ? deviceNumber(entry.major, entry.minor) : 0;
    makeExclusively(path, () => makeNodeNow(callPath(path), nodeType | (entry.mode & PERMISSIONS), device));
    lchownSync(fsPath(path), entry.uid, entry.gid);
    chmodSync(fsPath(path), entry.mode);
    setXattrs(path, entry);
    setTimesNow(callPath(path), entry.mtime.seconds, entry.mtime.nanoseconds);
    count(0);
  };

  /** What this very layer has under the name stays, whichever came first: a whiteout hides lower layers only. */
  const makeWhiteout = (directory: string, name: string): void => {
    if (name === '' || name === '.' || name === '..') throw invalidArchive('it has a whiteout of no file');
    const path = inDirectory(directory, name);
    const existing = statOf(path);
    if (existing === null) {
      makeNodeNow(callPath(path), NodeType.characterDevice, 0);
      count(0);
    } else if (existing.isDirectory()) {
      opaque.add(path);
    }
  };

  const takeMarker = (directory: string, name: string): void => {
    if (name === OPAQUE_MARKER) return void opaque.add(directory);
    if (name.startsWith(AUFS_PREFIX)) return;
    makeWhiteout(directory, name.slice(WHITEOUT_PREFIX.length));
  };

  return { makeSymbolicLink, makeHardLink, makeNode, takeMarker };
};

export const createExtractor = (limits: ExtractLimits): Extractor => {
  const { form } = limits;
  const tally = createTally(limits);
  const tree = createTree(form, tally);
  const { directories, makeDirectory } = tree;
  const { makeFile, finishFile, write, skip } = createFiles(tree, tally);
  const { makeSymbolicLink, makeHardLink, makeNode, takeMarker } = createMakers(form, tree, tally);

  const make = (entry: TarEntry): void => {
    const place = directories.place(entry.path);
    if (place === null) {
      if (entry.type !== 'directory') throw invalidArchive("the image's root is not a directory");
      makeDirectory('', entry);
      return;
    }
    const { directory, name } = place;
    if (form === 'layer' && name.startsWith(WHITEOUT_PREFIX)) return takeMarker(directory, name);
    const path = inDirectory(directory, name);
    switch (entry.type) {
      case 'file':
        return makeFile(path, entry);
      case 'directory':
        return makeDirectory(path, entry);
      case 'symbolicLink':
        return makeSymbolicLink(path, entry);
      case 'hardLink':
        return makeHardLink(path, entry);
      case 'character':
        return makeNode(path, entry, NodeType.characterDevice);
      case 'block':
        return makeNode(path, entry, NodeType.blockDevice);
      case 'fifo':
        return makeNode(path, entry, NodeType.fifo);
    }
  };

  const handler: FileHandler = {
    entry: (member) => {
      const entry = form === 'files' || form === 'description' ? plain(member) : member;
      tally.takeEntry(entry);
      if (form !== 'description' || isDescription(entry)) make(entry);
    },
    data: write,
    hole: skip,
    endEntry: finishFile,
  };

  return { handler, finish: () => ({ ...tree.finish(), ...tally.used() }) };
};

/** Larger ones are nobody's description. */
const DESCRIPTION_BYTES_MAX = 65_536;

const isDescription = ({ path, sizeBytes }: TarEntry): boolean =>
  componentsOf(path).join('/') === CHECKPOINT_FILES.description && sizeBytes <= DESCRIPTION_BYTES_MAX;

const tooMuch = (what: string, much: string): FailureError =>
  new FailureError('ImageInvalid', `${what} has ${much}, which is more than is allowed.`);

/** A file or directory for root alone, whatever the archive says of it. */
const plain = (member: TarEntry): TarEntry => {
  if (member.type !== 'file' && member.type !== 'directory')
    throw invalidArchive(`${shownPath(member.path)} is neither a file nor a directory`);
  return { ...member, uid: 0, gid: 0, mode: member.type === 'file' ? 0o600 : 0o700, xattrs: new Map() };
};
