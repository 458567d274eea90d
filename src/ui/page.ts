/**
 * The page's program: holds what is looked at and the records, and puts the parts together: what changes the view goes
 * through here, into the address and onto the pictures. Runs in a browser.
 */
import type { AboutAnswer } from './answers.ts';
import type { Action } from './actions.ts';
import { createAddress } from './address.ts';
import { ask, endForGood, sentenceOf } from './ask.ts';
import { followRecords } from './connection.ts';
import { listenToControls } from './controls.ts';
import { element, say } from './dom.ts';
import type { Scene } from './draw.ts';
import { createFilterBox } from './filter-box.ts';
import { indexOf, type LaneIndex, toldIn } from './lane-index.ts';
import { type Plot, rowsIn } from './layout.ts';
import { createLaneCursor } from './lane-cursor.ts';
import { createList, LISTED_MAX } from './list.ts';
import { PALETTE_QUERIES, readPalette } from './palette.ts';
import { createPanel, podOf } from './panel.ts';
import { createPicture } from './picture.ts';
import { createStore, positionOf, type Records } from './store.ts';
import { bounded, following, moved, panned, showing, type TimeWindow, wholeOf, zoomed } from './time-window.ts';
import { type ViewState, viewOf } from './view-state.ts';
import { statusText } from './words.ts';

const INDEX_EVERY_MS = 250;

const store = createStore();
let records: Records = store.records();
let index: LaneIndex = indexOf(records, null, true);
let matches: ReadonlySet<number> | null = null;
let view: ViewState = viewOf(location.hash);
/** A record that the address names is opened when it is here: until then nobody knows of which pod it is. */
let isRecordDue = view.record !== null;
/** Whoever closes the panel goes on where they were. */
let openedFrom: 'list' | 'lanes' = 'lanes';
let palette = readPalette();
let timeZone = 'UTC';
let indexTimer: ReturnType<typeof setTimeout> | undefined;

const status = element('status', HTMLElement);
const connection = element('connection', HTMLElement);
const lanesBox = element('lanes', HTMLElement);
const help = element('help', HTMLDialogElement);

const boundsNow = () => ({
  firstMs: records.times[0] ?? 0,
  lastMs: records.times[Math.max(0, records.count - 1)] ?? 0,
});
const wholeNow = (): TimeWindow => wholeOf(boundsNow().firstMs, boundsNow().lastMs);
const windowNow = (): TimeWindow => (view.window === null ? wholeNow() : bounded(view.window, wholeNow()));

const openPosition = (): number | null => (view.record === null ? null : positionOf(records, view.record));

const sceneOf = (plot: Plot): Scene | null => {
  if (records.count === 0) return null;
  const window = windowNow();
  const rows = rowsIn(index, records.lanes, window, matches !== null);
  cursor.setRows(rows);
  const chosenPosition = cursor.pointed() ?? openPosition();
  return { records, index, window, plot, palette, timeZone, rows, chosenRow: cursor.row(), chosenPosition };
};

const filterBox = createFilterBox({
  onMatches: (seqs) => {
    matches = seqs;
    refreshSoon();
  },
  onWords: (words) => {
    setView({ filter: words }, true);
    filterBox.apply(words);
  },
});

const cursor = createLaneCursor(() => ({ records, index, timeZone }));
const list = createList((seq) => openRecord(seq, 'list'));
const panel = createPanel((seq) => openRecord(seq));
const picture = createPicture({
  scene: sceneOf,
  onZoom: (factor, atMs) => setWindow(zoomed(windowNow(), factor, atMs, wholeNow())),
  onPan: (share) => setWindow(panned(windowNow(), share, wholeNow())),
  onPoint: (row, atMs, withinMs) => point(cursor.near(row, atMs, withinMs)),
  onOpen: (row, atMs, withinMs) => {
    cursor.choose(row);
    const position = cursor.near(row, atMs, withinMs);
    if (position !== null) openRecord(records.seqs[position] ?? 0, 'lanes');
    else picture.draw();
  },
});

/** What is written above and below the pictures, and in the list; `isNews`: because of records that came by themselves. */
const tell = (isNews = false): void => {
  const window = windowNow();
  const lanes = rowsIn(index, records.lanes, window, matches !== null).length;
  const { newest, total } = toldIn(records, index, window, LISTED_MAX);
  list.show(newest, total);
  say(status, statusText(records, { window, timeZone, told: total, lanes }), !isNews);
};

const address = createAddress(() => tell());

const point = (position: number | null): void => {
  if (cursor.point(position)) picture.draw();
};

const setView = (changed: Partial<ViewState>, isStep = false): void => {
  view = { ...view, ...changed };
  address.write(view, isStep);
  element('live', HTMLElement).setAttribute('aria-pressed', String(view.live));
  element('steps', HTMLElement).setAttribute('aria-pressed', String(view.steps));
  picture.draw();
};

/** Of an empty journal there is no part: all of it stays in view when it begins. */
function setWindow(window: TimeWindow | null): void {
  setView({ window: records.count === 0 ? null : window, live: false });
}

const refresh = (isNews = false): void => {
  indexTimer = undefined;
  records = store.records();
  index = indexOf(records, matches, view.steps);
  // One without an end goes on by itself.
  if (view.live && view.window !== null && Number.isFinite(view.window.toMs))
    view = { ...view, window: following(windowNow(), boundsNow().lastMs) };
  picture.draw();
  tell(isNews);
  if (!isRecordDue || (openPosition() === null && !records.isRead)) return;
  isRecordDue = false;
  showRecord();
};

const refreshSoon = (): void => {
  // What was there already is read out once it is all read.
  indexTimer ??= setTimeout(() => refresh(records.isRead), records.count === 0 ? 0 : INDEX_EVERY_MS);
};

const showRecord = (): void => {
  if (view.record === null) panel.close();
  else {
    const position = openPosition();
    panel.open(view.record, position === null ? null : podOf(records.lanes, records.laneOf[position] ?? 0));
  }
  list.mark(view.record);
};

function openRecord(seq: number, from = openedFrom): void {
  openedFrom = from;
  const position = positionOf(records, seq);
  const atMs = position === null ? null : (records.times[position] ?? 0);
  cursor.point(null);
  const window = windowNow();
  const shown = atMs === null ? window : showing(window, atMs);
  // Opened again, it is no step: Back would do nothing.
  setView({ record: seq, ...(shown === window ? {} : { window: shown }) }, seq !== view.record);
  showRecord();
}

/** To where a record was opened that is closed now. */
const focusBehind = (closed: number): void => {
  if (openedFrom === 'lanes' || !list.focus(closed)) lanesBox.focus();
};

const closeRecord = (): void => {
  const closed = view.record;
  if (closed === null) return;
  setView({ record: null }, true);
  showRecord();
  focusBehind(closed);
};

const toRow = (row: number): void => {
  cursor.toRow(row);
  picture.showRow(cursor.row());
  picture.draw();
};

const toNeighbour = (direction: 1 | -1): void => {
  const position = cursor.neighbour(direction, openPosition(), windowNow());
  if (position === null) return;
  setWindow(showing(windowNow(), records.times[position] ?? 0));
  point(position);
};

const openPointed = (): void => {
  const position = cursor.pointed();
  if (position !== null) openRecord(records.seqs[position] ?? 0, 'lanes');
};

const perform = (action: Action): void => {
  const window = windowNow();
  switch (action) {
    case 'back':
    case 'forth':
    case 'in':
    case 'out':
    case 'first':
    case 'newest':
      return setWindow(moved(action, window, wholeNow(), boundsNow()));
    case 'whole':
      return setWindow(null);
    case 'live': {
      const from = view.live ? window : following(window, boundsNow().lastMs);
      return setView({ live: !view.live, window: records.count === 0 ? null : from });
    }
    case 'steps':
      setView({ steps: !view.steps });
      return refresh();
    case 'filter':
      return filterBox.focus();
    case 'keys':
      return help.showModal();
    case 'close':
      return closeRecord();
    case 'up':
      return toRow(cursor.row() - 1);
    case 'down':
      return toRow(cursor.row() + 1);
    case 'page up':
      return toRow(cursor.row() - picture.rowsInSight());
    case 'page down':
      return toRow(cursor.row() + picture.rowsInSight());
    case 'before':
      return toNeighbour(-1);
    case 'after':
      return toNeighbour(1);
    case 'open':
      return openPointed();
  }
};

listenToControls({ lanes: lanesBox, help, perform });

addEventListener('popstate', () => {
  const before = view;
  const isInRecord = panel.hasFocus();
  view = viewOf(location.hash);
  setView({});
  if (view.filter !== before.filter) filterBox.apply(view.filter);
  refresh();
  showRecord();
  if (isInRecord && before.record !== null && view.record === null) focusBehind(before.record);
});

for (const query of PALETTE_QUERIES)
  matchMedia(query).addEventListener('change', () => {
    palette = readPalette();
    picture.draw();
  });

const start = async (): Promise<void> => {
  const about = await ask<AboutAnswer>('about');
  timeZone = about.timeZone;
  element('journal', HTMLElement).textContent = about.journal;
  document.title = `scribe: ${about.journal}`;
  setView({});
  if (view.filter !== '') filterBox.apply(view.filter);
  await followRecords({
    onFrames: (frames) => {
      for (const frame of frames) store.add(frame);
      refreshSoon();
    },
    onAgain: () => {
      filterBox.again();
      refreshSoon();
    },
    onWords: (words, isGood) => {
      connection.textContent = words;
      connection.toggleAttribute('data-good', isGood);
      if (!isGood) filterBox.lose();
    },
  });
  endForGood();
};

start().catch((error: unknown) => {
  connection.textContent = `${sentenceOf(error)} Load the page again.`;
});
