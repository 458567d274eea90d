/**
 * The live shims of this daemon, by pod sandbox. Tells the engine, once, when a shim is lost: its process ended and
 * nobody had asked it to.
 */
import type { Logger } from 'pino';
import { FailureError, messageOf } from '../../domain/errors.ts';
import type { Delivery } from './delivery.ts';
import type { ShimSession } from './session.ts';
import type { TaskClient } from './task-client.ts';

export interface ShimSessions {
  readonly get: (podSandboxId: string) => ShimSession | undefined;
  /** Takes the session in; an earlier one of the same pod is closed. */
  readonly add: (session: ShimSession) => void;
  /** Takes the session out, so that its end is nobody's loss; whoever takes it closes it. */
  readonly take: (podSandboxId: string) => ShimSession | undefined;
  /** An open connection to the pod's shim. Rejects with ShimFailed when there is none, or it is gone. */
  readonly clientOf: (podSandboxId: string) => Promise<TaskClient>;
  /** There is no shim to speak to, and there will not be. */
  readonly isGone: (podSandboxId: string) => boolean;
  readonly close: () => void;
}

export const createSessions = (delivery: Delivery, log: Logger): ShimSessions => {
  const sessions = new Map<string, ShimSession>();

  const watch = async (session: ShimSession): Promise<void> => {
    const { podSandboxId, shim } = session;
    await session.ended;
    if (sessions.get(podSandboxId) !== session) return;
    log.warn({ podSandboxId, pid: shim.pid }, 'a shim has ended by itself');
    await delivery.deliver(podSandboxId, { kind: 'ShimLost', podSandboxId });
  };

  return {
    get: (podSandboxId) => sessions.get(podSandboxId),
    add: (session) => {
      sessions.get(session.podSandboxId)?.close();
      sessions.set(session.podSandboxId, session);
      watch(session).catch((error: unknown) => {
        log.error(
          { podSandboxId: session.podSandboxId, error: messageOf(error) },
          'the loss of a shim was not recorded',
        );
      });
    },
    take: (podSandboxId) => {
      const session = sessions.get(podSandboxId);
      sessions.delete(podSandboxId);
      return session;
    },
    clientOf: async (podSandboxId) => {
      const session = sessions.get(podSandboxId);
      if (session !== undefined) return session.client();
      throw new FailureError('ShimFailed', `There is no connection to a shim of pod sandbox ${podSandboxId}.`);
    },
    isGone: (podSandboxId) => sessions.get(podSandboxId)?.isGone() ?? true,
    close: () => {
      for (const session of sessions.values()) session.close();
      sessions.clear();
    },
  };
};
