/**
 * What the journal and its writer thread say to each other. Records travel as their encoding, so the writer hashes
 * the very bytes it received and nothing is encoded twice.
 */
import type { Later } from './later.ts';
import type { ReadChunk } from './read-table.ts';
import type { SealedSegment } from './types.ts';

export interface WriterOptions {
  readonly path: string;
  /** The write-ahead log may grow to this before the alarm. */
  readonly walAlarmBytes: number;
  /** A file of room that is given up when a commit finds none; null: there is none to give up. See createDiskGuard. */
  readonly reservePath: string | null;
  /** Where it is noted how far the journal has come, for a start after a kill (seq-mark.ts); null: nowhere. */
  readonly markPath: string | null;
}

export interface AppendMessage {
  readonly kind: 'append';
  /** Encoded records, one after another; empty for none. */
  readonly records: Uint8Array;
  readonly reads: ReadChunk | null;
}

export type WriterRequest =
  | { readonly kind: 'seal' }
  | { readonly kind: 'snapshot'; readonly seq: number; readonly evolverVersion: number; readonly state: Uint8Array }
  /** At most so many pages that nothing is in go back to the file system. */
  | { readonly kind: 'giveBack'; readonly pagesMax: number }
  | { readonly kind: 'close' };

export type ToWriter = AppendMessage | (WriterRequest & { readonly id: number });

export type FromWriter =
  /** Everything up to `seq` is on disk, and so many read chunks. */
  | { readonly kind: 'committed'; readonly seq: number; readonly hash: Uint8Array; readonly readChunks: number }
  | { readonly kind: 'answer'; readonly id: number; readonly sealed: readonly SealedSegment[] }
  | { readonly kind: 'refused'; readonly id: number; readonly message: string }
  /** A commit found the disk full; what was reserved is given up, and the commit tried again. */
  | { readonly kind: 'diskFull' }
  /** The write-ahead log passed its limit; null when it is back under it. */
  | { readonly kind: 'walAlarm'; readonly bytes: number | null }
  | { readonly kind: 'failed'; readonly message: string };

/** What the writer hears and says. */
export interface WriterPort {
  readonly hear: (hear: (message: ToWriter) => void) => void;
  /** The next message, where one waits already. */
  readonly next: () => ToWriter | undefined;
  readonly say: (message: FromWriter) => void;
  readonly later: Later;
  readonly close: () => void;
}

/** What the writer's thread tells whoever started it. */
export interface WriterNews {
  readonly said: (message: FromWriter) => void;
  readonly failed: (error: unknown) => void;
  readonly ended: (code: number) => void;
}

/** Starts the writer; the simulator has one without a thread, whose disk it decides about. */
export type StartWriter = (
  options: WriterOptions,
  news: WriterNews,
) => { readonly post: (message: ToWriter, transfer: readonly Uint8Array[]) => void };
