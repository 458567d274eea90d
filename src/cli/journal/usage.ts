/**
 * What a journal's records take, by type and by the class that retention keeps them for, how fast they grow, and when that
 * meets a limit. Counts and reckons; reads no file and shows nothing.
 */
import { NODE_STREAM } from '../../domain/model/records.ts';
import { type CallClass, classOfRequest, isFailed } from '../../domain/turn/closed-streams.ts';
import type { SizedRecord } from '../../journal/sizes.ts';

/**
 * What a record is kept as: `reads` (calls that only read, where rules have them recorded whole), `commands` (ExecSync),
 * `sessions` and `refused` (calls that did nothing), each with what was done on its behalf; `removed` (all else about pods,
 * containers and images that are gone, connections of NRI plugins that are over, and calls that are over), `present` (about what is there: kept as long as it is).
 */
export const RECORD_CLASSES = ['reads', 'commands', 'sessions', 'refused', 'removed', 'present'] as const;
export type RecordClass = (typeof RECORD_CLASSES)[number];

export interface Usage {
  readonly records: number;
  readonly bodyBytes: number;
  readonly oldestAtMs: number | null;
}

export interface Counted {
  readonly types: ReadonlyMap<string, Usage>;
  readonly classes: ReadonlyMap<RecordClass, Usage>;
  readonly all: Usage;
  readonly newestAtMs: number | null;
  /** Of the newest records, as far back as growth is told from. */
  readonly recent: Usage;
}

const CLASS_OF: Readonly<Record<CallClass, RecordClass>> = {
  reads: 'reads',
  probes: 'commands',
  sessions: 'sessions',
  'refused calls': 'refused',
};
const DAY_MS = 86_400_000;
/** Growth is told from the last week: a day of it may be a quiet one. */
export const GROWTH_DAYS = 7;
/** From less nobody can tell. */
const GROWTH_MS_MIN = 10 * 60_000;

const NONE: Usage = { records: 0, bodyBytes: 0, oldestAtMs: null };

const plus = (usage: Usage, { atMs, bodyBytes }: Pick<SizedRecord, 'atMs' | 'bodyBytes'>): Usage => ({
  records: usage.records + 1,
  bodyBytes: usage.bodyBytes + bodyBytes,
  oldestAtMs: Math.min(usage.oldestAtMs ?? atMs, atMs),
});

/**
 * Counts records that come in order. A call goes with the last object that it touched, so until all are counted nobody
 * knows what the records of its own stream are kept as.
 *
 * @param isPresent  whether the object of a stream is there
 * @param recentFromMs  from when on records count for growth
 * @param hasOwnTime  whether calls of a class are kept for a time of their own
 * @param overWith  seqs of what is over with a record though its stream is there, as retention has it
 */
export const createUsageCounter = (
  isPresent: (stream: string) => boolean,
  recentFromMs: number,
  hasOwnTime: (one: RecordClass) => boolean,
  overWith: (record: SizedRecord) => readonly number[] = () => [],
) => {
  const types = new Map<string, Usage>();
  const classes = new Map<RecordClass, Usage>(RECORD_CLASSES.map((one) => [one, NONE]));
  const classOfCalls = new Map<number, RecordClass>();
  const failed = new Set<number>();
  const touching = new Set<number>();
  const callsOfPresent = new Set<number>();
  const calls: Pick<SizedRecord, 'atMs' | 'bodyBytes' | 'call'>[] = [];
  const over = new Set<number>();
  const ofNode: Pick<SizedRecord, 'seq' | 'atMs' | 'bodyBytes'>[] = [];
  let [all, recent] = [NONE, NONE];
  let newestAtMs: number | null = null;

  const addTo = (to: RecordClass, record: Pick<SizedRecord, 'atMs' | 'bodyBytes'>): void => {
    classes.set(to, plus(classes.get(to) ?? NONE, record));
  };

  const learn = ({ seq, type, call, bodyStart }: SizedRecord): void => {
    const found = type === 'call.received' ? classOfRequest(bodyStart) : null;
    if (found !== null && hasOwnTime(CLASS_OF[found])) classOfCalls.set(seq, CLASS_OF[found]);
    if (type === 'call.completed' && call !== null && isFailed(bodyStart)) failed.add(call);
  };

  const isRefused = (call: number): boolean => hasOwnTime('refused') && failed.has(call) && !touching.has(call);

  return {
    add: (record: SizedRecord): void => {
      const { seq, atMs, type, stream, call, bodyBytes } = record;
      types.set(type, plus(types.get(type) ?? NONE, record));
      all = plus(all, record);
      if (atMs >= recentFromMs) recent = plus(recent, record);
      newestAtMs = Math.max(newestAtMs ?? atMs, atMs);
      learn(record);
      for (const one of overWith(record)) over.add(one);
      const own = call === null ? undefined : classOfCalls.get(call);
      if (own !== undefined) return addTo(own, record);
      if (stream.startsWith('call/')) return void calls.push({ atMs, bodyBytes, call });
      if (call !== null) touching.add(call);
      if (call !== null && isPresent(stream)) callsOfPresent.add(call);
      if (stream === NODE_STREAM && isPresent(stream)) return void ofNode.push({ seq, atMs, bodyBytes });
      addTo(isPresent(stream) ? 'present' : 'removed', record);
    },
    counted: (): Counted => {
      for (const record of ofNode.splice(0)) addTo(over.has(record.seq) ? 'removed' : 'present', record);
      for (const record of calls.splice(0)) {
        const { call } = record;
        if (call !== null && isRefused(call)) addTo('refused', record);
        else addTo(call !== null && callsOfPresent.has(call) ? 'present' : 'removed', record);
      }
      return { types, classes, all, recent, newestAtMs };
    },
  };
};

/** Bytes a day; null where too little time is told of. */
export const growthPerDay = ({ recent, newestAtMs }: Counted, bytesPerRecord: number): number | null => {
  const spanMs = (newestAtMs ?? 0) - (recent.oldestAtMs ?? 0);
  if (spanMs < GROWTH_MS_MIN) return null;
  return ((recent.bodyBytes + recent.records * bytesPerRecord) / spanMs) * DAY_MS;
};

/** In how many days so much more is written; 0 when it is now, null when that never comes. */
export const daysUntil = (bytes: number, perDay: number | null): number | null => {
  if (bytes <= 0) return 0;
  return perDay === null || perDay <= 0 ? null : bytes / perDay;
};
