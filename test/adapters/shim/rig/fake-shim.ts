/**
 * A shim that misbehaves as told: the process that stays, run as `fake-shim.ts <dir> -id <id>` by fake-shim.sh. Its tasks
 * are names only. The file <dir>/mood holds its mood at start, and a service of its own changes it later:
 * good; mute: answers nothing; lying: says that it is process 1; odd: tells what no shim may tell; hangup: closes the
 * connection on the next call and is good from then on; deaf: listens no more; foreign: runs what is not Linux; stuck: never
 * stops its sandbox; fallen: its sandbox ends; forgetful: it knows of its sandbox no more.
 */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { handleMethod } from '../../../../src/platform/ttrpc/method.ts';
import { type MethodHandler, serveTtrpc } from '../../../../src/platform/ttrpc/server.ts';
import { TtrpcStatusError } from '../../../../src/platform/ttrpc/status.ts';
import { Empty } from '../../../../src/wire/google/protobuf/empty.ts';
import {
  CreateSandboxResponse,
  PingResponse,
  PlatformResponse,
  SandboxDefinition,
  SandboxMetricsResponse,
  SandboxStatusResponse,
  ShutdownSandboxResponse,
  StartSandboxResponse,
  StopSandboxResponse,
  WaitSandboxResponse,
} from '../../../../src/wire/runtime/sandbox/v1/sandbox.ts';
import { StateResponse, TaskDefinition, WaitResponse } from '../../../../src/wire/runtime/task/v3/shim.ts';
import { Status } from '../../../../src/wire/types/task/task.ts';
import { GrpcCode } from '../../../../src/domain/model/errors.ts';

const [, , dir = '', , id = ''] = process.argv;

interface FakeTask {
  readonly stopped: Promise<void>;
  readonly stop: () => void;
  isStopped: boolean;
}

const serve = async (): Promise<void> => {
  let mood = (await readFile(join(dir, 'mood'), 'utf8').catch(() => 'good')).trim();
  const tasks = new Map<string, FakeTask>();
  const sockets = new Set<Socket>();
  let isCreating = false;
  const find = (taskId: string): FakeTask => {
    const task = tasks.get(taskId);
    if (task === undefined) throw new TtrpcStatusError(GrpcCode.NOT_FOUND, 'container not created');
    return task;
  };
  const exitedAt = () =>
    mood === 'odd' ? { seconds: '-62135596800', nanos: -5 } : { seconds: '1700000000', nanos: 5 };
  const { methods } = TaskDefinition;

  const table: Record<string, MethodHandler> = {
    Connect: handleMethod(methods.connect, () =>
      Promise.resolve({ shimPid: mood === 'lying' ? 1 : process.pid, taskPid: 0, version: '3' }),
    ),
    Create: handleMethod(methods.create, async (request) => {
      // As runc's does; here it is a fault when somebody waits for the lock.
      if (isCreating) throw new TtrpcStatusError(GrpcCode.UNKNOWN, 'another task is being created');
      isCreating = true;
      await sleep(5);
      isCreating = false;
      const { promise: stopped, resolve } = Promise.withResolvers<void>();
      const task: FakeTask = {
        stopped,
        isStopped: false,
        stop: () => {
          task.isStopped = true;
          resolve();
        },
      };
      tasks.set(request.id, task);
      return { pid: process.pid };
    }),
    Exec: handleMethod(methods.exec, () => Promise.resolve(Empty.create())),
    Start: handleMethod(methods.start, async (request) => {
      find(request.id);
      if (mood === 'lazy') await new Promise(() => undefined);
      return { pid: process.pid };
    }),
    State: handleMethod(methods.state, (request) => {
      const { isStopped } = find(request.id);
      const status = mood === 'odd' ? (77 as Status) : isStopped ? Status.STOPPED : Status.RUNNING;
      const bundle = mood === 'odd' ? '../../etc\0' : '';
      return Promise.resolve(StateResponse.fromPartial({ id: request.id, pid: process.pid, status, bundle }));
    }),
    Kill: handleMethod(methods.kill, (request) => {
      const task = find(request.id);
      // A command that never began: its container runs on.
      if (request.execId === '' || mood !== 'lazy') task.stop();
      return Promise.resolve(Empty.create());
    }),
    Wait: handleMethod(methods.wait, async (request) => {
      await find(request.id).stopped;
      return WaitResponse.fromPartial({ exitStatus: mood === 'odd' ? 0xffff_ffff : 137, exitedAt: exitedAt() });
    }),
    Delete: handleMethod(methods.delete, (request) => {
      find(request.id);
      if (request.execId === '') tasks.delete(request.id);
      return Promise.resolve({ pid: process.pid, exitStatus: 137, exitedAt: exitedAt() });
    }),
    Shutdown: handleMethod(methods.shutdown, () => {
      setTimeout(() => process.exit(0), 1);
      return Promise.resolve(Empty.create());
    }),
  };

  const { promise: sandboxEnded, resolve: endSandbox } = Promise.withResolvers<void>();
  let sandbox: 'none' | 'created' | 'ready' | 'ended' = 'none';
  const fall = (): void => {
    sandbox = 'ended';
    endSandbox();
  };
  const own = <T>(sandboxId: string, answer: () => T): Promise<T> => {
    if (sandboxId !== id || sandbox === 'none') throw new TtrpcStatusError(GrpcCode.NOT_FOUND, 'no such sandbox');
    return Promise.resolve(answer());
  };
  const sandboxMethods = SandboxDefinition.methods;
  const sandboxTable: Record<string, MethodHandler> = {
    CreateSandbox: handleMethod(sandboxMethods.createSandbox, () => {
      if (sandbox !== 'none') throw new TtrpcStatusError(GrpcCode.ALREADY_EXISTS, 'the sandbox exists');
      sandbox = 'created';
      return Promise.resolve(CreateSandboxResponse.create());
    }),
    StartSandbox: handleMethod(sandboxMethods.startSandbox, ({ sandboxId }) =>
      own(sandboxId, () => {
        if (sandbox === 'ready') throw new TtrpcStatusError(GrpcCode.FAILED_PRECONDITION, 'it was started before');
        sandbox = 'ready';
        return StartSandboxResponse.fromPartial({ pid: mood === 'odd' ? 1 : process.pid });
      }),
    ),
    Platform: handleMethod(sandboxMethods.platform, ({ sandboxId }) =>
      own(sandboxId, () =>
        PlatformResponse.fromPartial({
          platform: { os: mood === 'foreign' ? 'plan9' : 'linux', architecture: 'pdp11' },
        }),
      ),
    ),
    StopSandbox: handleMethod(sandboxMethods.stopSandbox, async ({ sandboxId }) => {
      if (mood === 'stuck') await new Promise(() => undefined);
      return own(sandboxId, () => {
        fall();
        return StopSandboxResponse.create();
      });
    }),
    WaitSandbox: handleMethod(sandboxMethods.waitSandbox, async ({ sandboxId }) => {
      await own(sandboxId, () => undefined);
      await sandboxEnded;
      await own(sandboxId, () => undefined);
      return WaitSandboxResponse.fromPartial({ exitStatus: 7, exitedAt: exitedAt() });
    }),
    SandboxStatus: handleMethod(sandboxMethods.sandboxStatus, ({ sandboxId }) =>
      own(sandboxId, () =>
        SandboxStatusResponse.fromPartial({
          sandboxId: mood === 'odd' ? 'another' : id,
          pid: process.pid,
          state: sandbox === 'ready' ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY',
          info: { kind: 'fake' },
        }),
      ),
    ),
    PingSandbox: handleMethod(sandboxMethods.pingSandbox, ({ sandboxId }) =>
      own(sandboxId, () => PingResponse.create()),
    ),
    ShutdownSandbox: handleMethod(sandboxMethods.shutdownSandbox, () => {
      setTimeout(() => process.exit(0), 1);
      return Promise.resolve(ShutdownSandboxResponse.create());
    }),
    SandboxMetrics: handleMethod(sandboxMethods.sandboxMetrics, ({ sandboxId }) =>
      own(sandboxId, () =>
        SandboxMetricsResponse.fromPartial({
          metrics: { data: { typeUrl: 'fake.Metrics', value: Buffer.alloc(mood === 'odd' ? 100_000 : 3) } },
        }),
      ),
    ),
  };

  const moody =
    (handler: MethodHandler): MethodHandler =>
    async (payload, context) => {
      if (mood === 'mute') {
        // Not even that the call's deadline has passed.
        for (const socket of sockets) socket.cork();
        await new Promise(() => undefined);
      }
      if (mood === 'hangup') {
        mood = 'good';
        for (const socket of sockets) socket.destroy();
      }
      return handler(payload, context);
    };
  const services = {
    [TaskDefinition.fullName]: Object.fromEntries(
      Object.entries(table).map(([name, handler]) => [name, moody(handler)]),
    ),
    [SandboxDefinition.fullName]: Object.fromEntries(
      Object.entries(sandboxTable).map(([name, handler]) => [name, moody(handler)]),
    ),
    'fake.Control': {
      Mood: (payload: Buffer) => {
        mood = payload.toString();
        if (mood === 'fallen') fall();
        if (mood === 'forgetful') {
          sandbox = 'none';
          endSandbox();
        }
        if (mood === 'deaf') {
          server.close();
          for (const socket of sockets) socket.end();
        }
        return Promise.resolve(Buffer.alloc(0));
      },
    },
  };
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    void serveTtrpc(socket, services).then(() => sockets.delete(socket));
  });
  const socketPath = join(dir, `${id.slice(0, 12)}.sock`);
  await once(server.listen(socketPath), 'listening');
  await writeFile(`${socketPath}.ready`, '');
  // Lives on when it is deaf.
  setInterval(() => undefined, 60_000);
};

await serve();
