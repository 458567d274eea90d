/**
 * The journal that scribe runs on, under a history: SQLite in a directory of its own, its main thread's side and its
 * writer's, with no thread between them so that a seed decides what happens when. A daemon that dies leaves the files as
 * they are; the next one gets a copy of them, which may end in the middle of what was being written.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeFold } from '../../src/engine/node-fold.ts';
import { connectReader, type Db } from '../../src/journal/connect.ts';
import { decodeFrame } from '../../src/journal/encoding.ts';
import { journalFiles } from '../../src/journal/files.ts';
import { foldRecords, foldState } from '../../src/journal/fold.ts';
import { createMemoryJournal, emptyContents } from '../../src/journal/memory-journal.ts';
import type { Later } from '../../src/journal/later.ts';
import { openJournal } from '../../src/journal/open.ts';
import { JOURNAL_PRUNED } from '../../src/journal/own-records.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { createReader, type JournalReader } from '../../src/journal/reader.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { runWriter } from '../../src/journal/writer.ts';
import type { AppendMessage, StartWriter, ToWriter, WriterNews } from '../../src/journal/writer-messages.ts';
import type { Commit, Disk } from './disk.ts';
import type { Random } from './random.ts';
import { Violation } from './violation.ts';

interface Channel {
  readonly start: StartWriter;
  /** Nobody hears the writer any more, and it is told nothing but to close. */
  readonly cut: () => void;
  /** Writes what is on its way all the same, for a log that ends in the middle of it. */
  readonly writeOn: () => void;
  readonly closeWriter: () => void;
  readonly ended: () => void;
}

/** A journal and what is between its two sides. */
interface Life {
  readonly journal: SqliteJournal;
  readonly channel: Channel;
}

type Column = Pick<JournalRecord, 'type' | 'cause'>;

/** What the writer puts off for no longer than this is done before it writes on; longer ones a history never comes to. */
const LATER_MAX_MS = 1000;
const HALF_WRITTEN_RATE = 0.5;
const IN_ORDER_RATE = 0.3;

/** What a batch boundary is about: of each record, what the history looks at. */
function columnsIn({ records }: AppendMessage): Column[] {
  const source = Buffer.from(records.buffer, records.byteOffset, records.byteLength);
  const columns: Column[] = [];
  for (let at = 0; at < source.length; ) {
    const { type, cause, bytes } = decodeFrame(source, at);
    columns.push({ type, cause });
    at += bytes.length;
  }
  return columns;
}

/** Between the journal's two sides, where the disk is waited for. */
function createChannel(commit: Commit): Channel {
  const inbox: ToWriter[] = [];
  /** What the writer may take without waiting. */
  let waiting: ToWriter[] = [];
  let hear: (message: ToWriter) => void = () => undefined;
  let putOff: (() => void) | null = null;
  let news: WriterNews | null = null;
  let pumping = false;
  let isCut = false;
  let isClosed = false;

  /** What one commit holds: every append that waits. */
  const leadingAppends = (): AppendMessage[] => {
    const end = inbox.findIndex(({ kind }) => kind !== 'append');
    return inbox.slice(0, end < 0 ? inbox.length : end).filter((message) => message.kind === 'append');
  };

  const write = (count: number): void => {
    const [first, ...others] = inbox.splice(0, count);
    const due = putOff;
    putOff = null;
    due?.();
    waiting = others;
    if (first !== undefined) hear(first);
  };

  async function pump(): Promise<void> {
    while (inbox.length > 0) {
      const appends = leadingAppends();
      try {
        // The history asks a record's type and cause only.
        if (appends.length > 0) await commit(appends.flatMap(columnsIn) as JournalRecord[]);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        news?.said({ kind: 'failed', message });
        return;
      }
      if (isCut) return;
      write(Math.max(1, appends.length));
    }
    pumping = false;
  }

  function closeWriter(): void {
    if (isClosed) return;
    isClosed = true;
    waiting = [];
    hear({ kind: 'close', id: 0 });
  }

  return {
    start(options, told) {
      news = told;
      runWriter(
        {
          hear: (heard) => void (hear = heard),
          next: () => waiting.shift(),
          say(message) {
            // As between threads: not at once, and a copy.
            const said = structuredClone(message);
            queueMicrotask(() => void (isCut ? undefined : told.said(said)));
          },
          later(delayMs, work) {
            if (delayMs > LATER_MAX_MS) return () => undefined;
            putOff = work;
            return () => void (putOff = null);
          },
          close: () => undefined,
        },
        options,
      );
      return {
        post(message, transfer) {
          if (isCut) {
            if (message.kind !== 'close') return;
            closeWriter();
            return told.said({ kind: 'answer', id: message.id, sealed: [] });
          }
          inbox.push(structuredClone(message, { transfer: transfer.map(({ buffer }) => buffer as ArrayBuffer) }));
          if (pumping) return;
          pumping = true;
          void pump();
        },
      };
    },
    cut: () => void (isCut = true),
    writeOn: () => (isClosed ? undefined : write(leadingAppends().length)),
    closeWriter,
    ended() {
      closeWriter();
      news?.ended(0);
    },
  };
}

/** Gives back what a life that is over holds. */
function bury({ journal, channel }: Life): void {
  channel.cut();
  void journal.close();
  channel.ended();
}

/** @param later  of the history's own time: by the clock, when something goes to the disk would hang on how busy the machine is */
export function createSqliteDisk(
  random: Random,
  later: Later,
  alter: (real: StartWriter) => StartWriter = (real) => real,
): Disk {
  const top = mkdtempSync(join(tmpdir(), 'scribe-sim-'));
  const contents = emptyContents();
  let lives = 0;
  let path = '';
  let last: Life | null = null;
  let looking: { readonly db: Db; readonly reader: JournalReader } | null = null;

  const fail = (message: string): never => {
    throw new Violation(message);
  };

  /** The next life's files: those of the last one, as its end left them. */
  function carryOver({ channel }: Life, from: string, to: string): void {
    const old = journalFiles(from);
    const copy = (file: string): void => {
      if (existsSync(file)) copyFileSync(file, to + file.slice(from.length));
    };
    channel.cut();
    if (random.chance(IN_ORDER_RATE)) channel.closeWriter();
    copy(old.database);
    const bytes = existsSync(old.wal) ? statSync(old.wal).size : 0;
    if (bytes > 0 && random.chance(HALF_WRITTEN_RATE)) channel.writeOn();
    copy(old.wal);
    // A log that is written from its beginning again does not grow; what is in it then is whole.
    const more = existsSync(old.wal) ? statSync(old.wal).size - bytes : 0;
    if (more > 0) truncateSync(journalFiles(to).wal, bytes + random.below(more));
    copy(old.key);
    copy(old.head);
  }

  function look(): void {
    if (looking === null) return;
    const { db, reader } = looking;
    const head = reader.head().seq;
    let pruned = false;
    while (contents.rows.length < head) {
      const seen = contents.rows.length;
      for (const record of reader.page({}, seen + 1, head).records) {
        // Nothing is pruned that nobody has seen: what is missing was lost.
        if (record.seq !== contents.rows.length + 1) fail(`Record ${contents.rows.length + 1} is not on the disk.`);
        contents.rows.push({ record, written: record, hash: null });
        pruned ||= record.type === JOURNAL_PRUNED;
      }
      if (contents.rows.length === seen) fail(`Record ${seen + 1} is not on the disk.`);
    }
    if (!pruned) return;
    const seqs = db.prepare<[], number>('SELECT seq FROM records WHERE at IS NULL').pluck().all();
    for (const seq of seqs) {
      const row = contents.rows[seq - 1];
      if (row !== undefined) row.record = null;
    }
  }

  /** All that was seen on the disk at some time is there, and says the same. */
  function checkKept(): void {
    const found = new Map<number, string>();
    const { seq } = foldRecords(path, {}, (record) => void found.set(record.seq, record.body));
    if (seq < contents.rows.length) fail(`Record ${contents.rows.length} was durable; a restart finds ${seq} records.`);
    for (const { record, written } of contents.rows)
      if (found.get(written.seq) !== record?.body) fail(`Record ${written.seq} is not what it was before a restart.`);
  }

  function forget(): void {
    looking?.db.close();
    looking = null;
    if (last !== null) bury(last);
    last = null;
  }

  return {
    contents,
    look,
    open(commit, durable) {
      const before = path;
      lives += 1;
      const dir = join(top, String(lives));
      mkdirSync(dir);
      path = join(dir, 'journal.db');
      if (last !== null) carryOver(last, before, path);
      const channel = createChannel(commit);
      const { journal, findings, setAside } = openJournal({ path, later, startWriter: alter(channel.start) });
      forget();
      last = { journal, channel };
      if (before !== '') rmSync(join(before, '..'), { recursive: true, force: true });
      if (setAside !== null) fail(`The journal was set aside: ${setAside.why}`);
      if (findings.length > 0) fail(`The journal is not whole: ${findings.join(' ')}`);
      const db = connectReader(path);
      looking = { db, reader: createReader(db) };
      durable.sync();
      checkKept();
      const { state, bad, seq } = foldState(path, nodeFold);
      const [first] = bad;
      if (first !== undefined) fail(`Record ${first.seq}: ${first.what}`);
      if (seq !== contents.rows.length) fail(`${seq} records were folded of ${contents.rows.length}.`);
      return { journal, state };
    },
    check() {
      const [inMemory, written] = [createMemoryJournal({ contents }).head().hash, last?.journal.head().hash ?? []];
      if (!Buffer.from(inMemory).equals(Buffer.from(written)))
        fail('The chain does not end in the hash of what was written.');
    },
    dispose() {
      forget();
      rmSync(top, { recursive: true, force: true });
    },
  };
}
