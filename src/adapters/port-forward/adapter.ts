/**
 * The effect StreamPort: joins a client's connection with a port of a pod's loopback, until either side or the pod ends.
 * Owns how many a pod has, and ends them with it; the connections are made where the clients' are (forward.ts).
 */
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { Perform, PerformEffects } from '../../engine/ports.ts';
import type { PortClient } from '../streaming/types.ts';

/** Connections to one pod at a time. */
const CONNECTIONS_MAX = 1000;

export interface PortForwarder {
  readonly effects: Pick<PerformEffects, 'StreamPort'>;
  /** The pod ends, and its connections with it. */
  readonly endPod: (podSandboxId: string) => void;
}

/** A pod that has connections. */
interface Pod {
  connections: number;
  readonly ended: AbortController;
}

/** @param portClientOf throws Cancelled when it has gone */
export const createPortForwarder = (portClientOf: (sessionId: string) => PortClient): PortForwarder => {
  const pods = new Map<string, Pod>();

  const podOf = (podSandboxId: string): Pod => {
    const known = pods.get(podSandboxId);
    if (known !== undefined) return known;
    const pod: Pod = { connections: 0, ended: new AbortController() };
    pods.set(podSandboxId, pod);
    return pod;
  };

  const StreamPort: Perform<'StreamPort'> = async ({ podSandboxId, sessionId, port, netnsPath }, { signal }) => {
    const client = portClientOf(sessionId);
    const pod = podOf(podSandboxId);
    if (pod.connections >= CONNECTIONS_MAX) {
      const message = `Pod sandbox ${podSandboxId} has ${CONNECTIONS_MAX} forwarded connections; close some first.`;
      throw new FailureError('HostFailed', message);
    }
    pod.connections += 1;
    try {
      const over = AbortSignal.any([signal, client.signal, pod.ended.signal]);
      return await client.forward({ port, netnsPath }, over);
    } catch (error) {
      if (error instanceof FailureError) throw error;
      const message = `Port ${port} of pod sandbox ${podSandboxId} does not answer: ${messageOf(error)}.`;
      throw new FailureError('HostFailed', message);
    } finally {
      pod.connections -= 1;
      if (pod.connections === 0 && pods.get(podSandboxId) === pod) pods.delete(podSandboxId);
    }
  };

  return {
    effects: { StreamPort },
    endPod: (podSandboxId) => {
      pods.get(podSandboxId)?.ended.abort();
      pods.delete(podSandboxId);
    },
  };
};
