/**
 * Hands facts to the engine and does not let go of one until it is durable (C3): a failed handling is tried again with
 * backoff, and later facts about the same id queue behind it. Facts about other ids pass.
 */
import type { Logger } from 'pino';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { Observation } from '../../domain/model/observation.ts';
import type { Observe } from '../../engine/ports.ts';
import { type Backoff, untilDone } from '../../platform/rpc/retry.ts';

export interface Delivery {
  /** Resolves once the fact is durable; rejects only when the adapter is closed before. */
  readonly deliver: (id: string, observation: Observation) => Promise<void>;
  readonly close: () => void;
}

export const createDelivery = (observe: Observe, backoff: Backoff, log: Logger): Delivery => {
  const queues = new Map<string, Promise<void>>();
  const stop = new AbortController();

  const insist = async (id: string, observation: Observation): Promise<void> => {
    const { kind } = observation;
    const onFailure = (error: unknown): void =>
      log.error({ id, kind, error: messageOf(error) }, 'a fact could not be recorded; trying again');
    try {
      await untilDone(() => observe(observation), { backoff, signal: stop.signal, onFailure });
    } catch {
      throw new FailureError('Interrupted', `The daemon ends; ${kind} of ${id} is not recorded.`);
    }
  };

  return {
    deliver: (id, observation) => {
      const before = queues.get(id) ?? Promise.resolve();
      const mine = before.catch(() => undefined).then(() => insist(id, observation));
      queues.set(id, mine);
      const forget = (): void => {
        if (queues.get(id) === mine) queues.delete(id);
      };
      mine.then(forget, forget);
      return mine;
    },
    close: () => {
      stop.abort();
    },
  };
};
