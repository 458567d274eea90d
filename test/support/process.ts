/**
 * Programs that tests start: run to their end, or kept running beside the test. Everything is bounded in time, output
 * is kept for error messages, and what a test started is gone when its owner ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Owner, onCleanup } from './cleanup.ts';

export interface CommandResult {
  /** null when a signal ended it. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly stdin?: string | Uint8Array;
  /** 30 seconds unless told. */
  readonly timeoutMs?: number;
}

const outputCharsMax = 1_000_000;

/** The last of a text that grows, cut now and then: cutting it at each piece would copy it each time. */
const withNext = (text: string, piece: string): string =>
  text.length < 2 * outputCharsMax ? text + piece : (text + piece).slice(-outputCharsMax);

const collect = (stream: NodeJS.ReadableStream | null): { text: () => string } => {
  let text = '';
  stream?.setEncoding('utf8').on('data', (chunk: string) => {
    text = withNext(text, chunk);
  });
  return { text: () => text.slice(-outputCharsMax) };
};

/** Runs a program to its end, whatever its exit status. Rejects when it can't be started or does not end in time. */
export const run = async (argv: readonly string[], options: CommandOptions = {}): Promise<CommandResult> => {
  const [command = '', ...args] = argv;
  const timeoutMs = options.timeoutMs ?? 30_000;
  const child = spawn(command, args, { env: options.env ?? process.env, cwd: options.cwd, stdio: 'pipe' });
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const limit = { passed: false };
  const timer = setTimeout(() => {
    limit.passed = true;
    child.kill('SIGKILL');
  }, timeoutMs);
  // A program that does not read its input closes it early; that is its own business.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.stdin);
  try {
    const [exitCode] = (await once(child, 'close')) as [number | null];
    if (limit.passed) throw new Error(`${argv.join(' ')} did not end within ${timeoutMs} ms: ${stderr.text()}`);
    return { exitCode, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    clearTimeout(timer);
  }
};

/** As run, but rejects on any exit status but 0, with what the program wrote. Resolves with its standard output. */
export const runOk = async (argv: readonly string[], options: CommandOptions = {}): Promise<string> => {
  const { exitCode, stdout, stderr } = await run(argv, options);
  if (exitCode !== 0) throw new Error(`${argv.join(' ')} ended with ${exitCode}: ${stderr}${stdout}`);
  return stdout;
};

export interface BackgroundProcess {
  readonly pid: number;
  /** Everything written so far (the last million characters), stdout and stderr mixed. */
  readonly output: () => string;
  /** Settles when the process has ended: exit status, or the signal's name. */
  readonly ended: Promise<number | string>;
  /** Resolves with the first match in the output; rejects when the process ends first or the time is over. */
  readonly until: (pattern: RegExp, timeoutMs?: number) => Promise<RegExpMatchArray>;
  readonly isAlive: () => boolean;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** SIGTERM, then SIGKILL after `graceMs`; resolves when it has ended. */
  readonly stop: (graceMs?: number) => Promise<void>;
}

const within = async <T>(promise: Promise<T>, timeoutMs: number, failure: () => Error): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(failure()), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
};

const handleOf = (child: ChildProcess, name: string): BackgroundProcess => {
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${name} could not be started: is it installed (sh scripts/setup.sh test)?`);
  let output = '';
  const watchers = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output = withNext(output, chunk);
      for (const watch of watchers) watch();
    });
  }
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  const until = async (pattern: RegExp, timeoutMs = 10_000): Promise<RegExpMatchArray> => {
    let watch: () => void = () => undefined;
    const seen = new Promise<RegExpMatchArray>((resolve) => {
      watch = () => {
        const match = output.match(pattern);
        if (match !== null) resolve(match);
      };
      watchers.add(watch);
      watch();
    });
    const gone = ended.then((how): never => {
      throw new Error(`${name} ended (${how}) before it said ${pattern}: ${output}`);
    });
    try {
      return await within(
        Promise.race([seen, gone]),
        timeoutMs,
        () => new Error(`${name} did not say ${pattern}: ${output}`),
      );
    } finally {
      watchers.delete(watch);
      gone.catch(() => undefined);
    }
  };
  const stop = async (graceMs = 10_000): Promise<void> => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
    await ended;
    clearTimeout(timer);
  };
  return {
    pid,
    output: () => output.slice(-outputCharsMax),
    ended,
    until,
    isAlive: () => child.exitCode === null && child.signalCode === null,
    kill: (signal) => void child.kill(signal),
    stop,
  };
};

/** Starts a program that runs beside the test, and stops it when the owner ends. */
export const startProcess = async (
  owner: Owner,
  argv: readonly string[],
  options: Pick<CommandOptions, 'env' | 'cwd'> = {},
): Promise<BackgroundProcess> => {
  const [command = '', ...args] = argv;
  const child = spawn(command, args, {
    env: options.env ?? process.env,
    cwd: options.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => Promise.reject(error as Error))]);
  const handle = handleOf(child, command);
  onCleanup(owner, () => handle.stop());
  return handle;
};
