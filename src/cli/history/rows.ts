/** Entries of a history as rows of a table for people. */
import { basename } from 'node:path';
import { isAllowing, subjectsOf } from '../../domain/call/catalogue.ts';
import { fromJournalRecord } from '../../engine/codec.ts';
import { codeName } from '../../domain/model/errors.ts';
import type { BodyOf, CallResponse, Caller, RequestOf } from '../../domain/model/records.ts';
import { containerStream, sandboxStream } from '../../domain/model/records.ts';
import { JOURNAL_PRUNED, parsePruned, parseReadsClosed, READS_CLOSED } from '../../journal/own-records.ts';
import type { JournalRecord, ReadRow } from '../../journal/types.ts';
import { bytes, counted, duration, type ShowTime } from '../format.ts';
import type { Io } from '../io.ts';
import { createTable, type Style } from '../table.ts';
import { type CallEntry, type Entry, type EventEntry, knownAs, type PrunedEntry, streamsOfAnswer } from './entries.ts';
import { methodOfEntry } from './filter.ts';
import { labelOf, type Names, podLabel, podNameOf } from './names.ts';
import { auditWords, detailOf, unknownWords, type Words, wordsOf } from './words.ts';

export interface Shown {
  readonly show: (entry: Entry) => Promise<void>;
  /** Nothing more comes soon. */
  readonly flush: () => Promise<void>;
}

const COLUMNS = [
  { title: 'TIME', widthMax: 46 },
  { title: 'WHAT', widthMax: 24 },
  { title: 'OBJECT', widthMax: 60 },
  { title: 'CALLER', widthMax: 32 },
  { title: 'TOOK', widthMax: 9 },
  { title: 'OUTCOME', widthMax: 200 },
];

const PRUNED = '(pruned)';
const DELETED = / \(deleted\)$/;

export interface Row {
  readonly cells: readonly [time: string, what: string, object: string, caller: string, took: string, outcome: string];
  readonly style: Style;
}

export const callerText = (caller: Caller | null): string => {
  if (caller === null) return '-';
  const program = caller.program ?? basename(caller.executable.replace(DELETED, ''));
  return `${program === '' ? '?' : program} pid ${caller.pid} uid ${caller.uid}`;
};

/** The object of a call in words; of one that joined another, the object that the other made. */
const objectOf = (names: Names, { received, completed }: CallEntry): string => {
  const request = received?.event.body.request;
  const id = completed?.event.body.response?.id;
  if (request === undefined) return answerText(names, completed);
  switch (request.method) {
    case 'RunPodSandbox':
      return podText(names, id ?? request.newId, request);
    case 'RestorePod':
      return [podText(names, id ?? request.newId, request), ...restoredTexts(names, request)].join(', ');
    case 'CreateContainer':
      return containerText(names, id ?? request.newId, request);
    case 'PullImage':
    case 'RemoveImage':
      return request.image;
    case 'LoadImages':
      return answerText(names, completed);
    default:
      // Of what is there already, or of nothing.
      return subjectsOf(request)
        .map((stream) => labelOf(names, stream))
        .join(', ');
  }
};

/** What an answer names, when its request is pruned. */
const answerText = (names: Names, completed: CallEntry['completed']): string => {
  const streams = completed === null ? [] : streamsOfAnswer(completed);
  return streams.map((stream) => labelOf(names, stream)).join(', ');
};

/** A request that was refused left no record of a pod; its name is in the request all the same. */
const podText = (names: Names, id: string, { config }: RequestOf<'RunPodSandbox' | 'RestorePod'>): string =>
  names.pod(id) === null ? podLabel(podNameOf(config.metadata ?? {})) : labelOf(names, sandboxStream(id));

/** Containers that came with a pod; without it there are none. */
const restoredTexts = (names: Names, { newContainerIds }: RequestOf<'RestorePod'>): string[] =>
  newContainerIds.filter((id) => names.container(id) !== null).map((id) => labelOf(names, containerStream(id)));

const containerText = (names: Names, id: string, { config, podSandboxId }: RequestOf<'CreateContainer'>): string =>
  names.container(id) === null
    ? `${labelOf(names, sandboxStream(podSandboxId))} ${config.metadata?.name ?? ''}`
    : labelOf(names, containerStream(id));

/** How much went through a session. */
const movedText = ({
  stdinBytes,
  stdoutBytes = 0,
  stderrBytes = 0,
  toPodBytes,
  fromPodBytes = 0,
}: CallResponse = {}) => {
  if (toPodBytes !== undefined) return `, ${bytes(toPodBytes)} to the pod, ${bytes(fromPodBytes)} from it`;
  return stdinBytes === undefined ? '' : `, ${bytes(stdinBytes)} in, ${bytes(stdoutBytes + stderrBytes)} out`;
};

const detailsOf = ({ request, unknownFields }: BodyOf<'call.received'>): string =>
  [detailOf(request), auditWords(request), unknownWords(unknownFields)].filter((words) => words !== '').join('; ');

const outcomeOf = ({ received, completed }: CallEntry): { readonly outcome: string; readonly style: Style } => {
  const detail = received === null ? '' : detailsOf(received.event.body);
  const about = detail === '' ? '' : ` (${detail})`;
  if (completed === null) return { outcome: `no answer yet${about}`, style: 'doubtful' };
  const { code, failure, response, detached } = completed.event.body;
  const gone = detached === true ? ', its caller had gone' : '';
  if (failure !== undefined) return { outcome: `${codeName(code)}${gone}: ${failure.message}${about}`, style: 'bad' };
  const exitCode = response?.exitCode;
  const done = isAllowing(completed.event.body.method) ? 'session allowed' : 'OK';
  const outcome = `${exitCode === undefined ? done : `exit ${exitCode}`}${movedText(response)}${gone}${about}`;
  return { outcome, style: (exitCode ?? 0) === 0 ? 'plain' : 'doubtful' };
};

const callRow = (names: Names, showTime: ShowTime, entry: CallEntry): Row => {
  const { received, completed } = entry;
  const { outcome, style } = outcomeOf(entry);
  const atNs = (received ?? completed)?.record.atNs ?? 0n;
  const took = completed === null ? '' : duration(BigInt(completed.event.body.durationNs));
  const caller = received === null ? PRUNED : callerText(received.event.body.caller);
  return {
    cells: [showTime(atNs), methodOfEntry(entry) ?? '?', objectOf(names, entry), caller, took, outcome],
    style,
  };
};

const indentOf = (depth: number): string => '  '.repeat(depth);

/** Records that the journal keeps for itself have words of their own. */
const wordsOfRecord = (record: JournalRecord): Words => {
  const style = 'faint';
  if (record.type === JOURNAL_PRUNED) {
    const { reason, seqs, segments } = parsePruned(record);
    const records = seqs.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    const dropped = segments.length === 0 ? '' : ` and ${counted(segments.length, 'segment')} of read calls`;
    return { what: 'pruned', outcome: `${counted(records, 'record')}${dropped}: ${reason}`, style };
  }
  if (record.type === READS_CLOSED) {
    return { what: 'read calls sealed', outcome: counted(parseReadsClosed(record).count, 'call'), style };
  }
  const event = fromJournalRecord(record);
  const words = event === null ? null : wordsOf(event);
  return words ?? { what: record.type, outcome: '', style };
};

/** What is not as it was written may say anything; the records around it are shown all the same (C20). */
const readableWordsOf = (record: JournalRecord): Words => {
  try {
    return wordsOfRecord(record);
  } catch {
    return { what: record.type, outcome: 'cannot be read: see scribe verify', style: 'bad' };
  }
};

const eventRow = (
  names: Names,
  showTime: ShowTime,
  { record, afterKill = false }: Pick<EventEntry, 'record' | 'afterKill'>,
  depth: number,
  tookNs: bigint | null,
): Row => {
  const object = labelOf(names, record.stream);
  const { what, outcome: said, style: usual } = readableWordsOf(record);
  // One that crashed and could say so is told of in the record.
  const isUntold = afterKill && !knownAs('daemon.started', record)?.event.body.crash;
  const outcome = isUntold ? `${said}; the one before ended without a word: it was killed, or crashed` : said;
  const style = afterKill ? 'bad' : usual;
  const took = tookNs === null ? '' : duration(tookNs);
  const indent = indentOf(depth);
  return {
    cells: [showTime(record.atNs), `${indent}${what}`, object, '', took, outcome],
    style: depth > 0 && style === 'plain' ? 'faint' : style,
  };
};

const readRow = (names: Names, showTime: ShowTime, row: ReadRow): Row => {
  const { subject, code } = row;
  const stream = [sandboxStream(subject), containerStream(subject)].find(
    (stream) => (stream.startsWith('sandbox') ? names.pod(subject) : names.container(subject)) !== null,
  );
  const object = stream === undefined ? subject : labelOf(names, stream);
  const caller = `pid ${row.callerPid} uid ${row.callerUid}`;
  return {
    cells: [showTime(row.atNs), row.method, object, caller, duration(row.durationNs), codeName(code)],
    style: code === 0 ? 'faint' : 'bad',
  };
};

interface Pruned {
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly records: number;
}

const prunedRow = ({ fromSeq, toSeq, records }: Pruned): Row => {
  const where = fromSeq === toSeq ? `record ${fromSeq}` : `records ${fromSeq} to ${toSeq}`;
  const outcome = `${counted(records, 'record')}: what they said is gone, their hashes are kept`;
  return { cells: ['', PRUNED, where, '', '', outcome], style: 'faint' };
};

/** How long each effect took: known when its request was seen too. */
const createStopwatch = (): ((record: JournalRecord) => bigint | null) => {
  const requested = new Map<number, bigint>();
  const keptMax = 10_000;
  return ({ type, seq, monoNs, cause }) => {
    if (type === 'effects.requested') {
      if (requested.size >= keptMax) requested.clear();
      requested.set(seq, monoNs);
    }
    const beganNs = type === 'effect.ended' && cause !== null ? requested.get(cause) : undefined;
    return beganNs === undefined ? null : monoNs - beganNs;
  };
};

/** What a table shows of an entry: its own row first. */
export const rowsOf = (
  names: Names,
  showTime: ShowTime,
  entry: Exclude<Entry, PrunedEntry>,
  tookNs: (record: JournalRecord) => bigint | null,
): Row[] => {
  switch (entry.kind) {
    case 'call':
      return [
        callRow(names, showTime, entry),
        ...entry.events.map((record) => eventRow(names, showTime, { record }, 1, tookNs(record))),
      ];
    case 'event':
      return [eventRow(names, showTime, entry, 0, tookNs(entry.record))];
    case 'read':
      return [readRow(names, showTime, entry.row)];
  }
};

/** A table for people. */
export const showTable = ({ stdout, holdRowsMs }: Io, names: Names, showTime: ShowTime): Shown => {
  const table = createTable(stdout, COLUMNS, holdRowsMs ?? null);
  const tookNs = createStopwatch();
  // Stretches with nothing between them that is shown make one row.
  let pruned: Pruned | null = null;

  const add = async (rows: readonly Row[]): Promise<void> => {
    for (const { cells, style } of rows) await table.add(cells, style);
  };
  const addPruned = async (): Promise<void> => {
    const stretch = pruned;
    pruned = null;
    if (stretch !== null) await add([prunedRow(stretch)]);
  };

  return {
    async show(entry) {
      if (entry.kind === 'pruned') {
        const { fromSeq, toSeq } = entry;
        const before: Pruned = pruned ?? { fromSeq, toSeq, records: 0 };
        const [first, last] = [Math.min(before.fromSeq, fromSeq), Math.max(before.toSeq, toSeq)];
        pruned = { fromSeq: first, toSeq: last, records: before.records + toSeq - fromSeq + 1 };
        return;
      }
      await addPruned();
      await add(rowsOf(names, showTime, entry, tookNs));
    },
    async flush() {
      await addPruned();
      await table.flush();
    },
  };
};
