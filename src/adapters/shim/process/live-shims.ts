/**
 * The live shims of this daemon, by pod sandbox. Tells the engine, once, when a shim is lost: its process ended and
 * nobody had asked it to.
 */
import type { Logger } from 'pino';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import type { Delivery } from '../delivery.ts';
import type { LiveShim } from './live-shim.ts';
import type { TaskClient } from '../task-client.ts';

export interface LiveShims {
  readonly get: (podSandboxId: string) => LiveShim | undefined;
  /** Takes a shim in; an earlier one of the same pod is closed. */
  readonly add: (live: LiveShim) => void;
  /** Takes it out, so that its end is nobody's loss; whoever takes it closes it. */
  readonly take: (podSandboxId: string) => LiveShim | undefined;
  /** An open connection to the pod's shim. Rejects with ShimFailed when there is none, or it is gone. */
  readonly clientOf: (podSandboxId: string) => Promise<TaskClient>;
  /** There is no shim to speak to, and there will not be. */
  readonly isGone: (podSandboxId: string) => boolean;
  readonly close: () => void;
}

export const createLiveShims = (delivery: Delivery, log: Logger): LiveShims => {
  const shims = new Map<string, LiveShim>();

  const watch = async (live: LiveShim): Promise<void> => {
    const { podSandboxId, shim } = live;
    await live.ended;
    if (shims.get(podSandboxId) !== live) return;
    log.warn({ podSandboxId, pid: shim.pid }, 'a shim has ended by itself');
    await delivery.deliver(podSandboxId, { kind: 'ShimLost', podSandboxId });
  };

  return {
    get: (podSandboxId) => shims.get(podSandboxId),
    add: (live) => {
      shims.get(live.podSandboxId)?.close();
      shims.set(live.podSandboxId, live);
      watch(live).catch((error: unknown) => {
        log.error({ podSandboxId: live.podSandboxId, error: messageOf(error) }, 'the loss of a shim was not recorded');
      });
    },
    take: (podSandboxId) => {
      const live = shims.get(podSandboxId);
      shims.delete(podSandboxId);
      return live;
    },
    clientOf: async (podSandboxId) => {
      const live = shims.get(podSandboxId);
      if (live !== undefined) return live.client();
      throw new FailureError('ShimFailed', `There is no connection to a shim of pod sandbox ${podSandboxId}.`);
    },
    isGone: (podSandboxId) => shims.get(podSandboxId)?.isGone() ?? true,
    close: () => {
      for (const live of shims.values()) live.close();
      shims.clear();
    },
  };
};
