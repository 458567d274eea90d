/**
 * The writer thread: the one connection that writes. Takes whatever is queued as one transaction, answers once it is
 * on disk, and checkpoints the write-ahead log between batches. The first commit that fails ends it: nothing that
 * comes after can be promised (C7). Started by sqlite-journal.ts, which has migrated the file and holds the lock.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { createBatches } from './batch.ts';
import { loadKey, writeHeadFile } from './checkpoints.ts';
import { connectWriter, isFull } from './connect.ts';
import { errorOf } from './errors.ts';
import { journalFiles } from './files.ts';
import { createWalKeeper } from './wal.ts';
import type { AppendMessage, FromWriter, ToWriter, WriterOptions, WriterRequest } from './writer-messages.ts';

/** The checkpoint beside the journal is made anew this long after a commit. */
const signAfterMs = 10_000;

/** A bound on one transaction; what is left is the next one. */
const messagesPerTurn = 1024;

const nextOf = (port: NonNullable<typeof parentPort>): ToWriter | undefined => {
  const received: { readonly message: unknown } | undefined = receiveMessageOnPort(port);
  return received?.message as ToWriter | undefined;
};

const run = (port: NonNullable<typeof parentPort>, options: WriterOptions): void => {
  const files = journalFiles(options.path);
  const say = (message: FromWriter): void => port.postMessage(message);
  const db = connectWriter(options.path);
  const batches = createBatches(db, loadKey(files.key, []));
  const wal = createWalKeeper(db, options.walAlarmBytes, (bytes) => say({ kind: 'walAlarm', bytes }));
  let signing: NodeJS.Timeout | null = null;

  const sign = (): void => {
    signing = null;
    const end = batches.signedEnd();
    if (end !== null) writeHeadFile(files.head, end);
  };

  const commit = (messages: readonly AppendMessage[]): void => {
    batches.commit(messages);
    const { seq, hash } = batches.end();
    say({ kind: 'committed', seq, hash, readChunks: messages.filter(({ reads }) => reads !== null).length });
    signing ??= setTimeout(() => guarded(sign), signAfterMs);
  };

  const close = (): void => {
    if (signing !== null) clearTimeout(signing);
    batches.checkpoint();
    sign();
    wal.finish();
    db.close();
  };

  const perform = (request: WriterRequest & { readonly id: number }): void => {
    switch (request.kind) {
      case 'seal':
        return say({ kind: 'answer', id: request.id, sealed: batches.seal() });
      case 'snapshot':
        try {
          batches.writeSnapshot(request.seq, request.evolverVersion, request.state);
        } catch (thrown) {
          // Nothing is lost without a snapshot, and SQLite has taken it back whole.
          if (!isFull(thrown)) throw thrown;
          return say({ kind: 'refused', id: request.id, message: 'The disk is too full for a snapshot.' });
        }
        return say({ kind: 'answer', id: request.id, sealed: [] });
      case 'close':
        close();
        say({ kind: 'answer', id: request.id, sealed: [] });
        return port.close();
    }
  };

  /** What waits, in order: appends that follow one another are one commit. */
  const work = (first: ToWriter): void => {
    let appends: AppendMessage[] = [];
    let taken = 0;
    const flush = (): void => {
      if (appends.length > 0) commit(appends);
      appends = [];
    };
    let message: ToWriter | undefined = first;
    for (; message !== undefined; message = ++taken < messagesPerTurn ? nextOf(port) : undefined) {
      if (message.kind === 'append') appends.push(message);
      else {
        flush();
        perform(message);
        if (message.kind === 'close') return;
      }
    }
    flush();
    wal.keep();
  };

  const guarded = (step: () => void): void => {
    try {
      step();
    } catch (thrown) {
      if (signing !== null) clearTimeout(signing);
      say({ kind: 'failed', message: errorOf(thrown).message });
      port.close();
    }
  };

  port.on('message', (message: ToWriter) => guarded(() => work(message)));
};

if (parentPort !== null) run(parentPort, workerData as WriterOptions);
