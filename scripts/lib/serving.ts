/**
 * Waiting for a CRI runtime to serve, bounded: its socket appears, then answers Unavailable while it recovers, then
 * answers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type CriClient, codeOf } from './cri-client.ts';

const unavailable = 14;
const betweenTriesMs = 20;

/** Resolves with the runtime's name and version. Rejects with what `ended` says when the daemon ends first. */
export const waitServing = async (client: CriClient, ended: Promise<Error>, timeoutMs: number): Promise<string> => {
  const deadlineMs = performance.now() + timeoutMs;
  const failure = ended.then((error): never => {
    throw error;
  });
  failure.catch(() => undefined);
  for (;;) {
    try {
      const version = await Promise.race([client.runtime.version({}, { timeoutMs: 1_000 }), failure]);
      return `${version.runtimeName} ${version.runtimeVersion}`;
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      if (performance.now() > deadlineMs) throw new Error(`not serving after ${timeoutMs} ms: ${String(error)}`);
      // Anything but "not yet" will not become better by waiting, but for a call that was too slow on a busy machine.
      if (codeOf(error) !== unavailable && codeOf(error) !== 4) throw error;
    }
    await Promise.race([sleep(betweenTriesMs), failure]);
  }
};
