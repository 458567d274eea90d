/**
 * Tells the daemon whose journal it is that somebody reads it: which command, with which words, and what it has read. Who asks,
 * the daemon learns from the kernel.
 */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { SOCKET_NAME } from '../config/names.ts';
import { exists } from '../platform/linux/exists.ts';
import { LEFT_OUT, plainUrl } from './bundle/redact.ts';
import type { Command, Values } from './command.ts';
import type { ReadExtent } from './io.ts';
import { newestFacts } from './newest-facts.ts';
import { journalOf, type PlaceValues, rootOf, socketOf } from './places.ts';

const TIMEOUT_MS = 2_000;

export interface CommandLine {
  readonly values: PlaceValues & Values<Record<never, never>>;
  readonly operands: readonly string[];
  readonly words: readonly string[];
}

/** Throws what keeps the daemon from recording it. */
export const tellDaemons = async (command: Command, line: CommandLine, extent: ReadExtent): Promise<void> => {
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
