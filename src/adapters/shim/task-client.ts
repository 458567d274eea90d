/**
 * The services of a shim as typed functions. Versions 2 and 3 of the task service have the same messages under different
 * names; the sandbox service is there on the same connection where a shim offers it.
 */
import type { TtrpcClient } from '../../platform/ttrpc/client.ts';
import { callMethod, type MethodDefinition } from '../../platform/ttrpc/method.ts';
import { SandboxDefinition } from '../../wire/runtime/sandbox/v1/sandbox.ts';
import { TaskDefinition as TaskV2 } from '../../wire/runtime/task/v2/shim.ts';
import {
  type CreateTaskRequest,
  type CreateTaskResponse,
  TaskDefinition as TaskV3,
} from '../../wire/runtime/task/v3/shim.ts';

/** The execId of a call that is about the task as a whole, not about one of its execs. */
export const WHOLE_TASK = '';

const serviceNames = { 2: TaskV2.fullName, 3: TaskV3.fullName } as const;
const { methods } = TaskV3;

const methodsOf =
  (ttrpc: TtrpcClient, service: string) =>
  <Request, Response>(definition: MethodDefinition<Request, Response>) =>
  (request: Request, timeoutMs: number | null): Promise<Response> =>
    callMethod(ttrpc, service, definition, request, { timeoutMs });

const bindSandbox = (ttrpc: TtrpcClient) => {
  const method = methodsOf(ttrpc, SandboxDefinition.fullName);
  const definitions = SandboxDefinition.methods;
  return {
    create: method(definitions.createSandbox),
    start: method(definitions.startSandbox),
    platform: method(definitions.platform),
    stop: method(definitions.stopSandbox),
    wait: method(definitions.waitSandbox),
    status: method(definitions.sandboxStatus),
    ping: method(definitions.pingSandbox),
    shutdown: method(definitions.shutdownSandbox),
    metrics: method(definitions.sandboxMetrics),
  };
};

export type SandboxClient = ReturnType<typeof bindSandbox>;

const bind = (ttrpc: TtrpcClient, taskApi: 2 | 3) => {
  const method = methodsOf(ttrpc, serviceNames[taskApi]);
  return {
    sandbox: bindSandbox(ttrpc),
    /** Told the deadline, and waited for as long as the connection lives: what is made too late is to be ended. */
    create: (request: CreateTaskRequest, timeoutMs: number): Promise<CreateTaskResponse> =>
      callMethod(ttrpc, serviceNames[taskApi], methods.create, request, { timeoutMs, waitsOn: true }),
    start: method(methods.start),
    state: method(methods.state),
    exec: method(methods.exec),
    kill: method(methods.kill),
    wait: method(methods.wait),
    delete: method(methods.delete),
    closeIO: method(methods.closeIO),
    resizePty: method(methods.resizePty),
    checkpoint: method(methods.checkpoint),
    update: method(methods.update),
    stats: method(methods.stats),
    connect: method(methods.connect),
    shutdown: method(methods.shutdown),
  };
};

/** Each function takes a request and a deadline in milliseconds (null: none); see TtrpcClient.call for its errors. */
export interface TaskClient extends ReturnType<typeof bind> {
  readonly isOpen: () => boolean;
  readonly close: () => void;
}

export const createTaskClient = (ttrpc: TtrpcClient, taskApi: 2 | 3): TaskClient => ({
  ...bind(ttrpc, taskApi),
  isOpen: ttrpc.isOpen,
  close: ttrpc.close,
});
