/**
 * Random pods and containers against a real daemon, and kill -9 of it in the middle of a call. All choices come from a
 * seed, which SCRIBE_SEED repeats; when exactly a kill meets the daemon is up to the machine.
 */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { openReader } from '../../src/journal/open.ts';
import { PodSandboxState } from '../../src/wire/cri/api.ts';
import type { Random } from '../simulation/random.ts';
import type { Daemon } from './daemon.ts';
import { journalPath } from './journal.ts';
import { busyboxName } from './node.ts';
import { containerConfig, podConfig } from './pods.ts';

export const METHODS = [
  'RunPodSandbox',
  'CreateContainer',
  'StartContainer',
  'StopContainer',
  'RemoveContainer',
  'StopPodSandbox',
  'RemovePodSandbox',
] as const;
export type Method = (typeof METHODS)[number];

/** Records that may be waited for before the kill; a call that is answered sooner is tried again. */
const RECORDS_MAX = 3;
const TRIES = 8;

export interface RandomWorkload {
  /** One call that makes, ends or removes something; what it needs is made before. */
  readonly step: () => Promise<void>;
  /** Kills the daemon in the middle of such a call, and starts it again; says in words where it was. */
  readonly killIn: (method: Method) => Promise<string>;
}

export const randomWorkload = (daemon: Daemon, random: Random): RandomWorkload => {
  const { runtime } = daemon.cri;
  let names = 0;

  const runPod = async (): Promise<string> => {
    const name = `pod-${(names += 1)}`;
    const config = podConfig(daemon, name, { labels: { name } });
    return (await runtime.runPodSandbox({ config })).podSandboxId;
  };
  const createIn = async (podSandboxId: string): Promise<string> => {
    const command = random.chance(0.5) ? ['sh', '-c', 'exit 3'] : ['sleep', '1000'];
    const config = containerConfig(`c-${(names += 1)}`, busyboxName, command);
    const sandboxConfig = podConfig(daemon, 'pod');
    return (await runtime.createContainer({ podSandboxId, config, sandboxConfig })).containerId;
  };
  const readyPod = async (): Promise<string> => {
    const { items } = await runtime.listPodSandbox({ filter: { state: { state: PodSandboxState.SANDBOX_READY } } });
    return items.length === 0 ? await runPod() : random.pick(items).id;
  };
  const anyContainer = async (): Promise<string> => {
    const { containers } = await runtime.listContainers();
    return containers.length === 0 ? await createIn(await readyPod()) : random.pick(containers).id;
  };

  /** Makes what the call needs, and gives the call itself. */
  const prepare = async (method: Method): Promise<() => Promise<unknown>> => {
    switch (method) {
      case 'RunPodSandbox':
        return runPod;
      case 'CreateContainer': {
        const pod = await readyPod();
        return () => createIn(pod);
      }
      case 'StartContainer': {
        const containerId = await createIn(await readyPod());
        return () => runtime.startContainer({ containerId });
      }
      case 'StopContainer': {
        const containerId = await createIn(await readyPod());
        await runtime.startContainer({ containerId });
        return () => runtime.stopContainer({ containerId, timeout: '0' });
      }
      case 'RemoveContainer': {
        const containerId = await anyContainer();
        return () => runtime.removeContainer({ containerId });
      }
      case 'StopPodSandbox': {
        const podSandboxId = await readyPod();
        return () => runtime.stopPodSandbox({ podSandboxId });
      }
      case 'RemovePodSandbox': {
        const podSandboxId = await readyPod();
        await runtime.stopPodSandbox({ podSandboxId });
        return () => runtime.removePodSandbox({ podSandboxId });
      }
    }
  };

  /** Kills once so many records have followed the call; whether it was still without an answer then. */
  const killAfter = async (records: number, perform: () => Promise<unknown>): Promise<boolean> => {
    const reader = openReader(journalPath(daemon));
    try {
      const from = reader.head().seq;
      const answer = { came: false };
      const ended = perform().then(
        () => ((answer.came = true), null),
        (error: unknown) => ((answer.came = true), error),
      );
      const deadlineMs = performance.now() + 10_000;
      while (!answer.came && reader.head().seq < from + records) {
        assert.ok(performance.now() < deadlineMs, 'nothing follows from the call');
        await setImmediate();
      }
      if (answer.came) {
        assert.equal(await ended, null);
        return false;
      }
      await daemon.kill();
      const failed = (await ended) as { readonly code?: number } | null;
      await daemon.start();
      // The answer may have been on its way.
      return failed?.code === GrpcCode.UNAVAILABLE;
    } finally {
      reader.close();
    }
  };

  return {
    step: async () => {
      const method = random.pick(['RunPodSandbox', 'CreateContainer', 'CreateContainer', ...METHODS] as const);
      await (await prepare(method))();
    },
    killIn: async (method) => {
      for (let tries = 0; tries < TRIES; tries += 1) {
        const records = 1 + random.below(RECORDS_MAX);
        if (await killAfter(records, await prepare(method))) return `${method} after ${records} records`;
      }
      return assert.fail(`${method} was always answered before the kill`);
    },
  };
};
