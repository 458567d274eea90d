/**
 * The live shims of this daemon, by pod sandbox; several pods may have the same. Tells the engine, once for each pod, when
 * a shim is lost: its process ended and nobody had asked it to.
 */
import type { Logger } from 'pino';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import type { Delivery } from '../delivery.ts';
import type { LiveShim } from './live-shim.ts';
import type { TaskClient } from '../task-client.ts';

export interface LiveShims {
  readonly get: (podSandboxId: string) => LiveShim | undefined;
  /** Gives the pod a shim; an earlier one of its own is closed. */
  readonly add: (podSandboxId: string, live: LiveShim) => void;
  /** Takes the pod's shim from it, so that its end is not the pod's loss. Who takes the pod's own closes it. */
  readonly take: (podSandboxId: string) => LiveShim | undefined;
  /**
   * The shim that pods share under that id: as one of them has opened it, or opened now, once for all who ask. It is
   * closed when it ends, or the adapter is.
   */
  readonly share: (id: string, open: () => Promise<LiveShim | null>) => Promise<LiveShim | null>;
  /** An open connection to the pod's shim. Rejects with ShimFailed when there is none, or it is gone. */
  readonly clientOf: (podSandboxId: string) => Promise<TaskClient>;
  /** There is no shim to speak to, and there will not be. */
  readonly isGone: (podSandboxId: string) => boolean;
  readonly close: () => void;
}

export const createLiveShims = (delivery: Delivery, log: Logger): LiveShims => {
  const shims = new Map<string, LiveShim>();
  /** Those that are shared, by their own id, from when they are opened until they end. */
  const shared = new Map<string, Promise<LiveShim | null>>();
  /** Whether the end of each has come. It is waited for once: one that is shared may outlive any number of pods. */
  const hasEnded = new WeakMap<LiveShim, boolean>();

  const tellLoss = (podSandboxId: string, { shim }: LiveShim): void => {
    log.warn({ podSandboxId, pid: shim.pid }, 'a shim has ended by itself');
    delivery.deliver(podSandboxId, { kind: 'ShimLost', podSandboxId }).catch((error: unknown) => {
      log.error({ podSandboxId, error: messageOf(error) }, 'the loss of a shim was not recorded');
    });
  };

  const watch = async (podSandboxId: string, live: LiveShim): Promise<void> => {
    if (hasEnded.get(live) === true) return tellLoss(podSandboxId, live);
    if (hasEnded.has(live)) return;
    hasEnded.set(live, false);
    await live.ended;
    hasEnded.set(live, true);
    for (const [podSandboxId, one] of shims) if (one === live) tellLoss(podSandboxId, live);
  };

  return {
    get: (podSandboxId) => shims.get(podSandboxId),
    add: (podSandboxId, live) => {
      const before = shims.get(podSandboxId);
      if (before === live) return;
      if (before !== undefined && !shared.has(before.id)) before.close();
      shims.set(podSandboxId, live);
      void watch(podSandboxId, live);
    },
    take: (podSandboxId) => {
      const live = shims.get(podSandboxId);
      shims.delete(podSandboxId);
      return live;
    },
    share: (id, open) => {
      const known = shared.get(id);
      if (known !== undefined) return known;
      const opening = open();
      const forget = (): void => {
        if (shared.get(id) === opening) shared.delete(id);
      };
      shared.set(id, opening);
      opening.then((live) => (live === null ? forget() : void live.ended.then(forget)), forget);
      return opening;
    },
    clientOf: async (podSandboxId) => {
      const live = shims.get(podSandboxId);
      if (live !== undefined) return live.client();
      throw new FailureError('ShimFailed', `There is no connection to a shim of pod sandbox ${podSandboxId}.`);
    },
    isGone: (podSandboxId) => shims.get(podSandboxId)?.isGone() ?? true,
    close: () => {
      for (const live of shims.values()) live.close();
      for (const opening of shared.values()) void opening.then((live) => live?.close()).catch(() => undefined);
      shims.clear();
      shared.clear();
    },
  };
};
