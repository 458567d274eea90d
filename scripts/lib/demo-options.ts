/** Where `npm run up` and `npm run down` find the daemon and its directories, and how they speak to the person there. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs, promisify, styleText } from 'node:util';

const top = join(import.meta.dirname, '../..');
export const scribe = join(top, 'bin/scribe');
export const execute = promisify(execFile);

/** The bridge device of the network that `npm run up` makes where no CNI configuration is. */
export const demoBridge = 'scribe0';

export interface DemoOptions {
  readonly root: string;
  readonly state: string;
  readonly socket: string;
  /** `npm run down -- --all`: pods that are not the demo's are removed too. */
  readonly all: boolean;
}

const usage = (command: string): string =>
  `npm run ${command} -- [--root DIR] [--state DIR]${command === 'down' ? ' [--all]' : ''}`;

export const demoOptions = (command: 'up' | 'down'): DemoOptions => {
  const { values } = parseArgs({
    options: {
      root: { type: 'string' },
      state: { type: 'string' },
      all: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) {
    console.log(usage(command));
    process.exit(0);
  }
  // The daemon runs elsewhere, and an empty variable is as none.
  const root = resolve(values.root ?? (process.env['SCRIBE_ROOT'] || '/var/lib/scribe'));
  const state = resolve(values.state ?? (process.env['SCRIBE_STATE'] || '/run/scribe'));
  return { root, state, socket: join(state, 'scribe.sock'), all: values.all === true };
};

/**
 * What is said goes on past a reader that has gone (`| head`), or a disk that is full: a daemon that was half started and a pod
 * that was half made would be worse than words that are missing. Words that nobody could be given are no success.
 */
export const goOnUnheard = (): void => {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || process.exitCode === 1) return;
    process.exitCode = 1;
    console.error(`Standard output cannot be written to: ${error.message}.`);
  });
};

/** A headline of what is happening now. */
export const say = (text: string): void => console.log(`${styleText('bold', '==')} ${text}`);

/** Text of others (logs, output, tables), set apart. */
export const show = (text: string): void => console.log(text.trimEnd().replace(/^/gm, '   '));

/** A word as a shell takes it: commands are shown to be copied. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Throws unless root asks for it. `why` is what it does that others may not. */
export const needRoot = (why: string): void => {
  if (process.getuid?.() !== 0) throw new Error(`${why}: run it as root`);
};

/** The pid in `<state>/scribe.pid` if that process is a scribe daemon; null when none runs. */
export const daemonPid = async (state: string): Promise<number | null> => {
  try {
    const pid = Number((await readFile(join(state, 'scribe.pid'), 'utf8')).trim());
    const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8');
    return commandLine.includes('\0serve') ? pid : null;
  } catch {
    return null;
  }
};

/** Ends a script with one sentence for the person who started it. */
export const giveUp = (error: unknown): never => {
  console.error(styleText('red', error instanceof Error ? error.message : String(error)));
  process.exit(1);
};
