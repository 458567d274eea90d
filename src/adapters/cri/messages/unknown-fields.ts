/**
 * What a request has more than this contract knows, as from a kubelet of a later one: told by field and size, so that the
 * journal does not pass over it. Values are kept only of fields of requests that hold no secret today and have no room for
 * one (docs/decisions/unknown-fields.md): anywhere else a field that is not known may be one (C12).
 */
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { UnknownField } from '../../../domain/model/unknown-fields.ts';
import { fields, requestTypes } from '../../../wire/fields.ts';

/** Requests whose own fields say who wants to be connected to what: an audit id (KEP-6035) is to come into two of them. */
const VALUES_KEPT: ReadonlySet<string> = new Set([
  'runtime.v1.ExecRequest',
  'runtime.v1.AttachRequest',
  'runtime.v1.PortForwardRequest',
]);
const VALUE_BYTES_MAX = 256;
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

/** The field that the reader is at, behind its tag. */
const unknownField = (reader: BinaryReader, wireType: WireType, field: string, isKept: boolean): UnknownField => {
  const start = reader.pos;
  if (wireType === WireType.LengthDelimited) {
    const bytes = reader.bytes();
    const size = { field, bytes: bytes.length };
    return isKept && bytes.length <= VALUE_BYTES_MAX ? { ...size, ...valueOf(bytes) } : size;
  }
  if (wireType === WireType.Varint) {
    const text = String(reader.uint64());
    const size = { field, bytes: reader.pos - start };
    return isKept ? { ...size, text } : size;
  }
  reader.skip(wireType);
  return { field, bytes: reader.pos - start };
};

const collect = (reader: BinaryReader, end: number, type: string, path: string, found: UnknownField[]): void => {
  const known = fields[type] ?? {};
  while (reader.pos < end && found.length < FIELDS_MAX) {
    const [number, wireType] = reader.tag();
    const [name, inner] = known[number] ?? [];
    if (name === undefined) {
      const isKept = path === '' && VALUES_KEPT.has(type);
      found.push(unknownField(reader, wireType, `${path}${number}`, isKept));
    } else if (inner !== undefined && wireType === WireType.LengthDelimited) {
      const innerEnd = reader.uint32() + reader.pos;
      collect(reader, innerEnd, inner, `${path}${name}.`, found);
      reader.pos = innerEnd;
    } else reader.skip(wireType);
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
    const found: UnknownField[] = [];
    collect(new BinaryReader(bytes), bytes.length, type, '', found);
    return found.length === 0 ? NONE : found;
  };
};
