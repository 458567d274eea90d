/**
 * Has the daemon record that somebody reads its journal: which command, with which words, and what it has read. Who asks, the
 * daemon learns from the kernel. Reading goes on whatever comes of it: with no daemon, or one that refuses, there is no
 * record, and nothing is said.
 */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { SOCKET_NAME } from '../config/config.ts';
import { exists } from '../platform/linux/exists.ts';
import { LEFT_OUT, plainUrl } from './bundle/redact.ts';
import type { Command, ExitStatus, Values } from './command.ts';
import type { Io, ReadExtent } from './io.ts';
import { newestFacts } from './newest-facts.ts';
import { journalOf, type PlaceValues, rootOf, socketOf } from './places.ts';

const TIMEOUT_MS = 2_000;

interface CommandLine {
  readonly values: PlaceValues & Values<Record<never, never>>;
  readonly operands: readonly string[];
  readonly words: readonly string[];
}

/** Runs the command; its read is recorded once, by itself or when it has ended, and the end of one that goes on for ever too. */
export const recordingReads = async (command: Command, line: CommandLine, io: Io): Promise<ExitStatus> => {
  const told = (extent: ReadExtent): Promise<void> => tellDaemons(command, line, extent).catch(() => undefined);
  let recorded: Promise<void> | null = null;
  let ended = async (): Promise<void> => {};
  const recordRead: RecordRead = (extent, atEnd) => {
    if (recorded !== null) return recorded;
    const began = told(extent);
    recorded = began;
    if (atEnd !== undefined) {
      ended = onceOnly(async () => {
        const last = atEnd();
        await began;
        await told(last);
      });
      io.beforeEnd?.(ended);
    }
    return began;
  };
  try {
    return await command.run(line.values, line.operands, withRecordRead(io, recordRead));
  } finally {
    await recordRead({});
    await ended();
  }
};

type RecordRead = NonNullable<Io['recordRead']>;

const onceOnly = (work: () => Promise<void>): (() => Promise<void>) => {
  let done: Promise<void> | null = null;
  return () => (done ??= work());
};

/** Not a copy of its values: standard input is opened by looking at it. */
const withRecordRead = (io: Io, recordRead: RecordRead): Io =>
  Object.create(io, { recordRead: { value: recordRead } }) as Io;

const tellDaemons = async (command: Command, line: CommandLine, extent: ReadExtent): Promise<void> => {
  for (const root of (await command.readsIn?.(line.values, line.operands)) ?? []) {
    const rootDir = await realpath(root);
    const socketPath = await socketAt(rootDir, line);
    // Before its client is loaded, which takes longer than most reads.
    if (socketPath === null || !(await exists(socketPath))) continue;
    const words = [...line.words, ...(extent.question === undefined ? [] : [extent.question])];
    await tell(socketPath, { rootDir, subcommand: command.name, words: words.map(shownWord), extent });
  }
};

/**
 * Where the daemon of this root listens: as the configuration says; for a journal or root that was named, where its journal
 * says that its state directory was. null for a copy: it lies elsewhere than its daemon had it.
 */
const socketAt = async (rootDir: string, { values }: CommandLine): Promise<string | null> => {
  const facts = newestFacts(journalOf(rootDir));
  if (facts === null || (await realpath(facts.rootDir).catch(() => facts.rootDir)) !== rootDir) return null;
  const isConfigured = values.root === undefined && (await realpath(await rootOf(values))) === rootDir;
  return isConfigured ? socketOf(values) : join(facts.stateDir, SOCKET_NAME);
};

interface Told {
  readonly rootDir: string;
  readonly subcommand: string;
  readonly words: readonly string[];
  readonly extent: ReadExtent;
}

const tell = async (socketPath: string, { extent, words, ...read }: Told): Promise<void> => {
  const { connectDaemon } = await import('./client.ts');
  const { DaemonDefinition } = await import('../wire/scribe/v1/daemon.ts');
  const daemon = await connectDaemon(socketPath);
  try {
    const request = {
      ...read,
      words: [...words],
      fromSeq: textOf(extent.fromSeq),
      toSeq: textOf(extent.toSeq),
      shown: textOf(extent.shown),
    };
    await daemon.call(DaemonDefinition, DaemonDefinition.methods.readJournal, request, TIMEOUT_MS);
  } finally {
    daemon.close();
  }
};

/**
 * A record of a read stays: it must not bring into the journal what somebody only looked for there (whether a password is in
 * it, say), nor the credentials of who is sent an export.
 */
const shownWord = (word: string, index: number, words: readonly string[]): string => {
  if (words[index - 1] === '--text') return LEFT_OUT;
  if (word.startsWith('--text=')) return `--text=${LEFT_OUT}`;
  const [option = '', value] = word.split(/(?<=^--[a-z-]+=)/);
  return value === undefined ? plainUrl(word) : `${option}${plainUrl(value)}`;
};

const textOf = (count: number | undefined): string | undefined => (count === undefined ? undefined : String(count));
