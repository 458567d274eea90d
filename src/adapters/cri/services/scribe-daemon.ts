/**
 * scribe's own Daemon service: what the daemon knows of itself, for `scribe verify`, `doctor` and `nri`, and the door of
 * those who read its journal by themselves. Puts the
 * answers of its ports into messages; computes and remembers nothing.
 */
import type { ConfigChange } from '../../../domain/model/audit-policy.ts';
import { type Failure, FailureError } from '../../../domain/model/errors.ts';
import { shown } from '../../../domain/oci/refuse.ts';
import type { JournalRead } from '../../../domain/model/reads.ts';
import type { Result } from '../../../domain/model/result.ts';
import { LOG_LEVELS, type LogLevel } from '../../../domain/values/log-levels.ts';
import type { CallOptions } from '../../../engine/ports.ts';
import type {
  ClearStraysRequest,
  DaemonDefinition,
  ListNriPluginsReply,
  Owed,
  ReadJournalRequest,
} from '../../../wire/scribe/v1/daemon.ts';
import type { Handlers } from '../context.ts';
import { checked, optionsOf, reading, submit, thrown } from '../calls.ts';
import type { CriParts } from '../parts.ts';

/** What an undo still owes. */
export interface OwedStream {
  readonly stream: string;
  readonly steps: readonly string[];
  readonly failure: Failure | null;
  readonly attempts: number;
}

export interface EffectUnderWay {
  readonly id: string;
  readonly kind: string;
  readonly stream: string;
  readonly ageNs: bigint;
}

export interface DaemonPorts {
  readonly rootDir: string;
  /** Without symbolic links. */
  readonly realRootDir: string;
  /** The newest durable record and the hashes of the states right after it: all of one moment. */
  readonly stateNow: () => Promise<{
    readonly seq: number;
    readonly hash: string;
    /** Of the state that decisions are made from; null: it was ahead of the disk. */
    readonly decidedFromHash: string | null;
  }>;
  readonly owed: () => readonly OwedStream[];
  /** A sentence each. */
  readonly findings: () => Promise<readonly string[]>;
  /** What shows that the journal is not all that was written here, a sentence each. */
  readonly doubts: () => readonly string[];
  readonly underWay: () => readonly EffectUnderWay[];
  readonly nriPlugins: () => ListNriPluginsReply;
  /** Gives room in the journal's file back to the disk, for at most so long; what there is then. */
  readonly compactJournal: (
    forMs: number,
  ) => Promise<{ readonly fileBytes: number; readonly freeBytes: number; readonly givesBack: boolean }>;
  /** Has it recorded that somebody read the journal's file; why it can't be, or null. */
  readonly recordJournalRead: (read: JournalRead, asked: CallOptions) => Promise<Failure | null>;
  /** Reads the configuration again, and has that recorded; what is another one now. */
  readonly reloadConfig: (asked: CallOptions) => Promise<Result<readonly ConfigChange[]>>;
  /** Changes what is logged from now on; gives the level until now. */
  readonly setLogLevel: (level: LogLevel) => string;
}

export function daemonService(parts: CriParts, daemon: DaemonPorts): Handlers<typeof DaemonDefinition> {
  return {
    state: reading(
      parts,
      'State',
      () => '',
      async () => {
        const { seq, hash, decidedFromHash } = await daemon.stateNow();
        return {
          seq: String(seq),
          stateHash: hash,
          decidedFromHash: decidedFromHash ?? '',
          owed: daemon.owed().map(owedMessage),
          findings: [...(await daemon.findings())],
          underWay: daemon
            .underWay()
            .map(({ id, kind, stream, ageNs }) => ({ effect: id, kind, stream, ageNs: String(ageNs) })),
          rootDir: daemon.rootDir,
        };
      },
    ),
    listNriPlugins: reading(
      parts,
      'ListNriPlugins',
      () => '',
      () => daemon.nriPlugins(),
    ),
    // No record is another one for it: it is noted as reads are, with who asked.
    compactJournal: reading(
      parts,
      'CompactJournal',
      () => '',
      async () => {
        const { fileBytes, freeBytes, givesBack } = await daemon.compactJournal(COMPACT_MS);
        return {
          fileBytes: String(fileBytes),
          freeBytes: String(freeBytes),
          possible: givesBack,
          rootDir: daemon.rootDir,
        };
      },
    ),
    async clearStrays(request, context) {
      await submit(parts, CLEAR_STRAYS, () => straysOf(request, daemon.realRootDir), context);
      return {};
    },
    async readJournal(request, context) {
      const read = await checked(parts, READ_JOURNAL, () => readOf(request, daemon.realRootDir), context);
      const failure = await daemon.recordJournalRead(read, optionsOf(context));
      if (failure !== null) throw thrown(failure);
      return {};
    },
    async reloadConfig(_, context) {
      const reloaded = await daemon.reloadConfig(optionsOf(context));
      if (!reloaded.ok) throw thrown(reloaded.failure);
      return { changes: reloaded.value.map(({ key, applied }) => ({ key, applied })) };
    },
    async setLogLevel({ level: wanted }, context) {
      const level = await checked(parts, SET_LOG_LEVEL, () => levelOf(wanted), context);
      await submit(parts, SET_LOG_LEVEL, () => ({ level }), context);
      return { previous: daemon.setLogLevel(level) };
    },
    async acknowledgeJournal({ reason: given }, context) {
      const reason = await checked(parts, ACKNOWLEDGE_JOURNAL, () => reasonOf(given), context);
      const doubts = [...daemon.doubts()];
      await submit(parts, ACKNOWLEDGE_JOURNAL, () => ({ reason }), context);
      return { doubts };
    },
  };
}

/** As long as a call of it takes: whoever asks says how far it is, and stops by not asking again. */
const COMPACT_MS = 1_000;
const CLEAR_STRAYS = 'ClearStrays';
const STRAYS_MAX = 1_000;
const STRAY_CHARS_MAX = 512;

/** @throws {FailureError} WrongState for the root of another daemon */
function checkRoot(rootDir: string, own: string): void {
  if (rootDir !== own)
    throw new FailureError(
      'WrongState',
      `root_dir is ${shown(rootDir)}; the journal of this daemon is in ${shown(own)}.`,
    );
}

/** @throws {FailureError} InvalidField where there is nothing to clear */
function straysOf({ rootDir, strays }: ClearStraysRequest, own: string) {
  checkRoot(rootDir, own);
  if (strays.length === 0) throw new FailureError('InvalidField', 'strays is empty; name what is cleared.');
  const first = strays.slice(0, STRAYS_MAX).map((stray) => stray.slice(0, STRAY_CHARS_MAX));
  return { strays: first, count: strays.length };
}

const READ_JOURNAL = 'ReadJournal';
const SUBCOMMAND = /^[a-z][a-z ]{0,39}$/;
const WORDS_MAX = 64;
const WORD_CHARS_MAX = 256;

/** @throws {FailureError} WrongState for the journal of another daemon, InvalidField for what is no command */
function readOf(
  { rootDir, subcommand, words, fromSeq, toSeq, shown: count }: ReadJournalRequest,
  own: string,
): JournalRead {
  checkRoot(rootDir, own);
  if (!SUBCOMMAND.test(subcommand))
    throw new FailureError('InvalidField', `subcommand ${shown(subcommand)} is none; give one like "history".`);
  return {
    subcommand,
    words: words.slice(0, WORDS_MAX).map((word) => word.slice(0, WORD_CHARS_MAX)),
    ...(fromSeq === undefined ? {} : { fromSeq: Number(fromSeq) }),
    ...(toSeq === undefined ? {} : { toSeq: Number(toSeq) }),
    ...(count === undefined ? {} : { shown: Number(count) }),
  };
}

const SET_LOG_LEVEL = 'SetLogLevel';
const ACKNOWLEDGE_JOURNAL = 'AcknowledgeJournal';
const REASON_CHARS_MAX = 1_000;

function reasonOf(given: string): string {
  if (given.trim() !== '' && given.length <= REASON_CHARS_MAX) return given;
  throw new FailureError('InvalidField', `reason must say why, in at most ${REASON_CHARS_MAX} characters.`);
}

function levelOf(wanted: string): LogLevel {
  const level = LOG_LEVELS.find((known) => known === wanted);
  if (level !== undefined) return level;
  throw new FailureError('InvalidField', `level ${shown(wanted)} is none; give one of ${LOG_LEVELS.join(', ')}.`);
}

const owedMessage = ({ stream, steps, failure, attempts }: OwedStream): Owed => ({
  stream,
  steps: [...steps],
  reason: failure?.reason ?? '',
  message: failure?.message ?? '',
  attempts,
});
