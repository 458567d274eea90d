/**
 * The daemon's side of the spawner (C15): starts it, hands it requests, many at once, and gives back what it answers.
 * Must start nothing else itself. When the spawner ends unasked, everything under way fails and is killed; the daemon
 * cannot go on without it and has to end as well.
 */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { FailureError } from '../../domain/model/errors.ts';
import { readProcessStat } from '../linux/processes.ts';
import { createPendingReplies } from '../rpc/pending.ts';
import { orAfter } from '../rpc/timeout.ts';
import {
  createFrameReader,
  decodeJson,
  encodeFrame,
  encodeJson,
  FRAME_BODY_BYTES_MAX,
  type Frame,
  FrameKind,
  type RunTail,
  SPAWNER_FD,
  type SpawnerReply,
  type SpawnerRequest,
} from './protocol.ts';
import { killGroup } from './kill-group.ts';
import type { NamespacesRequest, RunRequest, Spawner } from './types.ts';

export interface SpawnerOptions {
  /** A file that the spawner holds an exclusive flock on for as long as it lives; made if missing. */
  readonly lockPath: string;
  /** How long the spawner of the previous daemon may take to end, and this one to start. */
  readonly startTimeoutMs: number;
  /** Whoever wants it no more aborts it while it starts; afterwards it has no effect. */
  readonly signal?: AbortSignal;
}

/** What is known of a request that has no reply yet. */
interface UnderWay {
  readonly output: ((frame: Frame) => void) | null;
  readonly onStarted: RunRequest['onStarted'];
  processGroup: number | null;
}

const noteStart = (underWay: UnderWay, pid: number): void => {
  underWay.processGroup = pid;
  underWay.onStarted?.(pid);
};

const mainPath = fileURLToPath(new URL('./spawner-main.ts', import.meta.url));

/**
 * The spawner lives long and does little: a small heap, no threads to help collecting it, no collections but those that are asked
 * for or needed, and no optimizing compilers, whose memory (12 MB) would be most of its own.
 */
const nodeFlags = [
  '--no-memory-reducer',
  '--max-semi-space-size=1',
  '--max-old-space-size=32',
  '--v8-pool-size=0',
  '--no-opt',
  '--no-maglev',
];
const environment = ({ NODE_COMPILE_CACHE, SCRIBE_NOFILE }: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  UV_THREADPOOL_SIZE: '1',
  ...(SCRIBE_NOFILE === undefined ? {} : { SCRIBE_NOFILE }),
  ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
});

const holderOf = async (lockPath: string): Promise<string> => {
  const pid = (await readFile(lockPath, 'utf8').catch(() => '')).trim();
  return pid === '' ? 'another process' : `process ${pid}`;
};

const inTime = async (ready: Promise<void>, lockPath: string, timeoutMs: number): Promise<void> => {
  const isReady = ready.then(() => true);
  if (await orAfter(isReady, timeoutMs, false)) return;
  const holder = await holderOf(lockPath);
  const what = `The spawner did not start within ${timeoutMs} ms: ${holder} may still hold ${lockPath}`;
  throw new FailureError('TimedOut', `${what}; end that process, then start scribe again.`);
};

const collectOutput = (onStdout: RunRequest['onStdout']) => {
  const pieces = { [FrameKind.stdout]: [] as Uint8Array[], [FrameKind.stderr]: [] as Uint8Array[] };
  return {
    output: ({ kind, body }: Frame): void => {
      if (kind === FrameKind.stdout && onStdout) onStdout(body);
      else if (kind === FrameKind.stdout || kind === FrameKind.stderr) pieces[kind].push(body);
    },
    collected: () => ({
      stdout: Buffer.concat(pieces[FrameKind.stdout]),
      stderr: Buffer.concat(pieces[FrameKind.stderr]),
    }),
  };
};

const checkInput = (command: string, stdin: Uint8Array | undefined): void => {
  if (stdin === undefined || stdin.length <= FRAME_BODY_BYTES_MAX) return;
  throw new FailureError('HostFailed', `${command} cannot be given ${stdin.length} bytes of standard input.`);
};

/** Hands an input on when it comes; `refuse` is called when it never will, and the returned function throws why. */
const whenItComes = (
  input: Promise<Uint8Array> | undefined,
  give: (input: Uint8Array) => void,
  refuse: () => void,
): (() => void) => {
  let refusal: { readonly error: unknown } | null = null;
  input?.then(give).catch((error: unknown) => {
    refusal = { error };
    refuse();
  });
  return () => {
    if (refusal !== null) throw refusal.error;
  };
};

/** What is asked for and answered in one message. */
const operationsOf = (ask: <T>(request: SpawnerRequest) => Promise<T>) => {
  const pinNamespaces = (namespaces: NamespacesRequest): Promise<void> => ask({ op: 'pinNamespaces', namespaces });
  return {
    pinNamespaces,
    startDetached: (program) => ask({ op: 'startDetached', program }),
    createNetns: (path) =>
      pinNamespaces({ pins: { network: path, ipc: null, uts: null }, hostname: null, sysctls: {} }),
    pinNetnsOf: (holder, path) => ask({ op: 'pinNetnsOf', holder, path }),
    readNetDev: (path) => ask({ op: 'readNetDev', path }),
    mountMapped: (mapped) => ask({ op: 'mountMapped', mapped }),
    mount: (mount) => ask({ op: 'mount', mount }),
    unmount: (target) => ask({ op: 'unmount', target }),
    unpin: (paths) => ask({ op: 'unpin', paths }),
    joinAhead: (forMs, hierarchy) => ask({ op: 'joinAhead', forMs, hierarchy }),
  } satisfies Partial<Spawner>;
};

/** Sends one request; the spawner answers it with what it gives. */
type Ask = (
  request: SpawnerRequest,
  run?: Partial<Pick<UnderWay, 'output'>> & Pick<RunRequest, 'stdin' | 'onStarted'>,
) => { readonly id: number; readonly reply: Promise<unknown> };

/** `send` does nothing once the spawner has ended: then `ask` has rejected. */
const createRun =
  (ask: Ask, send: (frame: Uint8Array) => void): Spawner['run'] =>
  async ({ stdin, input, told, onStdout, onStarted, signal, ...head }) => {
    const cancelled = (): FailureError => new FailureError('Cancelled', `${head.command} was cancelled.`);
    if (signal?.aborted) throw cancelled();
    checkInput(head.command, stdin);
    const { output, collected } = collectOutput(onStdout);
    const waits = {
      ...(told !== undefined && { waits: true as const }),
      ...(input !== undefined && { inputLater: true as const }),
    };
    const { id, reply } = ask({ op: 'run', run: { ...head, ...waits } }, { output, stdin, onStarted });
    told?.((what) => send(encodeJson(FrameKind.told, id, what)));
    const cancel = (): void => {
      send(encodeFrame(FrameKind.cancel, id, new Uint8Array()));
    };
    const give = (later: Uint8Array): void => {
      checkInput(head.command, later);
      send(encodeFrame(FrameKind.input, id, later));
    };
    const throwIfRefused = whenItComes(input, give, cancel);
    signal?.addEventListener('abort', cancel);
    try {
      const tail = (await reply) as RunTail;
      if (signal?.aborted) throw cancelled();
      throwIfRefused();
      return { ...tail, ...collected() };
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  };

/**
 * Starts the spawner and resolves once it takes requests. It does so only after the spawner of the previous daemon,
 * which holds the same lock, has ended with all that it was running: whoever waits for this may undo what that daemon
 * left half done. Rejects with FailureError TimedOut when that takes longer than `startTimeoutMs`, and HostFailed when
 * the spawner can't run at all.
 */
export const startSpawner = async ({ lockPath, startTimeoutMs, signal }: SpawnerOptions): Promise<Spawner> => {
  const child = spawn(process.execPath, [...nodeFlags, mainPath, lockPath], {
    detached: true,
    env: environment(process.env),
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
  });
  const socket = child.stdio[SPAWNER_FD] as Socket;
  const pending = createPendingReplies<unknown, UnderWay>();
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let lastId = 0;
  let open = true;

  const receive = (frame: Frame): void => {
    if (frame.kind === FrameKind.ready) return ready.resolve();
    const underWay = pending.noteOf(frame.id);
    if (underWay === undefined) return;
    if (frame.kind === FrameKind.started) noteStart(underWay, decodeJson(frame.body));
    else if (frame.kind === FrameKind.reply) {
      const reply = decodeJson<SpawnerReply>(frame.body);
      if (reply.ok) pending.resolve(frame.id, reply.value);
      else pending.reject(frame.id, new FailureError(reply.reason, reply.message));
    } else underWay.output?.(frame);
  };

  const abandon = (why: string): void => {
    if (!open) return;
    open = false;
    ready.reject(new FailureError('HostFailed', `The spawner could not start: ${why}.`));
    for (const { processGroup } of pending.notes()) {
      // The spawner has done this already unless it died without warning.
      if (processGroup !== null) killGroup(processGroup);
    }
    pending.close(new FailureError('HostFailed', 'The spawner has ended: scribe has to be restarted.'));
    ended.resolve();
  };

  child.once('error', (error) => abandon(error.message));
  child.once('exit', (code, signalName) => abandon(`it ended with ${signalName ?? code}, see its standard error`));
  socket.on('data', createFrameReader(receive));
  // What a broken connection means is said by the spawner's exit.
  socket.on('error', () => undefined);

  const unwanted = (): void => ready.reject(new FailureError('Cancelled', 'The spawner is not wanted any more.'));
  signal?.addEventListener('abort', unwanted);
  try {
    await inTime(ready.promise, lockPath, startTimeoutMs);
  } catch (error) {
    child.kill('SIGKILL');
    await ended.promise;
    throw error;
  } finally {
    signal?.removeEventListener('abort', unwanted);
  }

  const pid = child.pid ?? 0;
  const stat = await readProcessStat(pid);
  if (stat === null) throw new FailureError('HostFailed', 'The spawner ended as soon as it had started.');

  const send = (frame: Uint8Array): void => {
    if (open) socket.write(frame);
  };
  const ask: Ask = (request, { output = null, stdin, onStarted } = {}) => {
    lastId = (lastId + 1) % 2 ** 32;
    const id = lastId;
    const reply = pending.wait(id, { note: { output, onStarted, processGroup: null } });
    if (stdin) send(encodeFrame(FrameKind.stdin, id, stdin));
    send(encodeJson(FrameKind.request, id, request));
    return { id, reply };
  };

  return {
    pid,
    startTicks: stat.startTicks,
    run: createRun(ask, send),
    ...operationsOf(<T>(request: SpawnerRequest) => ask(request).reply as Promise<T>),
    ended: ended.promise,
    close: () => {
      socket.end();
      return ended.promise;
    },
  };
};
