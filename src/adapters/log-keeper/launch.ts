/**
 * Finds the log keeper that serves a state directory, or starts one. Only one daemon at a time may call this for a
 * directory (it holds the journal's lock): that is why at most one keeper is ever in charge of it.
 */
import { randomBytes } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { access, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { SIGKILL, SIGTERM } from '../../domain/values/signals.ts';
import { endsWithin, type HeldProcess, holdProcess, readBootId } from '../../platform/linux/processes.ts';
import { SOCKET_PATH_BYTES_MAX } from '../../platform/linux/unix-listener.ts';
import { within } from '../../platform/rpc/timeout.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import { connectToKeeper, type KeeperConnection } from './connection.ts';
import { type KeeperName, type KeeperState, NO_STATE, parseKeeperState, statePath } from './keeper-state.ts';
import { type Greeting, parseGreeting, PROTOCOL_VERSION, readyPath, servingPath } from './protocol.ts';

const HELLO_TIMEOUT_MS = 10_000;
const START_TIMEOUT_MS = 20_000;
const END_TIMEOUT_MS = 5_000;
/** A keeper that reads nothing and has no client for so long ends. */
const IDLE_END_MS = 60_000;
const DIRECTORY_MODE = 0o700;
const TOKEN_BYTES = 4;

const mainPath = fileURLToPath(new URL('./keeper-main.ts', import.meta.url));
/**
 * The keeper is there as long as the node is, and its memory counts as the daemon's: a small heap, no helper threads
 * for collecting it, and no collections but those that are asked for or needed.
 */
const nodeFlags = ['--no-memory-reducer', '--max-semi-space-size=1', '--max-old-space-size=64', '--v8-pool-size=0'];

export interface KeeperDirectory {
  readonly dir: string;
  readonly spawner: Spawner;
  readonly report: (message: string) => void;
}

export interface MetKeeper {
  readonly connection: KeeperConnection;
  readonly greeting: Greeting;
}

export interface FoundKeeper extends MetKeeper {
  /** The one that it was started in the place of, and why; null: none was, or it was there already. */
  readonly replaced: { readonly name: KeeperName; readonly why: string } | null;
  readonly isNew: boolean;
}

const greet = async (path: string): Promise<MetKeeper> => {
  const connection = await connectToKeeper(path);
  try {
    const hello = { op: 'hello', protocol: PROTOCOL_VERSION } as const;
    return { connection, greeting: parseGreeting(await connection.request(hello, HELLO_TIMEOUT_MS)) };
  } catch (error) {
    connection.destroy();
    throw error;
  }
};

/** Ends exactly this process and waits, bounded, until it has gone; false when it had gone before. */
const endKeeper = async (name: KeeperName, signal: number): Promise<boolean> => {
  const held = await holdProcess(name);
  if (held === null) return false;
  held.kill(signal);
  if (!(await endsWithin(held, END_TIMEOUT_MS))) {
    held.kill(SIGKILL);
    // One that hangs in the kernel is not waited for: with SIGKILL pending it will never read again.
    await endsWithin(held, END_TIMEOUT_MS);
  }
  held.release();
  return true;
};

/** What the keeper left that last wrote the state file. */
const readState = async ({ dir, report }: KeeperDirectory): Promise<KeeperState> => {
  const text = await readFile(statePath(dir), 'utf8').catch(() => null);
  return text === null ? NO_STATE : parseKeeperState(text, await readBootId(), report);
};

/** Where the kernel has no inotify instance or watch left to tell by, as pods can use up those of root. */
const LOOK_EVERY_MS = 20;

/** Resolves when the file at `path` appears in the directory; the kernel tells. */
const appearance = (dir: string, path: string): { readonly appeared: Promise<void>; readonly stop: () => void } => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = (): void => {
    access(path).then(resolve, () => undefined);
  };
  let watcher: FSWatcher | null = null;
  let timer: NodeJS.Timeout | undefined;
  const lookOften = (): void => {
    timer ??= setInterval(look, LOOK_EVERY_MS);
  };
  try {
    watcher = watch(dir, look).on('error', lookOften);
  } catch {
    lookOften();
  }
  look();
  return {
    appeared: promise,
    stop: () => {
      watcher?.close();
      clearInterval(timer);
    },
  };
};

const removeOldSockets = async (dir: string): Promise<void> => {
  const names = await readdir(dir);
  const old = names.filter((name) => name.endsWith('.new') || name.endsWith('.ready'));
  await Promise.all(old.map((name) => rm(join(dir, name), { force: true })));
};

const startKeeper = async ({ dir, spawner }: KeeperDirectory): Promise<MetKeeper> => {
  const token = randomBytes(TOKEN_BYTES).toString('hex');
  const path = readyPath(dir, token);
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) {
    const what = `The socket path ${path} is longer than the kernel allows (${SOCKET_PATH_BYTES_MAX} bytes)`;
    throw new FailureError('InvalidField', `${what}: choose a shorter state directory.`);
  }
  await removeOldSockets(dir);
  const outputPath = join(dir, 'keeper.log');
  const { NODE_COMPILE_CACHE } = process.env;
  const { appeared, stop } = appearance(dir, path);
  let held: HeldProcess | null = null;
  const late = (): FailureError =>
    new FailureError('TimedOut', `The log keeper was not ready within ${START_TIMEOUT_MS} ms: see ${outputPath}.`);
  try {
    const name = await spawner.startDetached({
      command: process.execPath,
      args: [...nodeFlags, mainPath, dir, token, String(IDLE_END_MS)],
      env: NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE },
      cwd: '/',
      outputPath,
    });
    held = await holdProcess(name);
    const endedEarly = Promise.resolve(held?.ended).then(() => {
      throw new FailureError('HostFailed', `The log keeper ended as soon as it had started: see ${outputPath}.`);
    });
    await within(Promise.race([appeared, endedEarly]), START_TIMEOUT_MS, late);
    return await greet(path);
  } finally {
    stop();
    held?.release();
  }
};

/**
 * Connects to the keeper in charge, or starts one and puts it in charge. A keeper of another protocol hands over to a
 * new one; one that does not answer is killed, for two must never read the same FIFOs. Rejects with FailureError.
 */
export const findKeeper = async (directory: KeeperDirectory): Promise<FoundKeeper> => {
  const { dir, report } = directory;
  await mkdir(dir, { recursive: true, mode: DIRECTORY_MODE });
  let replaced: FoundKeeper['replaced'] = null;
  try {
    const found = await greet(servingPath(dir));
    if (found.greeting.protocol === PROTOCOL_VERSION) return { ...found, replaced: null, isNew: false };
    const { pid, startTicks, protocol } = found.greeting;
    report(
      `The log keeper (pid ${pid}) speaks protocol ${protocol}, not ${PROTOCOL_VERSION}: it hands over to a new one`,
    );
    found.connection.destroy();
    replaced = { name: { pid, startTicks }, why: `it spoke protocol ${protocol}, not ${PROTOCOL_VERSION}` };
    await endKeeper({ pid, startTicks }, SIGTERM);
  } catch (error) {
    const { owner, isWhole } = await readState(directory);
    const wasThere = owner !== null && (await endKeeper(owner, SIGKILL));
    if (wasThere) report(`The log keeper (pid ${owner.pid}) could not be reached and was killed: ${messageOf(error)}`);
    const ended = isWhole ? 'it has ended in order' : 'it was killed, or ended by an error';
    const why = wasThere ? `it could not be reached and was killed: ${messageOf(error)}` : ended;
    replaced = owner === null ? null : { name: owner, why };
  }
  return { ...(await startKeeper(directory)), replaced, isNew: true };
};
