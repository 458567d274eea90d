/**
 * Reads a tar archive as a stream of bytes pushed in: for each member one `entry`, its data piece by piece, and one
 * `endEntry`. Holds at most one header and one extended header in memory, whatever the archive's size. Must not know
 * what becomes of the members, nor touch the file system.
 */
import {
  BLOCK_BYTES,
  carriesData,
  invalidArchive,
  type PaxOverrides,
  parsePaxHeader,
  parseTarHeader,
  parseMoreMap,
  type SparsePart,
  sparseRefused,
  type TarEntryType,
  type TarHeader,
  type TarMetaType,
  textUpToNul,
} from './header.ts';

/** A member with everything that extended headers said of it. Paths are latin1 text: one character for each byte. */
export interface TarEntry extends Omit<TarHeader, 'type' | 'isOldForm' | 'hasMoreMap'> {
  readonly type: TarEntryType;
  readonly xattrs: ReadonlyMap<string, Buffer>;
}

/** Called in the order of the archive, synchronously; what they throw ends the reading. */
export interface TarHandler {
  readonly entry: (entry: TarEntry) => void;
  /** A piece of the current member's data, valid during the call only. */
  readonly data: (chunk: Uint8Array) => void;
  readonly endEntry: () => void;
}

export interface TarReader {
  readonly push: (chunk: Uint8Array) => void;
  /** The input has ended. Throws FailureError ImageInvalid when that was in the middle of a member. */
  readonly end: () => void;
}

/** As Go's reader has it: enough for every name and attribute the kernel takes. */
const META_BYTES_MAX = 1024 * 1024;
const PATH_BYTES_MAX = 4096;
const MAP_BLOCKS_MAX = META_BYTES_MAX / BLOCK_BYTES;

const noXattrs: ReadonlyMap<string, Buffer> = new Map();

type State =
  | { readonly at: 'header' }
  | { readonly at: 'meta'; readonly type: TarMetaType; readonly bytes: Buffer; filled: number }
  | { readonly at: 'map'; readonly member: TarHeader; readonly parts: SparsePart[]; blocks: number }
  | { readonly at: 'data'; left: number }
  | { readonly at: 'padding'; left: number }
  | { readonly at: 'end' };

const isMeta = (type: TarHeader['type']): type is TarMetaType =>
  type === 'paxHeader' || type === 'globalPaxHeader' || type === 'gnuLongName' || type === 'gnuLongLink';

const paddingOf = (sizeBytes: number): number => (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES;

/** What extended headers said of the member that follows them. */
interface SaidBefore {
  readonly pax: PaxOverrides;
  readonly longName: string | null;
  readonly longLink: string | null;
}

const nothingSaid: SaidBefore = { pax: { xattrs: noXattrs }, longName: null, longLink: null };

const mergedEntry = (own: TarHeader, type: TarEntryType, { pax, longName, longLink }: SaidBefore): TarEntry => {
  const { isOldForm, hasMoreMap: _hasMoreMap, ...said } = own;
  if (said.sparse !== undefined && pax.sparse !== undefined) throw sparseRefused();
  const entry: TarEntry = {
    ...said,
    ...(longName === null ? {} : { path: longName }),
    ...(longLink === null ? {} : { linkPath: longLink }),
    ...pax,
    type,
    sizeBytes: carriesData(type) ? (pax.sizeBytes ?? own.sizeBytes) : 0,
  };
  if (entry.path.length > PATH_BYTES_MAX || entry.linkPath.length > PATH_BYTES_MAX) {
    throw invalidArchive(`a name is longer than ${PATH_BYTES_MAX} bytes`);
  }
  // Only the whole name tells: the header alone may end in a slash where the name was cut off.
  return isOldForm && entry.path.endsWith('/') ? { ...entry, type: 'directory' } : entry;
};

type ReadingMap = State & { readonly at: 'map' };

/** Takes another block of the map; the member with what there is of it. */
const takeMoreMap = (reading: ReadingMap, block: Uint8Array): TarHeader => {
  const { member, parts } = reading;
  const more = parseMoreMap(block);
  parts.push(...more.parts);
  reading.blocks += 1;
  if (reading.blocks > MAP_BLOCKS_MAX) throw invalidArchive('the map of a sparse file is too long');
  return { ...member, sparse: { sizeBytes: member.sparse?.sizeBytes ?? 0, parts }, hasMoreMap: more.hasMore };
};

/** `mayBeSparse`: members of files with holes are let through with what is said of their maps, for sparse.ts to read. */
export const createTarReader = (handler: TarHandler, { mayBeSparse = false } = {}): TarReader => {
  let state: State = { at: 'header' };
  const header = Buffer.alloc(BLOCK_BYTES);
  let headerFilled = 0;
  let sawZeroBlock = false;
  let said = nothingSaid;
  let metaPaddingBytes = 0;

  const startEntry = (own: TarHeader, type: TarEntryType): State => {
    const entry = mergedEntry(own, type, said);
    if (entry.sparse !== undefined && !mayBeSparse) throw sparseRefused();
    said = nothingSaid;
    handler.entry(entry);
    metaPaddingBytes = paddingOf(entry.sizeBytes);
    if (entry.sizeBytes > 0) return { at: 'data', left: entry.sizeBytes };
    handler.endEntry();
    return { at: 'header' };
  };

  const takeHeader = (): State => {
    if (header.every((byte) => byte === 0)) {
      if (sawZeroBlock) return { at: 'end' };
      sawZeroBlock = true;
      return { at: 'header' };
    }
    if (sawZeroBlock) throw invalidArchive('a member follows an empty block');
    const parsed = parseTarHeader(header);
    if (parsed.hasMoreMap) return { at: 'map', member: parsed, parts: [...(parsed.sparse?.parts ?? [])], blocks: 0 };
    if (!isMeta(parsed.type)) return startEntry(parsed, parsed.type);
    if (parsed.sizeBytes > META_BYTES_MAX) throw invalidArchive('an extended header is larger than 1 MiB');
    metaPaddingBytes = paddingOf(parsed.sizeBytes);
    const meta: State = { at: 'meta', type: parsed.type, bytes: Buffer.alloc(parsed.sizeBytes), filled: 0 };
    return parsed.sizeBytes === 0 ? takeMeta(parsed.type, meta.bytes) : meta;
  };

  const takeMeta = (type: TarMetaType, bytes: Buffer): State => {
    switch (type) {
      case 'paxHeader':
        said = { ...said, pax: parsePaxHeader(bytes) };
        break;
      case 'gnuLongName':
        said = { ...said, longName: textUpToNul(bytes) };
        break;
      case 'gnuLongLink':
        said = { ...said, longLink: textUpToNul(bytes) };
        break;
      case 'globalPaxHeader':
        // Written by git archive for its own use; image tools ignore it, and so must whoever agrees with them.
        break;
    }
    return metaPaddingBytes === 0 ? { at: 'header' } : { at: 'padding', left: metaPaddingBytes };
  };

  const step = (chunk: Uint8Array, offset: number): number => {
    switch (state.at) {
      case 'map':
      case 'header': {
        const taken = Math.min(BLOCK_BYTES - headerFilled, chunk.length - offset);
        header.set(chunk.subarray(offset, offset + taken), headerFilled);
        headerFilled += taken;
        if (headerFilled === BLOCK_BYTES) {
          headerFilled = 0;
          const member = state.at === 'map' ? takeMoreMap(state, header) : null;
          if (member === null) state = takeHeader();
          else if (!member.hasMoreMap) state = startEntry(member, 'file');
        }
        return offset + taken;
      }
      case 'meta': {
        const taken = Math.min(state.bytes.length - state.filled, chunk.length - offset);
        state.bytes.set(chunk.subarray(offset, offset + taken), state.filled);
        state.filled += taken;
        if (state.filled === state.bytes.length) state = takeMeta(state.type, state.bytes);
        return offset + taken;
      }
      case 'data': {
        const taken = Math.min(state.left, chunk.length - offset);
        handler.data(chunk.subarray(offset, offset + taken));
        state.left -= taken;
        if (state.left === 0) {
          handler.endEntry();
          state = metaPaddingBytes === 0 ? { at: 'header' } : { at: 'padding', left: metaPaddingBytes };
        }
        return offset + taken;
      }
      case 'padding': {
        const taken = Math.min(state.left, chunk.length - offset);
        state.left -= taken;
        if (state.left === 0) state = { at: 'header' };
        return offset + taken;
      }
      case 'end':
        return chunk.length;
    }
  };

  return {
    push: (chunk) => {
      for (let offset = 0; offset < chunk.length; ) offset = step(chunk, offset);
    },
    end: () => {
      const isBetweenMembers = state.at === 'header' && headerFilled === 0 && said.pax === nothingSaid.pax;
      if (state.at !== 'end' && !isBetweenMembers) throw invalidArchive('it ends in the middle of a member');
    },
  };
};
