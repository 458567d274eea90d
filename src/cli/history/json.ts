/** Entries of a history as JSON, an object per line: what programs read. */
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord, ReadRow } from '../../journal/types.ts';
import { bodyAt } from '../export/level.ts';
import { jsonLine, utcTime } from '../format.ts';
import { type Output, write } from '../io.ts';
import { columnsOf } from '../record-columns.ts';
import type { Entry } from './entries.ts';
import { namedObject, type NamedObject, namedObjectJson, objectsOfCall, streamsAbout } from './named-object.ts';
import type { Names } from './names.ts';
import type { Shown } from './rows.ts';

const CHARS_HELD_MAX = 32 * 1024;

type HashesOf = JournalReader['hashesOf'];

const recordJson = (hashesOf: HashesOf, record: JournalRecord, about: NamedObject): object => ({
  ...columnsOf(record, hashesOf(record.seq)),
  body: bodyAt('request-response', record),
  object: namedObjectJson(about),
});

const readJson = (row: ReadRow): object => ({
  read: true,
  time: utcTime(row.atNs),
  at: String(row.atNs),
  method: row.method,
  code: row.code,
  durationNs: String(row.durationNs),
  callerPid: row.callerPid,
  callerUid: row.callerUid,
  subject: row.subject,
});

const objectsOf = (names: Names, hashesOf: HashesOf, entry: Entry): object[] => {
  switch (entry.kind) {
    case 'call': {
      const { received, events, completed, streams } = entry;
      const request = received?.event.body.request;
      const [about] = objectsOfCall(names, request, streamsAbout(request, completed, streams));
      const records = [received?.record, ...events, completed?.record].filter((record) => record !== undefined);
      return records.map((record) => {
        const own = namedObject(names, record.stream);
        return recordJson(hashesOf, record, own.kind === 'call' ? (about ?? own) : own);
      });
    }
    case 'event':
      return [recordJson(hashesOf, entry.record, namedObject(names, entry.record.stream))];
    case 'read':
      return [readJson(entry.row)];
    case 'pruned':
      return [{ pruned: { fromSeq: entry.fromSeq, toSeq: entry.toSeq } }];
  }
};

/** An object per record, with all of its columns; a call's records one after another. */
export const showJson = (output: Output, names: Names, hashesOf: HashesOf): Shown => {
  let text = '';
  const flush = async (): Promise<void> => {
    const written = text;
    text = '';
    if (written !== '') await write(output, written);
  };
  return {
    flush,
    async show(entry) {
      for (const object of objectsOf(names, hashesOf, entry)) text += jsonLine(object);
      if (text.length >= CHARS_HELD_MAX) await flush();
    },
  };
};
