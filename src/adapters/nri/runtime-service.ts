/**
 * NRI's service Runtime, which each plugin calls on its own connection: it registers, and asks for updates that nobody
 * asked it for. One request for updates is taken at a time, and few may wait: a plugin that floods is refused, and nobody
 * else notices.
 */
import type { Duplex } from 'node:stream';
import { FailureError, GrpcCode, grpcCodeOf } from '../../domain/model/errors.ts';
import { createSemaphore } from '../../platform/linux/semaphore.ts';
import { handleMethod } from '../../platform/ttrpc/method.ts';
import { type MethodHandler, serveTtrpc } from '../../platform/ttrpc/server.ts';
import { TtrpcStatusError } from '../../platform/ttrpc/status.ts';
import {
  type ContainerUpdate,
  type RegisterPluginRequest,
  RuntimeDefinition,
  type UpdateContainersRequest,
} from '../../wire/nri/api.ts';
import { problemOfName } from './plugin-names.ts';

/** A plugin may ask for each of its containers at once. */
const CALLS_MAX = 256;
/** Of the requests that wait for their turn. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024;
const OBJECTS_MAX = 10_000;

export interface RuntimeServiceOptions {
  /** Whether the plugin says who it is: of one that was launched the file says it. */
  readonly namesItself: boolean;
  readonly takeUpdates: (request: UpdateContainersRequest) => Promise<readonly ContainerUpdate[]>;
}

const withCode = (error: unknown): unknown =>
  error instanceof FailureError ? new TtrpcStatusError(grpcCodeOf(error.failure), error.message) : error;

/** Serves until the connection closes. Resolves with the registration; rejects when that can't be accepted. */
export const serveRuntime = (
  connection: Duplex,
  { namesItself, takeUpdates }: RuntimeServiceOptions,
): Promise<RegisterPluginRequest> => {
  const { promise, resolve, reject } = Promise.withResolvers<RegisterPluginRequest>();
  const { registerPlugin, updateContainers } = RuntimeDefinition.methods;
  const oneAtATime = createSemaphore(1);
  let known = false;
  let waitingBytes = 0;

  const register = handleMethod(registerPlugin, async (request) => {
    const problem = namesItself ? problemOfName({ index: request.pluginIdx, name: request.pluginName }) : null;
    if (known) throw new TtrpcStatusError(GrpcCode.FAILED_PRECONDITION, 'this connection is registered already');
    if (problem !== null) {
      // The connection is closed for it: the plugin gets its answer first.
      setImmediate(reject, new Error(problem));
      throw new TtrpcStatusError(GrpcCode.INVALID_ARGUMENT, problem);
    }
    known = true;
    resolve(request);
    return {};
  });

  const update = handleMethod(updateContainers, async (request) => {
    if (!known) throw new TtrpcStatusError(GrpcCode.FAILED_PRECONDITION, 'register first');
    const count = request.update.length + request.evict.length;
    if (count > OBJECTS_MAX)
      throw new TtrpcStatusError(GrpcCode.RESOURCE_EXHAUSTED, `${count} updates are more than ${OBJECTS_MAX}`);
    return { failed: [...(await takeUpdates(request))] };
  });

  const inTurn: MethodHandler = async (payload, context) => {
    if (waitingBytes > WAITING_BYTES_MAX)
      throw new TtrpcStatusError(GrpcCode.RESOURCE_EXHAUSTED, `${waitingBytes} bytes of updates wait already`);
    waitingBytes += payload.length;
    try {
      return await oneAtATime(null, () => update(payload, context));
    } catch (error) {
      throw withCode(error);
    } finally {
      waitingBytes -= payload.length;
    }
  };

  const methods = { [registerPlugin.name]: register, [updateContainers.name]: inTurn };
  void serveTtrpc(connection, { [RuntimeDefinition.fullName]: methods }, { callsMax: CALLS_MAX });
  return promise;
};
