/**
 * Makes the frames of the page (src/ui/frames.ts) from a journal's outline: which lane each record is on, of which kind
 * it is, and when that changes because a call has ended. Holds no record, only the calls whose end is not there yet.
 */
import type { RecordType } from '../../domain/model/records.ts';
import type { OutlinePage, OutlineRow } from '../../journal/outline.ts';
import type { Frame } from '../../ui/frames.ts';
import { type Kind, kindNumber } from '../../ui/kinds.ts';
import { createLanes, NAME_PATHS, NODE_LANE } from './lanes.ts';

/** What the outline has to tell of bodies. */
export const TIMELINE_PATHS = {
  ...NAME_PATHS,
  'call.completed': ['$.code', '$.response.exitCode'],
  'container.exited': ['$.exitStatus'],
} as const satisfies Partial<Record<RecordType, readonly string[]>>;

/** Of types that are not here, the record is a step of something else. */
const KIND_OF: Readonly<Partial<Record<RecordType, Kind>>> = {
  'call.received': 'call under way',
  'container.exited': 'exit',
  'container.started': 'begin',
  'sandbox.ready': 'begin',
  'sandbox.stopped': 'end',
  'container.removed': 'removal',
  'sandbox.removed': 'removal',
  'container.failed': 'trouble',
  'sandbox.failed': 'trouble',
  'container.lost': 'trouble',
  'sandbox.lost': 'trouble',
  'shim.lost': 'trouble',
  'task.oomed': 'trouble',
  'content.damaged': 'trouble',
  'turn.failed': 'trouble',
  'journal.doubted': 'trouble',
  'disk.filled': 'trouble',
  'daemon.started': 'event',
  'daemon.stopped': 'event',
  'network.configured': 'event',
  'nri.plugin.registered': 'event',
  'nri.plugin.closed': 'event',
  'logkeeper.started': 'event',
  'logkeeper.ended': 'event',
  'disk.freed': 'event',
  'content.collected': 'event',
};

const isZero = (value: unknown): boolean => value === 0 || value == null;

const kindOf = ({ type, values }: OutlineRow): Kind => {
  if (type === 'container.exited' && !isZero(values?.[0])) return 'failed exit';
  return KIND_OF[type as RecordType] ?? 'step';
};

/** As `scribe history --failed` means it. */
const endedKind = ({ values }: OutlineRow): Kind => (values?.every(isZero) === true ? 'call' : 'failed call');

interface OpenCall {
  lane: number | null;
  /** Where it is in the frame that is being made; null: it was sent. */
  index: number | null;
}

export interface Timeline {
  /** The frame of these records, which follow those of the last one. */
  readonly frame: (page: OutlinePage, headSeq: number) => Frame;
}

export const createTimeline = (): Timeline => {
  const lanes = createLanes();
  const open = new Map<number, OpenCall>();
  let lastMs = 0;

  return {
    frame({ rows, unreadable, next }, headSeq) {
      const count = rows.length;
      const times = new Float64Array(count);
      const seqs = new Uint32Array(count);
      const laneOf = new Uint32Array(count);
      const kinds = new Uint8Array(count);
      const changes: [seq: number, kind: number, lane: number][] = [];

      const settle = (seq: number, call: OpenCall, kind: Kind): void => {
        if (call.index === null) changes.push([seq, kindNumber(kind), call.lane ?? NODE_LANE]);
        else {
          kinds[call.index] = kindNumber(kind);
          laneOf[call.index] = call.lane ?? NODE_LANE;
        }
      };
      rows.forEach((row, index) => {
        const { seq, atMs, type, call: callSeq } = row;
        lastMs = Math.max(lastMs, atMs);
        times[index] = lastMs;
        seqs[index] = seq;
        kinds[index] = kindNumber(kindOf(row));
        const call = callSeq === null ? undefined : open.get(callSeq);
        const own = lanes.of(row);
        if (call !== undefined && own !== null && own !== NODE_LANE) call.lane ??= own;
        laneOf[index] = own ?? call?.lane ?? NODE_LANE;
        if (type === 'call.received') open.set(seq, { lane: null, index });
        if (type !== 'call.completed' || call === undefined || callSeq === null) return;
        settle(callSeq, call, endedKind(row));
        open.delete(callSeq);
      });
      for (const call of open.values()) {
        if (call.index !== null) laneOf[call.index] = call.lane ?? NODE_LANE;
        call.index = null;
      }
      const head = { count, lanes: lanes.news(), changes, unreadable, headSeq, throughSeq: next - 1 };
      return { head, times, seqs, lanes: laneOf, kinds };
    },
  };
};
