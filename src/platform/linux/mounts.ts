/**
 * The mount table (/proc/self/mountinfo, proc(5)) and the option words of mount(8) as bits of mount(2).
 * Pure but for reading the table. Must not mount anything: that is the spawner's.
 */
import { readProcFile } from './proc-file.ts';

export interface MountInfo {
  readonly id: number;
  readonly parentId: number;
  /** The directory of the mounted file system that is seen at the mount point. */
  readonly root: string;
  readonly mountPoint: string;
  /** Options of the mount itself: rw, nosuid, … */
  readonly options: readonly string[];
  readonly propagation: 'private' | 'shared' | 'slave';
  readonly fileSystemType: string;
  readonly source: string;
  /** Options of the file system behind it, the same for all its mounts. */
  readonly superOptions: readonly string[];
}

/** The kernel writes space, tab, newline and backslash as three octal digits. */
const unescaped = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

const propagationOf = (tags: readonly string[]): MountInfo['propagation'] => {
  if (tags.some((tag) => tag.startsWith('shared:'))) return 'shared';
  return tags.some((tag) => tag.startsWith('master:')) ? 'slave' : 'private';
};

/** null for a line of another form. */
export const mountInfoOf = (line: string): MountInfo | null => {
  const [before, after] = line.split(' - ', 2);
  const [id, parentId, , root, mountPoint, options, ...tags] = before?.split(' ') ?? [];
  const [fileSystemType, source, superOptions] = after?.split(' ') ?? [];
  if (!id || !parentId || !root || !mountPoint || !options || !fileSystemType) return null;
  return {
    id: Number(id),
    parentId: Number(parentId),
    root: unescaped(root),
    mountPoint: unescaped(mountPoint),
    options: options.split(','),
    propagation: propagationOf(tags),
    fileSystemType,
    source: unescaped(source ?? ''),
    superOptions: superOptions?.split(',') ?? [],
  };
};

const mountInfosOf = (lines: readonly string[]): readonly MountInfo[] =>
  lines.map(mountInfoOf).filter((mount) => mount !== null);

/** A line of the table that is not taken apart yet: a crowded node has thousands, and hardly anybody wants more of them. */
export interface MountLine {
  readonly mountPoint: string;
  readonly line: string;
}

const FIELDS_BEFORE_MOUNT_POINT = 4;

const mountLineOf = (line: string): MountLine[] => {
  let start = 0;
  for (let field = 0; field < FIELDS_BEFORE_MOUNT_POINT; field += 1) {
    start = line.indexOf(' ', start) + 1;
    if (start === 0) return [];
  }
  const end = line.indexOf(' ', start);
  return end < 0 ? [] : [{ mountPoint: unescaped(line.slice(start, end)), line }];
};

/** The table in the kernel's order: what was mounted later stands later. Lines of another form are left out. */
export const parseMountInfo = (text: string): readonly MountInfo[] => mountInfosOf(text.split('\n'));

/** In the same order, in a tenth of the time. */
export const mountLinesIn = (text: string): readonly MountLine[] => text.split('\n').flatMap(mountLineOf);

const MOUNT_TABLE = '/proc/self/mountinfo';

/** The whole table, or the lines that are wanted. */
export const readMountInfo = async (isWanted?: (mount: MountLine) => boolean): Promise<readonly MountInfo[]> => {
  const text = await readProcFile(MOUNT_TABLE);
  if (isWanted === undefined) return parseMountInfo(text);
  const wanted = mountLinesIn(text).filter(isWanted);
  return mountInfosOf(wanted.map(({ line }) => line));
};

/** For who needs some of it, and can't say which before. */
export const readMountLines = async (): Promise<readonly MountLine[]> => mountLinesIn(await readProcFile(MOUNT_TABLE));

/** The mounts of these types of file system, and all that is mounted on or below one of them. */
export const readMountsOn = async (fileSystemTypes: readonly string[]): Promise<readonly MountInfo[]> => {
  const lines = await readMountLines();
  const isOfType = ({ line }: MountLine): boolean => fileSystemTypes.some((type) => line.includes(` - ${type} `));
  const points = lines.filter(isOfType).map(({ mountPoint }) => mountPoint);
  const wanted = lines.filter(({ mountPoint }) => points.some((point) => isAtOrBelow(mountPoint, point)));
  return mountInfosOf(wanted.map(({ line }) => line));
};

export const readMountPoints = async (): Promise<readonly string[]> =>
  (await readMountLines()).map(({ mountPoint }) => mountPoint);

export const isAtOrBelow = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`);

const MS_REMOUNT = 0x20;
const MS_BIND = 0x1000;

const RECURSIVE_BIND = MS_BIND | 0x4000;

/** Words of mount(8) and the bits they set; those that name what a fresh mount is anyway set none. */
const flagOfOption: ReadonlyMap<string, number> = new Map([
  ['ro', 0x1],
  ['rw', 0],
  ['nosuid', 0x2],
  ['suid', 0],
  ['nodev', 0x4],
  ['dev', 0],
  ['noexec', 0x8],
  ['exec', 0],
  ['sync', 0x10],
  ['async', 0],
  ['remount', MS_REMOUNT],
  ['dirsync', 0x80],
  ['noatime', 0x400],
  ['atime', 0],
  ['nodiratime', 0x800],
  ['diratime', 0],
  ['relatime', 0x200000],
  ['strictatime', 0x1000000],
  ['bind', MS_BIND],
  ['rbind', RECURSIVE_BIND],
]);

/** One call of mount(2): MS_ bits, and the words left over for the file system itself. */
export interface MountCall {
  readonly flags: number;
  readonly data: string;
}

/**
 * The calls that mount with these options: one, and for a bind mount with further bits a second that sets them,
 * because the kernel ignores them on the first.
 */
export const mountCalls = (options: readonly string[]): readonly MountCall[] => {
  const flags = options.reduce((bits, option) => bits | (flagOfOption.get(option) ?? 0), 0);
  const data = options.filter((option) => !flagOfOption.has(option)).join(',');
  const further = flags & ~RECURSIVE_BIND;
  if ((flags & MS_BIND) === 0 || further === 0 || (flags & MS_REMOUNT) !== 0) return [{ flags, data }];
  return [
    { flags: flags & RECURSIVE_BIND, data },
    { flags: further | MS_BIND | MS_REMOUNT, data: '' },
  ];
};
