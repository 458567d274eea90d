/** Records on their way to the page and on it: frames, columns, what is on which lane, counted, and under the mouse. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { actionOf } from '../../src/ui/actions.ts';
import { binCounts } from '../../src/ui/bins.ts';
import { BEAT, createFrameReader, encodeFrame, type Frame, type Lane } from '../../src/ui/frames.ts';
import { type Kind, kindNumber } from '../../src/ui/kinds.ts';
import { indexOf, stretchOf } from '../../src/ui/lane-index.ts';
import { rowsIn, timeAt, xOf } from '../../src/ui/layout.ts';
import { neighbourOf, recordNear } from '../../src/ui/pointing.ts';
import { createStore, lowerBound, positionOf, type Records } from '../../src/ui/store.ts';
import { rowText, statusText, unreadableText } from '../../src/ui/words.ts';

type Line = readonly [seq: number, atMs: number, lane: number, kind: Kind];

const node: Lane = { kind: 'node', id: '', label: 'node', parent: null };
const pod: Lane = { kind: 'pod', id: 'p', label: 'default/web', parent: null };
const other: Lane = { kind: 'pod', id: 'q', label: 'default/other', parent: null };
const nginx: Lane = { kind: 'container', id: 'c', label: 'nginx', parent: 1 };

const frameOf = (lines: readonly Line[], head: Partial<Frame['head']> = {}): Frame => ({
  head: {
    count: lines.length,
    lanes: [],
    changes: [],
    unreadable: [],
    headSeq: 0,
    throughSeq: lines.at(-1)?.[0] ?? 0,
    ...head,
  },
  times: Float64Array.from(lines, ([, atMs]) => atMs),
  seqs: Uint32Array.from(lines, ([seq]) => seq),
  lanes: Uint32Array.from(lines, ([, , lane]) => lane),
  kinds: Uint8Array.from(lines, ([, , , kind]) => kindNumber(kind)),
});

/** A pod with a container that ends badly and is removed, and another pod that comes before the container does. */
const story: readonly Line[] = [
  [1, 0, 0, 'event'],
  [2, 10, 1, 'call'],
  [3, 11, 1, 'begin'],
  [4, 12, 2, 'call'],
  [6, 20, 3, 'call'],
  [7, 21, 3, 'begin'],
  [8, 21, 3, 'step'],
  [9, 50, 3, 'call under way'],
  [10, 60, 3, 'failed exit'],
  [11, 70, 3, 'removal'],
];

const told = (): Records => {
  const store = createStore();
  store.add(frameOf(story, { lanes: [node, pod, other, nginx], headSeq: 11 }));
  return store.records();
};

describe('frames', () => {
  const frames = [
    frameOf(story, { lanes: [node, pod], changes: [[9, 1, 3]] }),
    frameOf([]),
    frameOf([[12, 80.5, 0, 'step']]),
  ];

  test('come out as they went in, however the bytes are cut, and beats between them do not', () => {
    const bytes = [...frames.flatMap((frame) => [...BEAT, ...encodeFrame(frame)]), ...BEAT];
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 40 }), (cuts) => {
        const read = createFrameReader();
        const found: Frame[] = [];
        let at = 0;
        for (const size of [...cuts, bytes.length]) {
          found.push(...read(Uint8Array.from(bytes.slice(at, at + size))));
          at += size;
        }
        assert.deepEqual(found, frames);
      }),
    );
  });
});

describe('what cannot be read', () => {
  const inView = { window: { fromMs: 0, toMs: 1 }, timeZone: 'UTC', told: 0, lanes: 1 };

  test('is named, by stretches, and is not said to be pruned', () => {
    const store = createStore();
    store.add(frameOf([[1, 0, 0, 'event']], { headSeq: 9, throughSeq: 5, unreadable: [[2, 4]] }));
    store.add(frameOf([[8, 1, 0, 'event']], { headSeq: 9, throughSeq: 9, unreadable: [[9, 9]] }));
    assert.match(
      statusText(store.records(), inView),
      /1 lane\. 3 records are pruned\. Not shown, for SQLite cannot read them: records 2 to 4, 9\. scribe verify /,
    );
  });

  test('where nothing can be read there are records all the same', () => {
    const store = createStore();
    store.add(frameOf([], { headSeq: 2, throughSeq: 2, unreadable: [[1, 2]] }));
    assert.match(statusText(store.records(), inView), /^Not shown, .* records 1 to 2\./);
  });

  test('of many stretches the first are named', () => {
    const stretches = [1, 3, 5, 7, 1_009].map((seq) => [seq, seq] as const);
    assert.match(unreadableText(stretches), / records 1, 3, 5 and 2 more stretches\./);
    assert.equal(unreadableText([]), '');
  });
});

describe('the store', () => {
  test('grows past its first room, finds records by seq, and hears of changes', () => {
    const store = createStore();
    store.add(frameOf(story, { lanes: [node, pod, other, nginx], headSeq: 200_011 }));
    assert.equal(store.records().isRead, false);
    const many = Array.from({ length: 200_000 }, (_, index): Line => [12 + index, 80 + index, 0, 'step']);
    store.add(frameOf(many, { changes: [[9, kindNumber('failed call'), 3]], headSeq: 200_011 }));
    const records = store.records();
    assert.equal(records.isRead, true);
    assert.equal(records.count, 200_010);
    assert.deepEqual([positionOf(records, 5), positionOf(records, 6), positionOf(records, 200_012)], [null, 4, null]);
    assert.equal(records.kinds[positionOf(records, 9) ?? 0], kindNumber('failed call'));
    assert.equal(records.times[200_009], 200_079);
  });
});

describe('the index', () => {
  test('has each lane by itself, a pod before its containers, and what went wrong again', () => {
    const index = indexOf(told(), null, true);
    assert.deepEqual([...index.order], [0, 1, 3, 2]);
    assert.deepEqual(stretchOf(index.shown, 3, 21, 60), [5, 8]);
    assert.deepEqual([...index.wrong.positions], [8]);
    assert.deepEqual([...index.tones.call], [10, 12, 20, 50]);
    assert.deepEqual(
      [...index.told].map((position) => story[position]?.[0]),
      [1, 2, 4, 6, 9, 10],
    );
  });

  test('knows the life of a container', () => {
    const { lives } = indexOf(told(), null, true);
    const { firstMs, lastMs, beganMs, endedMs, isGone, isBad } = lives;
    assert.deepEqual([firstMs[3], beganMs[3], endedMs[3], lastMs[3], isGone[3], isBad[3]], [20, 21, 60, 70, 1, 1]);
    assert.deepEqual([beganMs[2], isGone[2]], [Number.NaN, 0]);
  });

  test('has what the filter chose, and no steps where they are not wanted', () => {
    const matches = new Set([4, 8]);
    assert.deepEqual([...indexOf(told(), matches, true).shown.positions], [3, 6]);
    assert.deepEqual([...indexOf(told(), matches, false).shown.positions], [3]);
  });
});

describe('rows', () => {
  const records = told();
  const rows = (fromMs: number, toMs: number, matches: ReadonlySet<number> | null = null): number[] => [
    ...rowsIn(indexOf(records, matches, true), records.lanes, { fromMs, toMs }, matches !== null),
  ];

  test('are of what was there at the time: not yet, and not after it was removed', () => {
    assert.deepEqual(rows(0, 5), [0]);
    assert.deepEqual(rows(0, 15), [0, 1, 2]);
    assert.deepEqual(rows(30, 40), [0, 1, 3, 2]);
    assert.deepEqual(rows(71, 90), [0, 1, 2]);
  });

  test('with a filter are of what has something to show, and the pods of those', () => {
    const matches = new Set([10]);
    assert.deepEqual(rows(0, 100, matches), [1, 3]);
    assert.deepEqual(rows(0, 50, matches), []);
  });

  test('a place on the picture and a moment are the same both ways', () => {
    const [window, plot] = [
      { fromMs: 100, toMs: 300 },
      { leftPx: 50, widthPx: 400 },
    ];
    assert.equal(xOf(150, window, plot), 150);
    assert.equal(timeAt(xOf(233, window, plot), window, plot), 233);
  });
});

describe('counting', () => {
  test('is what looking at every record would give', () => {
    const times = fc
      .array(fc.integer({ min: 0, max: 500 }), { maxLength: 300 })
      .map((all) => Float64Array.from(all).sort());
    fc.assert(
      fc.property(times, fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 400 }), (sorted, bins, fromMs) => {
        const window = { fromMs, toMs: fromMs + 97 };
        const counts = binCounts(sorted, window, bins);
        const inside = sorted.filter((atMs) => atMs >= window.fromMs && atMs < window.toMs);
        assert.equal(
          counts.reduce((sum, count) => sum + count, 0),
          inside.length,
        );
        // The edges of bins are fractions: a record on one may count on either side.
        const upTo = (bin: number): number => counts.slice(0, bin).reduce((sum, count) => sum + count, 0);
        for (let bin = 1; bin < bins; bin += 1) {
          const edge = window.fromMs + (bin * 97) / bins;
          assert.ok(upTo(bin) >= lowerBound(inside, edge - 1e-6, 0, inside.length));
          assert.ok(upTo(bin) <= lowerBound(inside, edge + 1e-6, 0, inside.length));
        }
      }),
    );
  });
});

describe('pointing', () => {
  const records = told();
  const index = indexOf(records, null, true);
  const near = (lane: number, atMs: number, withinMs: number): number | undefined =>
    records.seqs[recordNear(records, index, lane, atMs, withinMs) ?? -1];

  test('means what went wrong before a call, and a call before a step; then what is nearest', () => {
    assert.equal(near(3, 55, 10), 10);
    assert.equal(near(3, 22, 5), 6);
    assert.equal(near(3, 21.5, 1), 7);
    assert.equal(near(3, 40, 5), undefined);
    assert.equal(near(0, 21, 5), undefined);
  });

  test('goes along a lane, record by record, and no further than its ends', () => {
    const window = { fromMs: 21, toMs: 65 };
    const to = (seq: number | null, direction: 1 | -1): number | undefined =>
      records.seqs[neighbourOf(index, 3, seq === null ? null : positionOf(records, seq), direction, window) ?? -1];
    assert.deepEqual([to(6, 1), to(7, 1), to(11, 1)], [7, 8, undefined]);
    assert.deepEqual([to(7, -1), to(6, -1)], [6, undefined]);
    assert.deepEqual([to(null, 1), to(null, -1), to(2, 1)], [7, 10, 7]);
  });
});

describe('keys', () => {
  const pressed = (key: string, more: object = {}): string | null =>
    actionOf({ key, isModified: false, isInText: false, isOnLanes: false, ...more });

  test('act everywhere but in text, and arrows on the lanes alone; the browser keeps its own', () => {
    assert.equal(pressed('+'), 'in');
    assert.equal(pressed('ArrowLeft'), null);
    assert.equal(pressed('ArrowLeft', { isOnLanes: true }), 'back');
    assert.equal(pressed('f', { isInText: true }), null);
    assert.equal(pressed('f', { isModified: true }), null);
    assert.equal(pressed('z'), null);
  });
});

test('a row is called by its kind and name, and by its kind once where that is all that is known', () => {
  const nameless: Lane = { kind: 'container', id: 'd', label: 'container 0123456789ab', parent: 1 };
  const lanes = [node, pod, nginx, nameless];
  assert.deepEqual(
    lanes.map((_, lane) => rowText({ lanes }, lane)),
    ['node', 'pod default/web', 'container nginx of default/web', 'container 0123456789ab of default/web'],
  );
});
