/**
 * The run of the daemon before this one, as the journal has it: where it begins and ends, what it decided on last, and how
 * it is known to have ended. Looks backwards from its end, in short reads: it is for a daemon that serves.
 */
import { setImmediate as otherTurns } from 'node:timers/promises';
import type { BodyOf, Input, RecordType, Sequenced } from '../../domain/model/records.ts';
import { INPUT_TYPES } from '../../domain/turn/redecide.ts';
import { fromJournalRecord } from '../../engine/codec.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';

export interface LastRun {
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Its daemon.started. */
  readonly startedAtNs: bigint;
  readonly startedMonoNs: bigint;
  readonly version: string;
  readonly lastAtNs: bigint;
  readonly lastInput: Sequenced<Input>;
  /** When the start after it was. */
  readonly nextStartAtNs: bigint;
}

/** stopped: in order. told: it said itself why it could not go on. rebooted: nobody knows what was first, its end or the node's. */
export type LastEnd =
  | { readonly how: 'none' | 'stopped' | 'told' | 'rebooted' }
  | ({ readonly how: 'silent' } & LastRun);

type Reader = Pick<JournalReader, 'page'>;

/** What is looked for is mostly near the end; a run may also have been a long one. */
const WINDOW_RECORDS = { first: 64, max: 4_096 } as const;
const STARTED: RecordType = 'daemon.started';
const STOPPED: RecordType = 'daemon.stopped';

function* recordsIn(
  reader: Reader,
  types: readonly string[],
  fromSeq: number,
  toSeq: number,
): Generator<JournalRecord> {
  for (let cursor = fromSeq; cursor <= toSeq; ) {
    const { records, next } = reader.page({ types }, cursor, toSeq);
    yield* records;
    cursor = next;
  }
}

/** The newest record of these types up to `toSeq`. */
async function newestOf(reader: Reader, types: readonly string[], toSeq: number): Promise<JournalRecord | null> {
  let window: number = WINDOW_RECORDS.first;
  for (let last = toSeq; last > 0; last -= window) {
    window = Math.min(2 * window, WINDOW_RECORDS.max);
    const newest = [...recordsIn(reader, types, Math.max(1, last - window + 1), last)].at(-1);
    if (newest !== undefined) return newest;
    await otherTurns();
  }
  return null;
}

const startedIn = (record: JournalRecord): BodyOf<'daemon.started'> =>
  fromJournalRecord(record)?.body as BodyOf<'daemon.started'>;

/** `lastSeq`: of the newest record that this start found. The start itself is in the journal by now. */
export async function lastEnd(reader: Reader, lastSeq: number, headSeq: number): Promise<LastEnd> {
  const [start] = recordsIn(reader, [STARTED], lastSeq + 1, headSeq);
  const began = await newestOf(reader, [STARTED, STOPPED], lastSeq);
  if (start === undefined || began === null) return { how: 'none' };
  if (began.type === STOPPED) return { how: 'stopped' };
  const { crash, rebooted } = startedIn(start);
  if (crash !== null) return { how: 'told' };
  if (rebooted) return { how: 'rebooted' };
  const [last] = reader.page({}, lastSeq, lastSeq).records;
  const input = await newestOf(reader, INPUT_TYPES, lastSeq);
  return {
    how: 'silent',
    firstSeq: began.seq,
    lastSeq,
    startedAtNs: began.atNs,
    startedMonoNs: began.monoNs,
    version: startedIn(began).facts.version,
    lastAtNs: (last ?? began).atNs,
    lastInput: fromJournalRecord(input ?? began) as Sequenced<Input>,
    nextStartAtNs: start.atNs,
  };
}
