/**
 * One 512-byte header of a tar archive (POSIX ustar, GNU and star forms) and the records of a PAX extended header.
 * Pure functions over bytes. Names are kept byte by byte as latin1 text, because a file name need not be UTF-8.
 * Archives come from anyone: every field is checked, and what has more than one reading is refused.
 */
import { FailureError } from '../../../domain/model/errors.ts';

export const BLOCK_BYTES = 512;

/** Kinds of members, by what is to be made of them. */
export type TarEntryType = 'file' | 'hardLink' | 'symbolicLink' | 'character' | 'block' | 'directory' | 'fifo';

/** Kinds of members that only describe the next one. */
export type TarMetaType = 'paxHeader' | 'globalPaxHeader' | 'gnuLongName' | 'gnuLongLink';

/** Times are whole seconds since 1970 and nanoseconds (0 to 999,999,999) after them. */
export interface TarTime {
  readonly seconds: number;
  readonly nanoseconds: number;
}

export interface TarHeader {
  readonly type: TarEntryType | TarMetaType;
  /** Written before directories had a type of their own: one is told by the slash at the end of its whole name. */
  readonly isOldForm: boolean;
  readonly path: string;
  readonly linkPath: string;
  /** Permission bits, with setuid, setgid and sticky. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly sizeBytes: number;
  readonly mtime: TarTime;
  readonly major: number;
  readonly minor: number;
  /** In GNU tar's oldest form of files with holes. */
  readonly sparse?: SparseFile;
  /** More of its map follows, in blocks of their own. */
  readonly hasMoreMap: boolean;
}

/** What a PAX header says of the member after it; absent fields leave the member's own header in force. */
export interface PaxOverrides {
  readonly path?: string;
  readonly linkPath?: string;
  readonly uid?: number;
  readonly gid?: number;
  readonly sizeBytes?: number;
  readonly mtime?: TarTime;
  readonly xattrs: ReadonlyMap<string, Buffer>;
  /** The member's data is that of a file with holes, in one of GNU tar's three later forms (sparse.ts). */
  readonly sparse?: SparseFile;
}

/** A part of a file with holes. */
export interface SparsePart {
  readonly offset: number;
  readonly sizeBytes: number;
}

/** A file with holes, as it is once it is unpacked. */
export interface SparseFile {
  readonly sizeBytes: number;
  /** null: the member's data begins with them. */
  readonly parts: readonly SparsePart[] | null;
}

/** Archives that nobody makes so may have none. */
export const sparseRefused = (): FailureError =>
  invalidArchive('it has a sparse file, a form that is not supported: pack it without --sparse');

export const invalidArchive = (what: string): FailureError =>
  new FailureError('ImageInvalid', `The tar archive is malformed: ${what}.`);

const MODE_MASK = 0o7777;
const NANOSECONDS_DIGITS = 9;

const OLD_FILE_FLAG = '\0';

const typeOfFlag: Readonly<Record<string, TarHeader['type']>> = {
  [OLD_FILE_FLAG]: 'file',
  '0': 'file',
  '1': 'hardLink',
  '2': 'symbolicLink',
  '3': 'character',
  '4': 'block',
  '5': 'directory',
  '6': 'fifo',
  '7': 'file',
  S: 'file',
  x: 'paxHeader',
  g: 'globalPaxHeader',
  L: 'gnuLongName',
  K: 'gnuLongLink',
};

const hasData: Readonly<Record<TarHeader['type'], boolean>> = {
  file: true,
  hardLink: false,
  symbolicLink: false,
  character: false,
  block: false,
  directory: false,
  fifo: false,
  paxHeader: true,
  globalPaxHeader: true,
  gnuLongName: true,
  gnuLongLink: true,
};

/** Bytes up to the first NUL, each as one character. */
export const textUpToNul = (bytes: Uint8Array, from = 0, to = bytes.length): string => {
  const end = bytes.subarray(from, to).indexOf(0);
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, end < 0 ? to - from : end).toString('latin1');
};

/** GNU's and star's base-256 form: the top bit set, then a big-endian two's complement number. */
const parseBinaryNumber = (field: Uint8Array, what: string): number => {
  const first = field[0] ?? 0;
  const negative = (first & 0x40) !== 0;
  let value = BigInt(first & 0x7f) - (negative ? 0x80n : 0n);
  for (const byte of field.subarray(1)) value = value * 256n + BigInt(byte);
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw invalidArchive(`its ${what} is out of range`);
  return number;
};

const parseNumber = (header: Uint8Array, from: number, length: number, what: string): number => {
  const field = header.subarray(from, from + length);
  if (((field[0] ?? 0) & 0x80) !== 0) return parseBinaryNumber(field, what);
  const text = textUpToNul(field).trim();
  if (text === '') return 0;
  if (!/^[0-7]+$/.test(text)) throw invalidArchive(`its ${what} is not an octal number`);
  return Number.parseInt(text, 8);
};

const parseCount = (header: Uint8Array, from: number, length: number, what: string): number => {
  const value = parseNumber(header, from, length, what);
  if (value < 0) throw invalidArchive(`its ${what} is negative`);
  return value;
};

const CHECKSUM_OFFSET = 148;
const CHECKSUM_BYTES = 8;

/** The sum of all bytes, with the checksum itself read as spaces. */
const sumOf = (header: Uint8Array, valueOf: (byte: number) => number): number => {
  let sum = CHECKSUM_BYTES * 0x20;
  for (let index = 0; index < CHECKSUM_OFFSET; index += 1) sum += valueOf(header[index] ?? 0);
  for (let index = CHECKSUM_OFFSET + CHECKSUM_BYTES; index < BLOCK_BYTES; index += 1)
    sum += valueOf(header[index] ?? 0);
  return sum;
};

const unsigned = (byte: number): number => byte;
const signed = (byte: number): number => (byte > 127 ? byte - 256 : byte);

/** Some old writers summed signed bytes. */
const checksumHolds = (header: Uint8Array): boolean => {
  const stored = parseNumber(header, CHECKSUM_OFFSET, CHECKSUM_BYTES, 'checksum');
  return stored === sumOf(header, unsigned) || stored === sumOf(header, signed);
};

/** ustar keeps the front of a long path in a field of its own, star in a shorter one, GNU has other things there. */
const prefixOf = (header: Uint8Array): string => {
  const magic = Buffer.from(header.buffer, header.byteOffset + 257, 8).toString('latin1');
  if (!magic.startsWith('ustar\0')) return '';
  const isStar = Buffer.from(header.buffer, header.byteOffset + 508, 4).toString('latin1') === 'tar\0';
  return textUpToNul(header, 345, isStar ? 476 : 500);
};

const SPARSE_ENTRY_BYTES = 24;

/** GNU tar's oldest form of a map: as many entries as there are, each an offset and a length, and whether more follow. */
const partsIn = (block: Uint8Array, from: number, entries: number, what = 'map of a sparse file'): SparsePart[] => {
  const parts: SparsePart[] = [];
  for (let at = from; at < from + entries * SPARSE_ENTRY_BYTES && block[at] !== 0; at += SPARSE_ENTRY_BYTES)
    parts.push({ offset: parseCount(block, at, 12, what), sizeBytes: parseCount(block, at + 12, 12, what) });
  return parts;
};

/** Parses a block that goes on with the map of the header before it. */
export const parseMoreMap = (
  block: Uint8Array,
): { readonly parts: readonly SparsePart[]; readonly hasMore: boolean } => ({
  parts: partsIn(block, 0, 21),
  hasMore: block[504] !== 0,
});

/** star has the same flag and another layout. */
const parseOldSparse = (header: Uint8Array): SparseFile => {
  if (Buffer.from(header.buffer, header.byteOffset + 257, 8).toString('latin1') !== 'ustar  \0') throw sparseRefused();
  return { sizeBytes: parseCount(header, 483, 12, 'size'), parts: partsIn(header, 386, 4) };
};

/** Parses a header block. Throws FailureError ImageInvalid on a bad checksum, number or kind of member. */
export const parseTarHeader = (header: Uint8Array): TarHeader => {
  if (!checksumHolds(header)) throw invalidArchive('a header has a wrong checksum');
  const flag = String.fromCharCode(header[156] ?? 0);
  const type = typeOfFlag[flag];
  if (type === undefined) throw invalidArchive(`it has a member of unknown type ${JSON.stringify(flag)}`);
  const prefix = prefixOf(header);
  const name = textUpToNul(header, 0, 100);
  const path = prefix === '' ? name : `${prefix}/${name}`;
  return {
    type,
    isOldForm: flag === OLD_FILE_FLAG,
    path,
    linkPath: textUpToNul(header, 157, 257),
    mode: parseCount(header, 100, 8, 'mode') & MODE_MASK,
    uid: parseCount(header, 108, 8, 'uid'),
    gid: parseCount(header, 116, 8, 'gid'),
    sizeBytes: hasData[type] ? parseCount(header, 124, 12, 'size') : 0,
    mtime: { seconds: parseNumber(header, 136, 12, 'mtime'), nanoseconds: 0 },
    major: type === 'character' || type === 'block' ? parseCount(header, 329, 8, 'device number') : 0,
    minor: type === 'character' || type === 'block' ? parseCount(header, 337, 8, 'device number') : 0,
    ...(flag === 'S' ? { sparse: parseOldSparse(header) } : {}),
    hasMoreMap: flag === 'S' && header[482] !== 0,
  };
};

export const carriesData = (type: TarEntryType): boolean => hasData[type];

const parseDecimal = (value: string, what: string): number => {
  const number = Number(value);
  if (!/^\d+$/.test(value) || !Number.isSafeInteger(number)) throw invalidArchive(`its ${what} is not a number`);
  return number;
};

/** Decimal seconds with a fraction of any length; before 1970 the fraction counts down. */
const parseTime = (value: string): TarTime => {
  const match = /^(-?)(\d{1,15})(?:\.(\d*))?$/.exec(value);
  if (match === null) throw invalidArchive('a time in a PAX header is not a number');
  const [, sign, whole, fraction] = match;
  const digits = (fraction ?? '').slice(0, NANOSECONDS_DIGITS).padEnd(NANOSECONDS_DIGITS, '0');
  const seconds = Number(whole);
  const nanoseconds = Number(digits);
  if (sign !== '-') return { seconds, nanoseconds };
  return nanoseconds === 0
    ? { seconds: 0 - seconds, nanoseconds }
    : { seconds: 0 - seconds - 1, nanoseconds: 1e9 - nanoseconds };
};

const XATTR_PREFIX = 'SCHILY.xattr.';
const RECORD_LENGTH_DIGITS_MAX = 10;

/** Splits "length key=value\n" records; values are bytes and may hold anything but what ends them by their length. */
const paxRecords = (data: Buffer): readonly (readonly [string, Buffer])[] => {
  const records: [string, Buffer][] = [];
  let offset = 0;
  while (offset < data.length) {
    const space = data.indexOf(0x20, offset);
    const digits =
      space < 0 ? '' : data.toString('latin1', offset, Math.min(space, offset + RECORD_LENGTH_DIGITS_MAX + 1));
    const end = offset + Number(digits);
    if (!/^\d{1,10}$/.test(digits) || end > data.length || end <= space + 1 || data[end - 1] !== 0x0a) {
      throw invalidArchive('a PAX record has a wrong length');
    }
    const equals = data.indexOf(0x3d, space + 1);
    if (equals < 0 || equals >= end) throw invalidArchive('a PAX record has no "="');
    records.push([data.toString('latin1', space + 1, equals), Buffer.from(data.subarray(equals + 1, end - 1))]);
    offset = end;
  }
  return records;
};

const nameOf = (value: Buffer): string => {
  if (value.includes(0)) throw invalidArchive('a name holds a NUL byte');
  return value.toString('latin1');
};

/** Of the numbers of a map, each an offset and a length. */
export const sparsePartsOf = (numbers: readonly number[]): SparsePart[] => {
  const parts: SparsePart[] = [];
  for (let at = 0; at < numbers.length; at += 2)
    parts.push({ offset: numbers[at] ?? 0, sizeBytes: numbers[at + 1] ?? 0 });
  return parts;
};

const SPARSE_PREFIX = 'GNU.sparse.';

/** Of the forms 0.0, where each number is a record, and 0.1, where they are one list. */
const numbersOfMap = (records: readonly (readonly [string, Buffer])[]): readonly string[] => {
  const keys = ['offset', 'numbytes'].map((key) => SPARSE_PREFIX + key);
  const single = records.filter(([key]) => keys.includes(key));
  if (single.some(([key], index) => key !== keys[index % 2])) throw sparseRefused();
  if (single.length > 0) return single.map(([, value]) => value.toString('latin1'));
  const list = records.findLast(([key]) => key === `${SPARSE_PREFIX}map`)?.[1].toString('latin1') ?? '';
  return list === '' ? [] : list.split(',');
};

/** In form 1.0, which GNU tar writes today, the map comes before the data; in the older ones it is in the header. */
const sparseOf = (records: readonly (readonly [string, Buffer])[]): SparseFile => {
  const values = new Map(records);
  const said = (key: string): string => values.get(`${SPARSE_PREFIX}${key}`)?.toString('latin1') ?? '';
  const form = `${said('major')}.${said('minor')}`;
  if (!['.', '0.0', '0.1', '1.0'].includes(form)) throw sparseRefused();
  const sizeBytes = parseDecimal(said('size') || said('realsize'), 'size');
  if (form === '1.0') return { sizeBytes, parts: null };
  const numbers = numbersOfMap(records).map((number) => parseDecimal(number, 'map of a sparse file'));
  if (numbers.length !== 2 * parseDecimal(said('numblocks'), 'map of a sparse file')) throw sparseRefused();
  return { sizeBytes, parts: sparsePartsOf(numbers) };
};

/** Parses the data of a PAX extended header (pax(1)). A later record of a key wins; an empty value unsets it. */
export const parsePaxHeader = (data: Buffer): PaxOverrides => {
  const records = paxRecords(data);
  const values = new Map(records);
  const xattrs = new Map<string, Buffer>();
  for (const [key, value] of values) {
    if (key.startsWith(XATTR_PREFIX)) xattrs.set(key.slice(XATTR_PREFIX.length), value);
  }
  const given = <T>(key: string, parse: (value: Buffer) => T): T | undefined => {
    const value = values.get(key);
    return value === undefined || value.length === 0 ? undefined : parse(value);
  };
  const number = (what: string) => (value: Buffer) => parseDecimal(value.toString('latin1'), what);
  const path = given(`${SPARSE_PREFIX}name`, nameOf) ?? given('path', nameOf);
  const linkPath = given('linkpath', nameOf);
  const uid = given('uid', number('uid'));
  const gid = given('gid', number('gid'));
  const sizeBytes = given('size', number('size'));
  const isSparse = [...values.keys()].some((key) => key.startsWith(SPARSE_PREFIX));
  const sparse = isSparse ? sparseOf(records) : undefined;
  const mtime = given('mtime', (value) => parseTime(value.toString('latin1')));
  return {
    ...(path === undefined ? {} : { path }),
    ...(linkPath === undefined ? {} : { linkPath }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    ...(sizeBytes === undefined ? {} : { sizeBytes }),
    ...(mtime === undefined ? {} : { mtime }),
    ...(sparse === undefined ? {} : { sparse }),
    xattrs,
  };
};
