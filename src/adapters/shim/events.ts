/**
 * The events server that shims report to (containerd.services.events.ttrpc.v1.Events). An exit is acknowledged only
 * once it is durable (C3). Delivery is lossy, late and repeated by nature: this is the fast way to hear of an exit, the
 * Wait that is pending at the shim is the sure one. So what is not understood, or not known here, is acknowledged and
 * forgotten: a task of before a restart is asked for when its shim is reached again.
 */
import type { Logger } from 'pino';
import { messageOf } from '../../domain/model/errors.ts';
import { handleMethod, type MessageCodec } from '../../platform/ttrpc/method.ts';
import type { TtrpcServices } from '../../platform/ttrpc/server.ts';
import { TaskExit, TaskOOM } from '../../wire/events/task.ts';
import { Empty } from '../../wire/google/protobuf/empty.ts';
import type { Any } from '../../wire/google/protobuf/any.ts';
import { EventsDefinition, type ForwardRequest } from '../../wire/services/ttrpc/events/v1/events.ts';
import type { LiveTask } from './tasks/live-task.ts';

const exitType = 'containerd.events.TaskExit';
const oomType = 'containerd.events.TaskOOM';

/** Handlers for shims' events about the given tasks. */
export const createEventsService = (tasks: ReadonlyMap<string, LiveTask>, log: Logger): TtrpcServices => {
  const decode = <T>(codec: MessageCodec<T>, { typeUrl, value }: Any): T | null => {
    try {
      return codec.decode(value);
    } catch (error) {
      log.warn({ typeUrl, error: messageOf(error) }, 'a shim sent an event that cannot be decoded');
      return null;
    }
  };

  const onExit = async (event: Any): Promise<void> => {
    const exit = decode(TaskExit, event);
    // Exits of execs concern whoever waits for them.
    if (exit === null || exit.id !== exit.containerId) return;
    await tasks.get(exit.containerId)?.reportExit(exit);
  };

  const forward = async ({ envelope }: ForwardRequest): Promise<Empty> => {
    const event = envelope?.event;
    // A URL may come before the type, as in type.googleapis.com/….
    const type = event?.typeUrl.slice(event.typeUrl.lastIndexOf('/') + 1);
    if (event !== undefined && type === exitType) await onExit(event);
    if (event !== undefined && type === oomType)
      await tasks.get(decode(TaskOOM, event)?.containerId ?? '')?.reportOom();
    return Empty.create();
  };

  return {
    [EventsDefinition.fullName]: {
      [EventsDefinition.methods.forward.name]: handleMethod(EventsDefinition.methods.forward, forward),
    },
  };
};
