/** The frames that the page's server holds: joined as they come, and what of them is behind any place is all of the rest. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BEGINNING, createFrameLog, type FrameLog, type Place } from '../../../src/cli/ui/frame-log.ts';
import type { Frame } from '../../../src/ui/frames.ts';

const COUNT = 3000;

/** A record by itself: a new lane now and then, a change to an earlier one, and one in ten that cannot be read. */
const frameOf = (seq: number): Frame => {
  const isUnreadable = seq % 10 === 9;
  const columns = isUnreadable ? [] : [seq];
  return {
    head: {
      count: columns.length,
      lanes: seq % 7 === 1 ? [{ kind: 'pod', id: `p${seq}`, label: `pod ${seq}`, parent: null }] : [],
      changes: seq % 4 === 0 && seq > 3 ? [[seq - 3, 1, 0]] : [],
      unreadable: isUnreadable ? [[seq, seq]] : [],
      headSeq: seq,
      throughSeq: seq,
    },
    times: Float64Array.from(columns, (value) => value * 2),
    seqs: Uint32Array.from(columns),
    lanes: Uint32Array.from(columns, (value) => value % 5),
    kinds: Uint8Array.from(columns, (value) => value % 11),
  };
};

interface Told {
  readonly rows: string[];
  readonly lanes: string[];
  readonly unreadable: number[];
  readonly changed: ReadonlySet<number>;
  readonly frames: number;
}

const readFrom = (log: FrameLog, from: Place): Told => {
  const told = { rows: [] as string[], lanes: [] as string[], unreadable: [] as number[], changed: new Set<number>() };
  let place = from;
  for (let frames = 0; ; frames += 1) {
    const frame = log.behind(place);
    if (frame === null) return { ...told, frames };
    const { head, times, seqs, lanes, kinds } = frame;
    assert.equal(head.count, seqs.length);
    seqs.forEach((seq, at) => told.rows.push(`${seq} ${times[at]} ${lanes[at]} ${kinds[at]}`));
    told.lanes.push(...head.lanes.map(({ id }) => id));
    told.unreadable.push(...head.unreadable.map(([first]) => first));
    for (const [seq] of head.changes) told.changed.add(seq);
    place = { throughSeq: head.throughSeq, lanes: place.lanes + head.lanes.length };
  }
};

const seqsFrom = (first: number): number[] => Array.from({ length: COUNT - first + 1 }, (_, index) => first + index);

test('whoever asks from anywhere gets all that is behind that, once, and every change that came later', () => {
  const log = createFrameLog();
  assert.equal(log.behind(BEGINNING), null);
  for (const seq of seqsFrom(1)) log.add(frameOf(seq));
  const lanesThrough = (through: number): number => Math.ceil(through / 7);
  for (const through of [-1, 0, 1, 2, 8, 9, 10, 1023, 1024, 1025, 2047, COUNT - 1, COUNT]) {
    const told = readFrom(log, { throughSeq: through, lanes: lanesThrough(Math.max(0, through)) });
    const wanted = seqsFrom(Math.max(1, through + 1)).map(frameOf);
    assert.deepEqual(
      told.rows,
      wanted.flatMap(({ seqs, times, lanes, kinds }) =>
        Array.from(seqs, (seq) => `${seq} ${times[0]} ${lanes[0]} ${kinds[0]}`),
      ),
    );
    assert.deepEqual(
      told.lanes,
      wanted.flatMap(({ head }) => head.lanes.map(({ id }) => id)),
      String(through),
    );
    assert.deepEqual(
      told.unreadable,
      wanted.flatMap(({ head }) => head.unreadable.map(([first]) => first)),
    );
    const changed = wanted.flatMap(({ head }) => head.changes.map(([seq]) => seq));
    assert.ok(changed.every((seq) => told.changed.has(seq)));
  }
});

test('records that come one by one are few frames in the end, so they take no more room than what was there before', () => {
  const log = createFrameLog();
  for (const seq of seqsFrom(1)) log.add(frameOf(seq));
  assert.ok(readFrom(log, BEGINNING).frames < 20);
});
