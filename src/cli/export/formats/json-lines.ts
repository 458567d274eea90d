/** A record with its columns, as `scribe history --json` names them, and the node it is from. Pure. */
import { namedObjectJson } from '../../history/named-object.ts';
import { columnsOf } from '../../record-columns.ts';
import type { Format } from '../item.ts';
import { bodyAt } from '../level.ts';

export const jsonLines: Format = ({ node, record, hashes, object }, level) => ({
  node,
  ...columnsOf(record, hashes),
  body: bodyAt(level, record),
  object: namedObjectJson(object),
});
