/**
 * What a request has more than this contract knows, as from a kubelet of a later one: told by field and size, so that the
 * journal does not pass over it, and by value, up to a bound, so that a later contract can read it. Values are not kept
 * beside secrets of today, where those of tomorrow may come (C12; docs/decisions/unknown-fields.md).
 */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { UnknownField } from '../../../domain/model/unknown-fields.ts';
import { fields, requestTypes } from '../../../wire/fields.ts';

/**
 * Messages that hold a secret themselves, and those that hold such a message: another kind of the same secret would stand
 * beside it. Of what comes in as ExecSync, the audit policy may seal the command.
 */
export const BESIDE_SECRETS: ReadonlySet<string> = new Set([
  'runtime.v1.AuthConfig',
  'runtime.v1.PullImageRequest',
  'runtime.v1.KeyValue',
  'runtime.v1.ContainerConfig',
  'runtime.v1.ExecSyncRequest',
]);
const VALUE_BYTES_MAX = 4_096;
/** Of all values that are kept of a request. */
const KEPT_BYTES_MAX = 16_384;
/** So many are told of; a client that sends more is not of any contract. */
const FIELDS_MAX = 16;
const NONE: readonly UnknownField[] = [];

const utf8 = new TextDecoder('utf-8', { fatal: true });
const UNPRINTABLE = /\p{Cc}/u;

/** Text as it is, where it is text; else bytes in base64. */
const valueOf = (bytes: Uint8Array): Pick<UnknownField, 'text' | 'base64'> => {
  try {
    const text = utf8.decode(bytes);
    if (!UNPRINTABLE.test(text)) return { text };
  } catch {
    // Not UTF-8: it is bytes.
  }
  return { base64: Buffer.from(bytes).toString('base64') };
};

type Value = Pick<UnknownField, 'text' | 'base64'>;

/** What is behind a tag of this wire type; the value is null where it is too large, or a group. */
const readField = (
  reader: BinaryReader,
  number: number,
  wireType: WireType,
): { bytes: number; value: Value | null } => {
  const start = reader.pos;
  const fixed = (text: string): ReturnType<typeof readField> => ({ bytes: reader.pos - start, value: { text } });
  switch (wireType) {
    case WireType.Varint:
      return fixed(String(reader.uint64()));
    case WireType.Bit32:
      return fixed(String(reader.fixed32()));
    case WireType.Bit64:
      return fixed(String(reader.fixed64()));
    case WireType.LengthDelimited: {
      const value = reader.bytes();
      return { bytes: value.length, value: value.length <= VALUE_BYTES_MAX ? valueOf(value) : null };
    }
    case WireType.StartGroup:
    case WireType.EndGroup:
      reader.skip(wireType, number);
      return { bytes: reader.pos - start, value: null };
  }
};

interface Found {
  readonly fields: UnknownField[];
  keptBytes: number;
}

const collect = (reader: BinaryReader, end: number, type: string, path: string, found: Found): void => {
  const known = fields[type] ?? {};
  while (reader.pos < end && found.fields.length < FIELDS_MAX) {
    const [number, wireType] = reader.tag();
    const [name, inner] = known[number] ?? [];
    if (name === undefined) {
      const { bytes, value } = readField(reader, number, wireType);
      const isKept = value !== null && !BESIDE_SECRETS.has(type) && found.keptBytes + bytes <= KEPT_BYTES_MAX;
      if (isKept) found.keptBytes += bytes;
      found.fields.push({ field: `${path}${number}`, bytes, ...(isKept ? { ...value, wireType } : {}) });
    } else if (inner !== undefined && wireType === WireType.LengthDelimited) {
      const innerEnd = reader.uint32() + reader.pos;
      collect(reader, innerEnd, inner, `${path}${name}.`, found);
      reader.pos = innerEnd;
    } else reader.skip(wireType, number);
  }
};

/**
 * Finds them in the bytes of requests of a method, named by its path; for bytes that were decoded as that request before.
 * Of other services than CRI's nothing is told.
 */
export const unknownFieldsIn = (methodPath: string): ((bytes: Uint8Array) => readonly UnknownField[]) => {
  const type = requestTypes[methodPath];
  if (type === undefined) return () => NONE;
  return (bytes) => {
    const found: Found = { fields: [], keptBytes: 0 };
    collect(new BinaryReader(bytes), bytes.length, type, '', found);
    return found.fields.length === 0 ? NONE : found.fields;
  };
};
