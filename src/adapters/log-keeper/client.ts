/**
 * The daemon's side of the log keeper (C16): one LogKeeper for as long as the daemon runs, whichever process keeps the
 * logs behind it. When that process dies it starts another and makes sure that it reads what was being read. Must
 * itself never read a container's output.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { Files } from '../../platform/linux/files.ts';
import { closeDescriptor } from '../../platform/linux/syscalls.ts';
import { type Backoff, untilDone } from '../../platform/rpc/retry.ts';
import { orAfter, within } from '../../platform/rpc/timeout.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import { createAttachedPlaces } from './attach-limits.ts';
import { ConnectionLost } from './connection.ts';
import { findKeeper, type FoundKeeper } from './launch.ts';
import { type KeeperRequest, parseIds, parseTroubles, REQUEST_TIMEOUT_MS, servingPath } from './protocol.ts';
import type { AttachedBytes, AttachmentEnd } from '../streaming/types.ts';
import type { KeptOutput, LogKeeper, LogKeeperNews, LogTrouble } from './types.ts';

const BACKOFF: Backoff = { firstMs: 100, lastMs: 5000 };
/** A keeper that lives no longer than this may be dying of what it is given: the next one is not started at once. */
const SHORT_LIFE_MS = 2000;
const BACKOFF_OF_SHORT_LIFE: Backoff = { ...BACKOFF, firstMs: 250 };
/** Whoever asks what is wrong with logs is not kept waiting for a disk that hangs. */
const TROUBLES_TIMEOUT_MS = 2_000;
/** An attachment may notice the end of its keeper so much before the connection for requests does. */
const LOSS_NOTICE_MS = 1000;
const HOLD_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

export interface LogKeeperOptions {
  /** The daemon's state directory; the keeper's is log-keeper in it. */
  readonly stateDir: string;
  /** Of that directory. */
  readonly files: Files;
  readonly spawner: Spawner;
  /** Content of one record at most, of outputs that are opened from now on. */
  readonly lineBytesMax: number;
  /** Told in a sentence when a keeper is lost, started or replaced, and why. */
  readonly log: (message: string) => void;
  /** Told when a keeper has gone and when another was started, for the record. */
  readonly tell: (news: LogKeeperNews) => void;
}

const interrupted = (): FailureError =>
  new FailureError('Interrupted', 'The daemon has let go of its log keeper, for it is ending.');

/**
 * Holds on to FIFOs without reading: what is in them is not lost while no keeper has them open, and nobody who opens them for
 * writing waits for a reader that never comes.
 */
const holdFifos = async (files: Files, { stdoutFifo, stderrFifo }: KeptOutput): Promise<readonly number[]> => {
  const paths = stderrFifo === null ? [stdoutFifo] : [stdoutFifo, stderrFifo];
  const opened = await Promise.allSettled(paths.map((path) => files.callsAt(path).open(path, HOLD_FLAGS)));
  // One that is not there is for the keeper to complain about.
  return opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
};

const noKeeper = (): FailureError =>
  new FailureError('TimedOut', 'There is no log keeper to ask: see the log for why none could be started.');

/** What containers' output is read for the daemon. */
const createKnownOutputs = (files: Files) => {
  const known = new Map<string, KeptOutput>();
  const holds = new Map<string, Promise<readonly number[]>>();
  /** Nobody wants them any more, but no keeper has said that it closed them. */
  const unclosed = new Set<string>();

  const remember = (request: KeptOutput): void => {
    known.set(request.containerId, request);
    if (!holds.has(request.containerId)) holds.set(request.containerId, holdFifos(files, request));
  };

  /** Its FIFOs stay held. */
  const refuse = (containerId: string): void => void known.delete(containerId);

  const forget = async (containerId: string): Promise<void> => {
    known.delete(containerId);
    const held = holds.get(containerId);
    holds.delete(containerId);
    // A FIFO has nothing on a disk that closing could wait for.
    for (const hold of (await held) ?? []) closeDescriptor(hold);
  };

  /** Also when it could not be closed: its FIFOs are about to go, and nobody asks again. Then the next keeper is told. */
  const forgetOnce = async (containerId: string, close: () => Promise<unknown>): Promise<void> => {
    try {
      await close();
      unclosed.delete(containerId);
    } catch (error) {
      unclosed.add(containerId);
      throw error;
    } finally {
      await forget(containerId);
    }
  };

  const forgetAll = (): Promise<unknown> => Promise.all([...holds.keys()].map(forget));

  return { known, unclosed, remember, refuse, forget, forgetOnce, forgetAll };
};

type KnownOutputs = ReturnType<typeof createKnownOutputs>;

/** Brings keeper and daemon to the same knowledge: the state file it started from may be older, or lost. */
const reconcile = async (
  { connection, greeting }: FoundKeeper,
  { known, unclosed, remember }: KnownOutputs,
  log: (message: string) => void,
): Promise<void> => {
  const kept = new Map(greeting.containers.map((container) => [container.containerId, container]));
  const repeat = async (request: KeeperRequest): Promise<void> => {
    try {
      await connection.request(request, REQUEST_TIMEOUT_MS);
      if (request.op === 'close') unclosed.delete(request.containerId);
    } catch (error) {
      log(`The log keeper can't go on with a container: ${messageOf(error)}`);
    }
  };
  const differing = [...known.values()].flatMap((request): KeeperRequest[] => {
    const { containerId, logPath } = request;
    const found = kept.get(containerId);
    if (found === undefined) return [{ op: 'open', isNew: false, ...request }];
    return logPath === null || found.logPath === logPath ? [] : [{ op: 'reopen', containerId, logPath }];
  });
  for (const containerId of unclosed) {
    if (kept.has(containerId)) differing.push({ op: 'close', containerId, timeoutMs: 0 });
    else unclosed.delete(containerId);
  }
  for (const container of greeting.containers)
    if (!known.has(container.containerId) && !unclosed.has(container.containerId)) remember(container);
  await Promise.all(differing.map(repeat));
};

/** Asks the keeper of the moment, and its successor if that one dies before it has answered. */
const askKeeper = async (
  request: KeeperRequest,
  timeoutMs: number,
  keeperWithin: (timeoutMs: number) => Promise<FoundKeeper>,
): Promise<unknown> => {
  const giveUpAtMs = performance.now() + timeoutMs;
  for (;;) {
    const { connection } = await keeperWithin(giveUpAtMs - performance.now());
    try {
      return await connection.request(request, giveUpAtMs - performance.now());
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      await connection.closed;
    }
  }
};

const troublesOf = async (
  ask: (request: KeeperRequest, timeoutMs: number) => Promise<unknown>,
): Promise<readonly LogTrouble[]> => {
  try {
    return parseTroubles(await ask({ op: 'troubles' }, TROUBLES_TIMEOUT_MS));
  } catch (error) {
    // One of before does not know the question.
    if (error instanceof FailureError && error.failure.reason === 'InvalidField') return [];
    throw error;
  }
};

/** Hears a container to its end, by one keeper after the other. */
const hearAll = async (
  hear: (keeperPath: string) => Promise<AttachmentEnd>,
  keeperPath: string,
  keeperNow: () => Promise<FoundKeeper>,
): Promise<AttachedBytes> => {
  const heard = { stdoutBytes: 0, stderrBytes: 0 };
  for (;;) {
    const { connection } = await keeperNow();
    const { end, stdoutBytes, stderrBytes } = await hear(keeperPath);
    heard.stdoutBytes += stdoutBytes;
    heard.stderrBytes += stderrBytes;
    if (end === 'over') return heard;
    // When the keeper has gone, the next one goes on; one that is still there has refused.
    const gone = connection.closed.then(() => true);
    if (!(await orAfter(gone, LOSS_NOTICE_MS, false)))
      throw new FailureError('HostFailed', 'The log keeper refused a client: it has as many as it takes.');
  }
};

/**
 * Connects to the log keeper of this state directory, or starts it. The result's pid and startTicks are those of the
 * process that keeps the logs at the moment. All its operations may be repeated; they reject with FailureError, and
 * outlast the death of a keeper. What a keeper loses when it is killed: the unfinished line of each stream, and what
 * it was reading at that moment, 64 KiB at most; the log and a record say where that may have been. One that is ended
 * by SIGTERM loses nothing.
 */
export const connectLogKeeper = async (options: LogKeeperOptions): Promise<LogKeeper> => {
  const { stateDir, spawner, lineBytesMax, log, tell } = options;
  const directory = { dir: join(stateDir, 'log-keeper'), spawner, report: log };
  const outputs = createKnownOutputs(options.files);
  const { known, remember, refuse, forget, forgetOnce, forgetAll } = outputs;
  const disconnected = new AbortController();

  const connect = async (): Promise<FoundKeeper> => {
    const found = await findKeeper(directory);
    const { greeting: met, replaced, isNew } = found;
    if (replaced !== null) tell({ kind: 'LogKeeperEnded', ...replaced.name, reason: replaced.why });
    if (isNew) tell({ kind: 'LogKeeperStarted', pid: met.pid, startTicks: met.startTicks, doubtful: met.doubtful });
    await reconcile(found, outputs, log);
    return found;
  };

  const connectAgain = async (hadShortLife: boolean): Promise<FoundKeeper> => {
    const { signal } = disconnected;
    const onFailure = (error: unknown): void => {
      signal.throwIfAborted();
      log(`No log keeper could be started, trying again: ${messageOf(error)}`);
    };
    const tries = hadShortLife ? { backoff: BACKOFF_OF_SHORT_LIFE, failuresBefore: 1 } : { backoff: BACKOFF };
    const found = await untilDone(connect, { ...tries, signal, onFailure });
    log(`The log keeper was replaced by a new one (pid ${found.greeting.pid})`);
    return found;
  };

  /** Sees to it that the keeper found is replaced when it goes. */
  const use = (found: FoundKeeper): FoundKeeper => {
    const startedMs = performance.now();
    greeting = found.greeting;
    void found.connection.closed.then(() => {
      if (disconnected.signal.aborted) return;
      log(`The log keeper (pid ${found.greeting.pid}) has gone; another takes over`);
      const livedMs = performance.now() - startedMs;
      current = connectAgain(livedMs < SHORT_LIFE_MS).then(use);
      // Whoever asks next is told; nobody may have asked.
      current.catch(() => undefined);
    });
    return found;
  };

  const first = await connect();
  let { greeting } = first;
  let current = Promise.resolve(use(first));

  const takePlace = createAttachedPlaces();

  const keeperWithin = async (timeoutMs: number): Promise<FoundKeeper> => {
    disconnected.signal.throwIfAborted();
    return within(current, timeoutMs, noKeeper);
  };
  const ask = (request: KeeperRequest, timeoutMs: number): Promise<unknown> =>
    askKeeper(request, timeoutMs, keeperWithin);

  return {
    get pid() {
      return greeting.pid;
    },
    get startTicks() {
      return greeting.startTicks;
    },
    open: async (wanted) => {
      const isNew = !known.has(wanted.containerId);
      const request = { ...wanted, lineBytesMax };
      if (isNew) remember(request);
      try {
        await ask({ op: 'open', isNew, ...request }, REQUEST_TIMEOUT_MS);
      } catch (error) {
        if (isNew) refuse(request.containerId);
        throw error;
      }
    },
    reopen: async (containerId, logPath) => {
      await ask({ op: 'reopen', containerId, logPath }, REQUEST_TIMEOUT_MS);
      const request = known.get(containerId);
      if (request !== undefined) known.set(containerId, { ...request, logPath });
    },
    close: async (containerId, timeoutMs) => {
      // Nothing is read from FIFOs that are held for one that was refused, whether there is a keeper to ask or not.
      if (!known.has(containerId)) await forget(containerId);
      const close = { op: 'close', containerId, timeoutMs } as const;
      await forgetOnce(containerId, () => ask(close, timeoutMs + REQUEST_TIMEOUT_MS));
    },
    attach: async (containerId, hear) => {
      const leave = takePlace(containerId);
      try {
        return await hearAll(hear, servingPath(directory.dir), () => keeperWithin(REQUEST_TIMEOUT_MS));
      } finally {
        leave();
      }
    },
    troubles: () => troublesOf(ask),
    list: async () => parseIds(await ask({ op: 'list' }, REQUEST_TIMEOUT_MS)),
    disconnect: () => {
      disconnected.abort(interrupted());
      void forgetAll();
      void current.then(
        ({ connection }) => {
          connection.request({ op: 'bye' }, REQUEST_TIMEOUT_MS).catch(() => undefined);
          connection.end();
        },
        () => undefined,
      );
    },
  };
};
