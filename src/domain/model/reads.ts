/** What is recorded of calls that only read, where more than a row is, and of what commands do by themselves. Types only. */
import type { Int64 } from './cri.ts';
import type { Failure } from './errors.ts';

/** Somebody reads the journal's file, by a command of scribe's. What is absent the command does not know. */
export interface JournalRead {
  readonly subcommand: string;
  /** Options and operands, as they were given; cut where they are long. */
  readonly words: readonly string[];
  readonly fromSeq?: number;
  readonly toSeq?: number;
  /** How many of what it shows. */
  readonly shown?: number;
  /** So many readings, one after the other, are told of as one: `shown` is their sum, the range that of all. Absent: one. */
  readonly times?: number;
  /** Not all of them were by this command with these words, which are the last one's; all were by this user. */
  readonly differing?: true;
}

/** Somebody ends shims and takes away mounts that no record explains. */
export interface ClearedStrays {
  /** Each in words; of very many the first. */
  readonly strays: readonly string[];
  readonly count: number;
}

/** Of a call whose request the audit rules have recorded: received when it was answered. */
export interface RecordedRead {
  readonly rpc: string;
  /** Stream of the object that it is about; absent: there is none. */
  readonly about?: string;
  /** The fields that are set. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly durationNs: Int64;
  readonly failure?: Failure;
}
