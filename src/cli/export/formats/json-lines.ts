/** A record with its columns, as `scribe history --json` names them, and the node it is from. Pure. */
import { containerNameJson } from '../../history/names.ts';
import { columnsOf } from '../../record-columns.ts';
import type { Format, NamedObject } from '../item.ts';
import { bodyAt } from '../level.ts';

/** null for what has no name of its own: the node, and calls, whose request says it. */
const objectOf = ({ kind, id, pod, container, image }: NamedObject): object | null => {
  switch (kind) {
    case 'sandbox':
      return { kind: 'pod', id, ...pod };
    case 'container':
      return { kind, id, ...containerNameJson(container), pod };
    case 'image':
      return { kind, id, name: image };
    case 'call':
    case 'node':
      return null;
  }
};

export const jsonLines: Format = ({ node, record, hashes, object }, level) => ({
  node,
  ...columnsOf(record, hashes),
  body: bodyAt(level, record),
  object: objectOf(object),
});
