/**
 * The spawner's process (C15): starts programs and makes mounts for the daemon, so that neither costs the daemon's
 * event loop anything. Lives as long as the daemon's end of the socket pair is open; then it kills the runs under way
 * (not what was started detached), after the time that some are given to finish, and ends once they have. Holds an
 * exclusive lock on its lock file from before its first request to its very end. Loads little: this process is there
 * all the time.
 */
import { closeSync, ftruncateSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { FailureError, type FailureReason, messageOf } from '../../domain/model/errors.ts';
import { statOf } from './holder.ts';
import { type CgroupJoining, createCgroupJoining } from '../linux/cgroup-joining.ts';
import { giveBackWhenQuiet } from '../linux/give-back.ts';
import { memoryCgroupOf } from '../linux/memory-cgroup.ts';
import { reapChildren, spawnProgram } from '../linux/spawn.ts';
import { errorCodeOf } from '../error-code.ts';
import { lockWaiting } from '../linux/syscalls.ts';
import { mountAllMapped, mountFrom, unmountAll, unpin } from './mounts.ts';
import { pinNamespaces, pinNetnsOf, readNetDev } from './namespaces.ts';
import {
  createFrameReader,
  type DetachedRequest,
  decodeJson,
  encodeFrame,
  encodeJson,
  type Frame,
  FrameKind,
  type RunHead,
  SPAWNER_FD,
  type SpawnerReply,
  type SpawnerRequest,
} from './protocol.ts';
import { type RunningProgram, runProgram } from './run-program.ts';

const END_WAIT_MS = 5_000;
const END_LOOK_MS = 10;
const FDINFO_CLOEXEC = 0o2000000;

/** Descriptors that whoever started the daemon left open would be open in every program from here. */
const closeInherited = (): void => {
  for (const name of readdirSync('/proc/self/fdinfo')) {
    const fd = Number(name);
    if (fd <= SPAWNER_FD) continue;
    try {
      const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '0';
      if ((Number.parseInt(flags, 8) & FDINFO_CLOEXEC) === 0) closeSync(fd);
    } catch (error) {
      // The descriptor that the directory was read through is gone by now.
      if (errorCodeOf(error) !== 'ENOENT') throw error;
    }
  }
};

const holdLock = (path: string): void => {
  const fd = openSync(path, 'a');
  lockWaiting(fd);
  // The pid is for people and messages only: the lock says whether it lives.
  ftruncateSync(fd);
  writeSync(fd, `${process.pid}\n`);
};

/** Whoever asked to run something that is not there has to install it; all else is the machine's. */
const startFailure = (command: string, error: unknown): SpawnerReply => {
  const code = errorCodeOf(error);
  const missing = code === 'ENOENT' || code === 'EACCES';
  const reason: FailureReason = missing ? 'HostLacks' : 'HostFailed';
  const remedy = missing ? '; it and its working directory have to be there, and executable' : '';
  return { ok: false, reason, message: `Could not start ${command} (${messageOf(error)})${remedy}.` };
};

/** Starts a program that outlives this process, its output appended to a file. */
const startDetached = (program: DetachedRequest, nullFd: number): unknown => {
  const output = openSync(program.outputPath, 'a', 0o600);
  try {
    const pid = spawnProgram(program, [nullFd, output, output]);
    // A child that has ended already is still there to be read: it is reaped on a later turn.
    return { pid, startTicks: statOf(pid)?.startTicks };
  } finally {
    closeSync(output);
  }
};

/**
 * Ends this process once nothing of the groups runs any more. The kernel tells of the ends of own children only, not
 * of theirs, so this looks again until then; what it can't kill in time never runs again either.
 */
const endWhenGone = (groups: ReadonlySet<number>, deadlineS: number): void => {
  const left = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .some((pid) => {
      const stat = statOf(pid);
      return stat !== null && groups.has(stat.processGroup) && stat.state !== 'Z';
    });
  if (!left || process.uptime() > deadlineS) process.exit(0);
  setTimeout(() => endWhenGone(groups, deadlineS), END_LOOK_MS);
};

const performAtOnce = (
  request: Exclude<SpawnerRequest, { readonly op: 'run' | 'startDetached' | 'joinAhead' | 'readNetDev' }>,
): void => {
  switch (request.op) {
    case 'pinNamespaces':
      return pinNamespaces(request.namespaces);
    case 'mount':
      return mountFrom(request.mount);
    case 'pinNetnsOf':
      return pinNetnsOf(request.holder, request.path);
    case 'mountMapped':
      return mountAllMapped(request.mapped);
    case 'unmount':
      return unmountAll(request.target);
    case 'unpin':
      return unpin(request.paths);
  }
};

const serve = (): void => {
  const running = new Map<number, RunningProgram>();
  const requestOfGroup = new Map<number, number>();
  const inputs = new Map<number, Uint8Array>();
  const nullFd = openSync('/dev/null', 'r');
  const socket = new Socket({ fd: SPAWNER_FD, readable: true, writable: true });
  let ending = false;
  let joinFor: CgroupJoining | null = null;

  const send = (frame: Uint8Array): boolean => ending || socket.write(frame);
  const reply = (id: number, answer: SpawnerReply): void => {
    send(encodeJson(FrameKind.reply, id, answer));
  };

  const run = (id: number, head: RunHead): void => {
    const program = runProgram(head, inputs.get(id), nullFd, {
      output: (stream, chunk) => send(encodeFrame(FrameKind[stream], id, chunk)),
      ended: (value) => {
        running.delete(id);
        reply(id, { ok: true, value });
      },
    });
    running.set(id, program);
    requestOfGroup.set(program.processGroup, id);
    send(encodeJson(FrameKind.started, id, program.processGroup));
  };

  const perform = (id: number, request: SpawnerRequest): SpawnerReply | null => {
    switch (request.op) {
      case 'run':
        try {
          run(id, request.run);
          return null;
        } catch (error) {
          return startFailure(request.run.command, error);
        }
      case 'startDetached':
        try {
          return { ok: true, value: startDetached(request.program, nullFd) };
        } catch (error) {
          return startFailure(request.program.command, error);
        }
      case 'joinAhead':
        // The hierarchy is the node's, and stays what it was.
        joinFor ??= createCgroupJoining(() => memoryCgroupOf(request.hierarchy, process.pid));
        return { ok: true, value: joinFor(request.forMs) };
      case 'readNetDev':
        return { ok: true, value: readNetDev(request.path) };
      default:
        performAtOnce(request);
        return { ok: true, value: null };
    }
  };

  const answer = (id: number, body: Uint8Array): SpawnerReply | null => {
    try {
      return perform(id, decodeJson<SpawnerRequest>(body));
    } catch (error) {
      const reason = error instanceof FailureError ? error.failure.reason : 'HostFailed';
      return { ok: false, reason, message: messageOf(error) };
    } finally {
      inputs.delete(id);
    }
  };

  // What is not given back is kept; nothing else depends on it.
  const { worked } = giveBackWhenQuiet(() => undefined);
  const receive = ({ kind, id, body }: Frame): void => {
    worked();
    if (kind === FrameKind.stdin) inputs.set(id, body);
    else if (kind === FrameKind.input) running.get(id)?.giveInput(body);
    else if (kind === FrameKind.cancel) running.get(id)?.kill();
    else if (kind === FrameKind.told) running.get(id)?.tell(decodeJson(body));
    else {
      const answered = answer(id, body);
      if (answered) reply(id, answered);
    }
  };

  const end = (): void => {
    if (ending) return;
    ending = true;
    const programs = [...running.values()];
    for (const { finishMs, kill } of programs) {
      if (finishMs() === 0) kill();
      else setTimeout(kill, finishMs());
    }
    const finishMsMax = Math.max(0, ...programs.map(({ finishMs }) => finishMs()));
    const groups = new Set(programs.map(({ processGroup }) => processGroup));
    endWhenGone(groups, process.uptime() + (finishMsMax + END_WAIT_MS) / 1000);
  };

  process.on('SIGCHLD', () => {
    reapChildren((pid, how) => {
      const id = requestOfGroup.get(pid);
      requestOfGroup.delete(pid);
      if (id !== undefined) running.get(id)?.reaped(how);
    });
  });
  socket.on('data', createFrameReader(receive));
  socket.on('drain', () => {
    for (const program of running.values()) program.resume();
  });
  socket.on('error', end);
  socket.on('close', end);
  socket.on('end', end);
  send(encodeJson(FrameKind.ready, 0, null));
};

// The daemon alone says when this process ends: not a terminal's ^C, not a supervisor that signals everybody.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
closeInherited();
holdLock(process.argv[2] ?? '');
serve();
