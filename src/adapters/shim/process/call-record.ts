/**
 * What the calls to a shim say about it: which tasks it still has, and whether it ever did anything but what it was asked.
 * Of a shim that failed a single call, or was not waited for, nobody knows what it holds. Calls nothing by itself.
 */
import { isNotFound } from '../../../platform/ttrpc/status.ts';
import { type TaskClient, WHOLE_TASK } from '../task-client.ts';

export interface CallRecord {
  /** Every task that was asked for was deleted, and no call has failed. */
  readonly isClean: () => boolean;
  /** That task was not asked for, or was deleted, and no call has failed. */
  readonly lacks: (taskId: string) => boolean;
  /** The same client, whose calls are noted. */
  readonly noting: (client: TaskClient) => TaskClient;
}

type Call<Request, Response, Timeout = number | null> = (request: Request, timeoutMs: Timeout) => Promise<Response>;

export const createCallRecord = (): CallRecord => {
  const tasks = new Set<string>();
  let failed = false;

  const noted =
    <Request, Response, Timeout>(call: Call<Request, Response, Timeout>): Call<Request, Response, Timeout> =>
    async (request, timeoutMs) => {
      try {
        return await call(request, timeoutMs);
      } catch (error) {
        // That there is no such task is asked for, and said, in the course of things.
        if (!isNotFound(error)) failed = true;
        throw error;
      }
    };

  return {
    isClean: () => !failed && tasks.size === 0,
    lacks: (taskId) => !failed && !tasks.has(taskId),
    noting: (client) => {
      const create = noted(client.create);
      const remove = noted(client.delete);
      return {
        ...client,
        create: (request, timeoutMs) => {
          tasks.add(request.id);
          return create(request, timeoutMs);
        },
        delete: async (request, timeoutMs) => {
          const answer = await remove(request, timeoutMs);
          if (request.execId === WHOLE_TASK) tasks.delete(request.id);
          return answer;
        },
        start: noted(client.start),
        state: noted(client.state),
        exec: noted(client.exec),
        kill: noted(client.kill),
        wait: noted(client.wait),
        closeIO: noted(client.closeIO),
        resizePty: noted(client.resizePty),
        checkpoint: noted(client.checkpoint),
        update: noted(client.update),
        connect: noted(client.connect),
      };
    },
  };
};
