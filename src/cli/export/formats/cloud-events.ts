/** A record as a CloudEvent 1.0 in its structured JSON form: type scribe.RECORD-TYPE, data the record's columns. Pure. */
import { utcTime } from '../../format.ts';
import { type Format, keyOf } from '../item.ts';
import { jsonLines } from './json-lines.ts';

export const cloudEvents: Format = (item, level) => {
  const { node, record } = item;
  return {
    specversion: '1.0',
    id: keyOf(item),
    source: `/scribe/${encodeURIComponent(node)}`,
    type: `scribe.${record.type}`,
    subject: record.stream,
    time: utcTime(record.atNs),
    datacontenttype: 'application/json',
    sequence: String(record.seq),
    data: jsonLines(item, level),
  };
};
