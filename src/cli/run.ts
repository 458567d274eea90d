/**
 * Finds the command that the first words name, has it parse the rest and run, and turns whatever goes wrong into a
 * sentence and an exit status. Loads no command but the one that is asked for.
 */
import { nearest } from '../config/nearest.ts';
import { CliError, type Command, type ExitStatus, misuse } from './command.ts';
import { withRemedy } from './damage.ts';
import { type Io, write } from './io.ts';
import { parseWords } from './parse.ts';

interface Entry {
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

/** A command has exact options, the table only knows that it has some: nothing but parseWords makes its values. */
const loaded = (command: unknown): Command => command as Command;

/** By the words that name them. */
const commands: Readonly<Record<string, Entry>> = {
  serve: { summary: 'run the daemon', load: async () => loaded((await import('./serve.ts')).serve) },
  history: {
    summary: 'who called what, when, and how it ended',
    load: async () => loaded((await import('./history.ts')).history),
  },
  report: {
    summary: 'how often what was done, by whom, and how it ended',
    load: async () => loaded((await import('./report.ts')).report),
  },
  why: {
    summary: 'why a pod, container, image or call is as it is',
    load: async () => loaded((await import('./why.ts')).why),
  },
  at: {
    summary: 'the node as it was at a moment',
    load: async () => loaded((await import('./at.ts')).at),
  },
  diff: {
    summary: 'what changed on the node between two moments',
    load: async () => loaded((await import('./diff.ts')).diff),
  },
  verify: {
    summary: 'check every hash of the journal, and what it folds to',
    load: async () => loaded((await import('./verify.ts')).verify),
  },
  replay: {
    summary: 'decide again what journals say was decided, and show what differs',
    load: async () => loaded((await import('./replay.ts')).replay),
  },
  prove: {
    summary: 'prove that a record is in the journal',
    load: async () => loaded((await import('./prove.ts')).prove),
  },
  export: {
    summary: "write the journal for other people's tools",
    load: async () => loaded((await import('./export.ts')).exportCommand),
  },
  bundle: {
    summary: 'put what a bug report needs into one file',
    load: async () => loaded((await import('./bundle.ts')).bundle),
  },
  ui: { summary: 'the journal as a page in a browser', load: async () => loaded((await import('./ui.ts')).ui) },
  doctor: {
    summary: 'check this machine, and what the daemon still owes',
    load: async () => loaded((await import('./doctor.ts')).doctor),
  },
  'journal acknowledge': {
    summary: 'say that you know why the journal is not all that was written here',
    load: async () => loaded((await import('./journal/acknowledge.ts')).journalAcknowledge),
  },
  'journal clear-strays': {
    summary: 'end shims and take away mounts that no record explains',
    load: async () => loaded((await import('./journal/clear-strays.ts')).journalClearStrays),
  },
  'journal info': {
    summary: 'what is in the journal, what it takes, and how it grows',
    load: async () => loaded((await import('./journal/info.ts')).journalInfo),
  },
  'journal backup': {
    summary: 'copy the journal, of one moment, with the daemon up or down',
    load: async () => loaded((await import('./journal/backup.ts')).journalBackup),
  },
  'journal compact': {
    summary: 'give room inside the journal that nothing needs back to the disk',
    load: async () => loaded((await import('./journal/compact.ts')).journalCompact),
  },
  'journal vkey': {
    summary: 'print the key that checks signatures of the journal',
    load: async () => loaded((await import('./journal/vkey.ts')).journalVkey),
  },
  sql: { summary: 'ask the journal in SQL', load: async () => loaded((await import('./sql.ts')).sql) },
  reload: {
    summary: 'have the running daemon read its configuration again',
    load: async () => loaded((await import('./reload.ts')).reload),
  },
  'log-level': {
    summary: 'change what the running daemon logs',
    load: async () => loaded((await import('./log-level.ts')).logLevel),
  },
  nri: {
    summary: 'list NRI plugins, how they do, and what they own',
    load: async () => loaded((await import('./nri.ts')).nri),
  },
  'image pull': {
    summary: 'pull an image from its registry',
    load: async () => loaded((await import('./image/pull.ts')).imagePull),
  },
  'image load': {
    summary: 'load the images of an archive',
    load: async () => loaded((await import('./image/load.ts')).imageLoad),
  },
  'image ls': {
    summary: 'list the images on this node',
    load: async () => loaded((await import('./image/ls.ts')).imageLs),
  },
  'config default': {
    summary: 'print the configuration with every default',
    load: async () => loaded((await import('./config.ts')).configDefault),
  },
  'config check': {
    summary: 'read the configuration and say what is wrong with it',
    load: async () => loaded((await import('./config.ts')).configCheck),
  },
  version: { summary: 'print the version', load: async () => loaded((await import('./version.ts')).version) },
};

const HELP_WORDS: readonly string[] = ['help', '--help', '-h'];

const inGroup = (group: string): string[] => Object.keys(commands).filter((name) => name.startsWith(`${group} `));

/** Every name a first word may be: of a command, or of a group of them. */
const firstWords = (): string[] => [...new Set(Object.keys(commands).map((name) => name.split(' ')[0] ?? ''))];

const unknown = (typed: string, known: readonly string[], start: string): Error => {
  const meant = nearest(typed, known);
  const hint = meant !== null ? `did you mean "${start}${meant}"?` : `there are ${known.join(', ')}.`;
  return misuse(`There is no command "${start}${typed}"; ${hint}`);
};

const listed = (names: readonly string[]): (readonly [string, string])[] =>
  names.map((name) => [name, commands[name]?.summary ?? ''] as const);

interface Found {
  readonly name: string;
  readonly entry: Entry;
  readonly rest: readonly string[];
}

/** The command that the words begin with; a text to show instead when they only ask for help. */
const find = async (words: readonly string[]): Promise<Found | string> => {
  const [first = '', second = ''] = words;
  const help = async (names: readonly string[], group = ''): Promise<string> =>
    (await import('./help.ts')).overview(listed(names), group);
  if (words.length === 0) throw misuse('A command is missing.');
  if (HELP_WORDS.includes(first)) {
    const asked = words.slice(1);
    return asked.length > 0 && first === 'help' ? find([...asked, '--help']) : help(Object.keys(commands));
  }
  const entry = commands[first];
  if (entry !== undefined) return { name: first, entry, rest: words.slice(1) };
  const group = inGroup(first);
  if (group.length === 0) throw unknown(first, firstWords(), '');
  const name = `${first} ${second}`;
  const inner = commands[name];
  if (inner !== undefined) return { name, entry: inner, rest: words.slice(2) };
  if (HELP_WORDS.includes(second)) return help(group, first);
  const known = group.map((full) => full.slice(first.length + 1));
  if (second === '' || second.startsWith('-')) throw misuse(`"${first}" needs one of ${known.join(', ')} after it.`);
  throw unknown(second, known, `${first} `);
};

const dispatch = async (words: readonly string[], io: Io): Promise<ExitStatus> => {
  // Asked for by habit, before any command.
  const found = await find(words[0] === '--version' ? ['version'] : words);
  if (typeof found === 'string') {
    await write(io.stdout, found);
    return 0;
  }
  const command = await found.entry.load();
  const { help, values, operands } = parsed(command, found);
  if (help) {
    const { commandHelp } = await import('./help.ts');
    await write(io.stdout, commandHelp(command));
    return 0;
  }
  const run = async (streams: Io): Promise<ExitStatus> => {
    if (command.readsIn === undefined) return command.run(values, operands, streams);
    // The daemon whose journal it is, and its pods, are not to notice.
    streams.giveWay?.();
    const { recordingReads } = await import('./record-read.ts');
    return recordingReads(command, { values, operands, words: found.rest }, streams);
  };
  const { stdout, pagerEnv } = io;
  if (pagerEnv === undefined || command.isPaged?.(values) !== true) return run(io);
  const { paged } = await import('./pager.ts');
  // Not a copy of its values: standard input is opened by looking at it.
  return paged(stdout, pagerEnv, (shown) => run(Object.create(io, { stdout: { value: shown } }) as Io));
};

const parsed = (command: Command, { name, rest }: Found): ReturnType<typeof parseWords> => {
  try {
    return parseWords(rest, command);
  } catch (error) {
    if (error instanceof CliError) throw misuse(`${error.message}\nscribe ${name} --help describes the command.`);
    throw error;
  }
};

/** One sentence for what was meant to be read; the whole trace for what nobody expected. */
const describe = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const foreseen = error instanceof CliError || 'failure' in error || 'code' in error;
  const said = withRemedy(error.message);
  return foreseen || said !== error.message ? said : (error.stack ?? said);
};

/** Runs one command line. Never rejects: what goes wrong is said on standard error. */
export const runCommandLine = async (words: readonly string[], io: Io): Promise<ExitStatus> => {
  try {
    return await dispatch(words, io);
  } catch (error) {
    await write(io.stderr, `scribe: ${describe(error)}\n`);
    if (!(error instanceof CliError)) return 1;
    if (words.length === 0) await write(io.stderr, 'scribe --help lists the commands.\n');
    return error.exitStatus;
  }
};
