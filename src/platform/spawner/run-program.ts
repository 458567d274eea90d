/**
 * Runs one program to its end, in the spawner's process: in a session and process group of its own, with bounded
 * output and time. Must leave nothing of the group behind when it was told to kill, and must not know who asked.
 */
import { closeSync, writeSync } from 'node:fs';
import { messageOf } from '../../domain/model/errors.ts';
import { Socket } from 'node:net';
import { makePipe, type Pipe, type ProcessEnd, spawnProgram } from '../linux/spawn.ts';
import { timerMs } from '../rpc/timeout.ts';
import { connectUnix } from '../linux/syscalls.ts';
import { type BoundedOutput, keepBeginning, keepEnd } from './bounded-output.ts';
import { killGroup } from './kill-group.ts';
import { giveNewRoot } from './new-root.ts';
import type { RunHead, RunTail } from './protocol.ts';
import type { NewRoot, Told } from './types.ts';

export type OutputStream = 'stdout' | 'stderr';

/** Where what a program says and how it ends is told. */
export interface RunListener {
  /** false asks for a pause until the program's `resume` is called. */
  readonly output: (stream: OutputStream, chunk: Uint8Array) => boolean;
  /** Called once, and nothing after it. */
  readonly ended: (tail: RunTail) => void;
}

export interface RunningProgram {
  /** The program's pid as well. */
  readonly processGroup: number;
  /** What it may still take when the daemon has gone: nothing while it waits for its input. */
  readonly finishMs: () => number;
  /** The input that it waits for; its time begins. */
  readonly giveInput: (input: Uint8Array) => void;
  /** SIGKILL to the whole process group. */
  readonly kill: () => void;
  readonly resume: () => void;
  /** What it waits for. */
  readonly tell: (what: Told) => void;
  /** To be called when the process has been reaped. */
  readonly reaped: (end: ProcessEnd) => void;
}

/** How long output may stay open after the program's end, held by something it left behind. */
const LINGER_MS = 1_000;
/** A killed program that is not gone by then hangs in the kernel: it runs no more, but its end may never come. */
const KILL_WAIT_MS = 5_000;
/** The next daemon has to wait for it. */
const FINISH_MS_MAX = 10_000;

/** Starts the program with pipes for its streams; ours are returned, the program's ends are closed here. */
const spawnPiped = (
  head: RunHead,
  pipes: { stdin: Pipe | null; stdout: Pipe; stderr: Pipe },
  nullFd: number,
): number => {
  let socketFd: number | undefined;
  try {
    const streams = [pipes.stdin?.readFd ?? nullFd, pipes.stdout.writeFd, pipes.stderr.writeFd] as const;
    if (head.socketPath === undefined) return spawnProgram(head, streams);
    socketFd = connectUnix(head.socketPath);
    return spawnProgram(head, [...streams, socketFd]);
  } catch (error) {
    for (const fd of [pipes.stdin?.writeFd, pipes.stdout.readFd, pipes.stderr.readFd]) {
      if (fd !== undefined) closeSync(fd);
    }
    throw error;
  } finally {
    for (const fd of [pipes.stdin?.readFd, pipes.stdout.writeFd, pipes.stderr.writeFd, socketFd]) {
      if (fd !== undefined) closeSync(fd);
    }
  }
};

const writeInput = (fd: number, input: Uint8Array): void => {
  const socket = new Socket({ fd, readable: false, writable: true });
  // A program need not read what it is given.
  socket.on('error', () => socket.destroy());
  socket.end(input, () => socket.destroy());
};

/** The end of the stdin of a program that waits: for its input, or for what it is told and its root after the first time. */
const createWaiting = (stdinFd: number | null, forInput: boolean) => {
  let held = stdinFd;
  let hasInput = !forInput;
  let root: NewRoot | null = null;
  const say = (line: string): void => {
    if (held === null) return;
    try {
      writeSync(held, line);
    } catch {
      // It has ended, which says more than this.
    }
  };
  return {
    /** null: it does not wait for one. */
    root: () => root,
    tell: (what: Told): void => {
      root = what.root ?? null;
      say(what.line);
    },
    rooted: (): void => {
      root = null;
      say('\n');
    },
    hasInput: () => hasInput,
    /** false: it waits for none. */
    giveInput: (input: Uint8Array): boolean => {
      if (hasInput || held === null) return false;
      hasInput = true;
      writeInput(held, input);
      held = null;
      return true;
    },
    release: (): void => {
      if (held !== null) closeSync(held);
      held = null;
    },
  };
};

/** What it may take from when it begins; null: as long as it will. */
const createTime = (timeoutMs: number | null, over: () => void) => {
  let timer: NodeJS.Timeout | undefined;
  return {
    begin: (): void => {
      if (timeoutMs !== null) timer = setTimeout(over, timerMs(timeoutMs));
    },
    end: (): void => clearTimeout(timer),
  };
};

/**
 * Starts the program; `nullFd` is /dev/null, its standard input when it is given none. Throws when it could not be
 * started.
 */
export const runProgram = (
  head: RunHead,
  input: Uint8Array | undefined,
  nullFd: number,
  listener: RunListener,
): RunningProgram => {
  const pipes = {
    stdin: input || head.waits === true || head.inputLater === true ? makePipe() : null,
    stdout: makePipe(),
    stderr: makePipe(),
  };
  const processGroup = spawnPiped(head, pipes, nullFd);
  if (pipes.stdin && input) writeInput(pipes.stdin.writeFd, input);

  let timedOut = false;
  let settled = false;
  let end: ProcessEnd | null = null;
  let patience: NodeJS.Timeout | undefined;
  const outputs = new Map<OutputStream, Socket>();
  const kept: BoundedOutput[] = [];
  const waiting = createWaiting(input ? null : (pipes.stdin?.writeFd ?? null), head.inputLater === true);

  const finish = (): void => {
    if (settled) return;
    settled = true;
    time.end();
    clearTimeout(patience);
    for (const output of outputs.values()) output.destroy();
    waiting.release();
    for (const output of kept) output.finish();
    const truncated = kept.some((output) => output.truncated());
    listener.ended({ ...(end ?? { exitCode: null, signalName: null }), timedOut, truncated });
  };

  const finishWhenWhole = (): void => {
    if (end !== null && outputs.size === 0) finish();
  };

  const linger = (): void => {
    // Output that waits for the daemon is not lost for that.
    const waiting = [...outputs.values()].some((output) => output.isPaused());
    if (waiting) patience = setTimeout(linger, LINGER_MS);
    else finish();
  };

  const kill = (): void => {
    killGroup(processGroup);
    clearTimeout(patience);
    patience = setTimeout(finish, KILL_WAIT_MS);
  };

  const time = createTime(head.timeoutMs, () => {
    timedOut = true;
    kill();
  });
  if (waiting.hasInput()) time.begin();

  /** A program that has no root is not let go on. */
  const giveRoot = (root: NewRoot): void => {
    try {
      giveNewRoot(processGroup, root);
    } catch (error) {
      listener.output('stderr', Buffer.from(`Error: ${root.directory} cannot become its root: ${messageOf(error)}\n`));
      kill();
      return;
    }
    waiting.rooted();
  };

  const follow = (stream: OutputStream, fd: number): void => {
    const socket = new Socket({ fd, readable: true, writable: false });
    outputs.set(stream, socket);
    const keep = head.keepsEnd === true ? keepEnd : keepBeginning;
    const output = keep(head.outputBytesMax, (chunk) => listener.output(stream, chunk));
    kept.push(output);
    socket.on('data', (chunk: Uint8Array) => {
      const root = stream === 'stdout' && end === null ? waiting.root() : null;
      if (root !== null) giveRoot(root);
      if (!output.take(chunk)) socket.pause();
    });
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      outputs.delete(stream);
      finishWhenWhole();
    });
  };
  follow('stdout', pipes.stdout.readFd);
  follow('stderr', pipes.stderr.readFd);

  return {
    processGroup,
    finishMs: () => (waiting.hasInput() ? Math.min(head.finishMs ?? 0, FINISH_MS_MAX) : 0),
    giveInput: (later) => {
      if (end === null && waiting.giveInput(later)) time.begin();
    },
    kill,
    tell: waiting.tell,
    resume: () => {
      for (const output of outputs.values()) output.resume();
    },
    reaped: (how) => {
      end = how;
      time.end();
      clearTimeout(patience);
      patience = setTimeout(linger, LINGER_MS);
      finishWhenWhole();
    },
  };
};
