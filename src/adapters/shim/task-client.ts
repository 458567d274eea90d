/**
 * The task service of a shim as typed functions. Versions 2 and 3 have the same messages under different service names.
 */
import type { TtrpcClient } from '../ttrpc/client.ts';
import { callMethod, type MethodDefinition } from '../ttrpc/method.ts';
import { TaskDefinition as TaskV2 } from '../wire/runtime/task/v2/shim.ts';
import { TaskDefinition as TaskV3 } from '../wire/runtime/task/v3/shim.ts';

const serviceNames = { 2: TaskV2.fullName, 3: TaskV3.fullName } as const;
const { methods } = TaskV3;

const bind = (ttrpc: TtrpcClient, taskApi: 2 | 3) => {
  const method =
    <Request, Response>(definition: MethodDefinition<Request, Response>) =>
    (request: Request, timeoutMs: number | null): Promise<Response> =>
      callMethod(ttrpc, serviceNames[taskApi], definition, request, { timeoutMs });
  return {
    create: method(methods.create),
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
