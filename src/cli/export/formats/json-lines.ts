/** A record with its columns, as `scribe history --json` names them, and the node it is from. Pure. */
import { utcTime } from '../../format.ts';
import type { Format, NamedObject } from '../item.ts';
import { bodyAt } from '../level.ts';

const hex = (bytes: Uint8Array | undefined): string | null =>
  bytes === undefined ? null : Buffer.from(bytes).toString('hex');

/** null for what has no name of its own: the node, and calls, whose request says it. */
const objectOf = ({ kind, id, pod, container, image }: NamedObject): object | null => {
  switch (kind) {
    case 'sandbox':
      return { kind: 'pod', id, ...pod };
    case 'container':
      return { kind, id, ...container, pod };
    case 'image':
      return { kind, id, name: image };
    case 'call':
    case 'node':
      return null;
  }
};

export const jsonLines: Format = ({ node, record, hashes, object }, level) => {
  const { seq, atNs, monoNs, boot, type, v, stream, cause, call } = record;
  return {
    node,
    seq,
    time: utcTime(atNs),
    at: String(atNs),
    mono: String(monoNs),
    boot,
    type,
    v,
    stream,
    cause,
    call,
    bodyHash: hex(hashes?.bodyHash),
    hash: hex(hashes?.hash),
    body: bodyAt(level, record),
    object: objectOf(object),
  };
};
