/** Entries of a history as JSON, an object per line: what programs read. */
import { subjectOf } from '../../domain/model/records.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord, ReadRow } from '../../journal/types.ts';
import { jsonLine, utcTime } from '../format.ts';
import { type Output, write } from '../io.ts';
import { columnsOf } from '../record-columns.ts';
import type { Entry } from './entries.ts';
import { containerNameJson, type Names } from './names.ts';
import type { Shown } from './rows.ts';

const CHARS_HELD_MAX = 32 * 1024;

/** What a stream tells of, with its name; null for the node itself and for calls, whose request says it. */
const namedObject = (names: Names, stream: string): object | null => {
  const { kind, id } = subjectOf(stream);
  switch (kind) {
    case 'sandbox':
      return { kind: 'pod', id, ...names.pod(id) };
    case 'container': {
      const container = names.container(id);
      return {
        kind,
        id,
        ...containerNameJson(container),
        ...(container === null ? {} : { pod: names.pod(container.podSandboxId) }),
      };
    }
    case 'image':
      return { kind, id, name: names.image(id) };
    case 'call':
    case 'node':
      return null;
  }
};

type HashesOf = JournalReader['hashesOf'];

const recordJson = (names: Names, hashesOf: HashesOf, record: JournalRecord): object => ({
  ...columnsOf(record, hashesOf(record.seq)),
  body: JSON.parse(record.body) as unknown,
  object: namedObject(names, record.stream),
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
      const { received, events, completed } = entry;
      const records = [received?.record, ...events, completed?.record].filter((record) => record !== undefined);
      return records.map((record) => recordJson(names, hashesOf, record));
    }
    case 'event':
      return [recordJson(names, hashesOf, entry.record)];
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
