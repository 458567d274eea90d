/**
 * What each report counts and how its rows look: data, from which calls and restarts become items and groups become cells
 * and JSON. Reads nothing.
 */
import { codeName } from '../../domain/model/errors.ts';
import { bytes, duration, grouped, type ShowTime, shortId, utcTime } from '../format.ts';
import { isWholeId } from '../things.ts';
import type { Field, Group, Key } from './count.ts';
import { namesOf, type Place } from './place.ts';
import type { CallRow, Restart } from './rows.ts';

export interface ReportColumn {
  readonly title: string;
  readonly text: (group: Group, showTime: ShowTime) => string;
  readonly json: (group: Group) => Readonly<Record<string, Field>>;
}

interface Shape {
  /** Above its rows in the summary. */
  readonly title: string;
  readonly columns: readonly ReportColumn[];
}

interface CallReport extends Shape {
  readonly of: 'calls';
  /** In SQL on the view calls: which it is about; null: all. */
  readonly condition: string | null;
  readonly isAbout: (call: CallRow) => boolean;
  readonly keyOf: (call: CallRow, place: Place) => Key;
  readonly isFailed: (call: CallRow) => boolean;
  readonly ranks: 'counts' | 'durations';
  /** Rows of a lesser rank come first, however few they count. */
  readonly rankOf: (key: Key) => number;
}

interface RestartReport extends Shape {
  readonly of: 'restarts';
  readonly keyOf: (restart: Restart) => Key;
}

export type Report = CallReport | RestartReport;

const NS_PER_MS = 1e6;
const tookText = (ms: number): string => duration(BigInt(Math.round(ms * NS_PER_MS)));
const fieldText = (field: Field | undefined): string => String(field ?? '-');

const keyColumn = (title: string, name: string): ReportColumn => ({
  title,
  text: ({ key }) => fieldText(key[name]),
  json: ({ key }) => ({ [name]: key[name] ?? null }),
});

const nameText = (name: Field | undefined): string =>
  typeof name === 'string' && isWholeId(name) ? shortId(name) : fieldText(name);

const caller: ReportColumn = {
  title: 'CALLER',
  text: ({ key }) => `${fieldText(key['caller'])}${key['callerUid'] === null ? '' : ` uid ${key['callerUid']}`}`,
  json: ({ key }) => ({ caller: key['caller'] ?? null, callerUid: key['callerUid'] ?? null }),
};
const place: ReportColumn = {
  title: 'WHERE',
  text: ({ key }) => {
    const parts = ['namespace', 'pod', 'container'].map((name) => key[name] ?? null);
    return parts.every((part) => part === null)
      ? '-'
      : parts
          .filter((part) => part !== null)
          .map(nameText)
          .join('/');
  },
  json: ({ key }) => ({
    namespace: key['namespace'] ?? null,
    pod: key['pod'] ?? null,
    container: key['container'] ?? null,
  }),
};
const count: ReportColumn = {
  title: 'COUNT',
  text: (group) => grouped(group.count),
  json: (group) => ({ count: group.count }),
};
const failed: ReportColumn = {
  title: 'FAILED',
  text: (group) => grouped(group.failed),
  json: (group) => ({ failed: group.failed }),
};
const unanswered: ReportColumn = {
  title: 'NO ANSWER',
  text: (group) => grouped(group.unanswered),
  json: (group) => ({ unanswered: group.unanswered }),
};
const mean: ReportColumn = {
  title: 'MEAN',
  text: ({ timed, totalMs }) => (timed === 0 ? '-' : tookText(totalMs / timed)),
  json: ({ timed, totalMs }) => ({ meanMs: timed === 0 ? null : totalMs / timed }),
};
const longest: ReportColumn = {
  title: 'LONGEST',
  text: ({ timed, maxMs }) => (timed === 0 ? '-' : tookText(maxMs)),
  json: ({ timed, maxMs }) => ({ maxMs: timed === 0 ? null : maxMs }),
};
const took: ReportColumn = {
  title: 'TOOK',
  text: ({ maxMs }) => tookText(maxMs),
  json: ({ maxMs }) => ({ durationMs: maxMs }),
};
const size: ReportColumn = {
  title: 'SIZE',
  // Of nothing that came nobody knows how large it is.
  text: ({ sized, sizeBytes }) => (sized === 0 ? '-' : bytes(sizeBytes)),
  json: ({ sized, sizeBytes }) => ({ sizeBytes: sized === 0 ? null : sizeBytes }),
};
const first: ReportColumn = {
  title: 'FIRST',
  text: ({ firstNs }, showTime) => showTime(firstNs),
  json: ({ firstNs }) => ({ first: utcTime(firstNs) }),
};
const last: ReportColumn = {
  title: 'LAST',
  text: ({ lastNs }, showTime) => showTime(lastNs),
  json: ({ lastNs }) => ({ last: utcTime(lastNs) }),
};
const time: ReportColumn = {
  title: 'TIME',
  text: ({ firstNs }, showTime) => showTime(firstNs),
  json: ({ firstNs }) => ({ time: utcTime(firstNs) }),
};

const hasFailed = ({ code }: CallRow): boolean => code !== null && code !== 0;
const callerOf = (call: CallRow): Key => ({ caller: call.caller, callerUid: call.callerUid });

/** Whether a call came to a method at all. */
const outcomeOf = ({ recordedAs }: CallRow): string => {
  if (recordedAs === 'Refused') return 'refused';
  return recordedAs === 'Unimplemented' ? 'not offered' : 'failed';
};

const EXECS: readonly string[] = ['ExecSync', 'ExecSession', 'AttachSession', 'PortForwardSession'];

export const reports = {
  execs: {
    title: 'Commands and sessions in containers',
    of: 'calls',
    condition: `method IN (${EXECS.map((method) => `'${method}'`).join(', ')})`,
    isAbout: ({ method }) => EXECS.includes(method),
    keyOf: (call, at) => ({ ...callerOf(call), ...namesOf(at), method: call.method, program: call.program }),
    isFailed: (call) => hasFailed(call) || (call.exitCode ?? 0) !== 0,
    ranks: 'counts',
    // Sessions are people's, ExecSync is mostly probes, of which there are thousands.
    rankOf: ({ method }) => (method === 'ExecSync' ? 1 : 0),
    columns: [count, failed, caller, place, keyColumn('METHOD', 'method'), keyColumn('PROGRAM', 'program'), last],
  },
  pulls: {
    title: 'Image pulls',
    of: 'calls',
    condition: "method = 'PullImage'",
    isAbout: ({ method }) => method === 'PullImage',
    keyOf: (call) => ({ image: call.image, ...callerOf(call) }),
    isFailed: hasFailed,
    ranks: 'counts',
    rankOf: () => 0,
    columns: [count, failed, keyColumn('IMAGE', 'image'), caller, size, mean, longest, last],
  },
  failures: {
    title: 'Calls that failed or were refused',
    of: 'calls',
    condition: 'code <> 0',
    isAbout: hasFailed,
    keyOf: (call) => ({
      outcome: outcomeOf(call),
      method: call.method,
      code: codeName(call.code ?? 0),
      reason: call.failure,
      ...callerOf(call),
    }),
    isFailed: hasFailed,
    ranks: 'counts',
    rankOf: () => 0,
    columns: [
      count,
      keyColumn('OUTCOME', 'outcome'),
      keyColumn('METHOD', 'method'),
      keyColumn('CODE', 'code'),
      keyColumn('REASON', 'reason'),
      caller,
      first,
      last,
    ],
  },
  restarts: {
    title: 'Restarts of containers',
    of: 'restarts',
    keyOf: ({ container, reason, exitStatus }) => ({ ...namesOf(container), reason, exitStatus }),
    columns: [count, place, keyColumn('REASON', 'reason'), keyColumn('EXIT STATUS', 'exitStatus'), first, last],
  },
  slowest: {
    title: 'Slowest calls',
    of: 'calls',
    condition: null,
    isAbout: () => true,
    keyOf: (call, at) => ({
      record: call.seq,
      method: call.method,
      ...namesOf(at),
      image: call.image,
      code: call.code === null ? null : codeName(call.code),
      ...callerOf(call),
    }),
    isFailed: hasFailed,
    ranks: 'durations',
    rankOf: () => 0,
    columns: [
      took,
      keyColumn('METHOD', 'method'),
      place,
      keyColumn('IMAGE', 'image'),
      keyColumn('CODE', 'code'),
      caller,
      time,
      keyColumn('RECORD', 'record'),
    ],
  },
  callers: {
    title: 'Callers',
    of: 'calls',
    condition: null,
    isAbout: () => true,
    keyOf: callerOf,
    isFailed: hasFailed,
    ranks: 'counts',
    rankOf: () => 0,
    columns: [count, failed, unanswered, caller, mean, longest, first, last],
  },
} as const satisfies Readonly<Record<string, Report>>;

export type Word = keyof typeof reports;
export const WORDS = Object.keys(reports) as readonly Word[];

export const isWord = (text: string): text is Word => Object.hasOwn(reports, text);
