/**
 * The pod that `npm run up` shows: one container that prints a few lines and stays, and one that ends with an exit
 * status of its own, so that the history has an exit. Talks CRI only.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ContainerConfig, DeepPartial, PodSandboxConfig } from '../../src/wire/cri/api.ts';
import type { CriClient } from './cri-client.ts';

export const demoImage = 'localhost/scribe-demo:latest';
const demoLabels = { 'scribe.demo': 'up' };
const lastLine = 'now waiting to be stopped';
const exitStatus = 7;
const timeoutMs = 15_000;

export interface DemoPod {
  readonly podSandboxId: string;
  /** The container that stays. */
  readonly containerId: string;
  readonly ip: string;
}

const sandboxConfig = (logDirectory: string): DeepPartial<PodSandboxConfig> => ({
  metadata: { name: 'demo', namespace: 'default', uid: 'scribe-demo', attempt: 0 },
  hostname: 'demo',
  logDirectory,
  labels: demoLabels,
});

const container = (name: string, script: string): DeepPartial<ContainerConfig> => ({
  metadata: { name, attempt: 0 },
  image: { image: demoImage, userSpecifiedImage: demoImage },
  command: ['sh', '-c', script],
  labels: demoLabels,
  logPath: `${name}.log`,
});

const stays = container(
  'talker',
  'trap "exit 0" TERM; for i in 1 2 3; do echo "line $i from $(hostname), pid $$"; done; ' +
    `echo "${lastLine}"; while :; do sleep 3600 & wait $!; done`,
);
const ends = container('job', `echo "a job that ends with exit status ${exitStatus}"; exit ${exitStatus}`);

const demoPods = async ({ runtime }: CriClient): Promise<string[]> => {
  const { items } = await runtime.listPodSandbox({ filter: { labelSelector: demoLabels } });
  return items.map(({ id }) => id);
};

/** Stops and removes the demo pods of this and earlier runs. Resolves with how many there were. */
export const removeDemoPods = async (cri: CriClient): Promise<number> => {
  const ids = await demoPods(cri);
  for (const podSandboxId of ids) {
    await cri.runtime.stopPodSandbox({ podSandboxId });
    await cri.runtime.removePodSandbox({ podSandboxId });
  }
  return ids.length;
};

const untilTrue = async (what: string, check: () => Promise<boolean>): Promise<void> => {
  const deadlineMs = performance.now() + timeoutMs;
  while (!(await check())) {
    if (performance.now() > deadlineMs) throw new Error(`${what} took longer than ${timeoutMs / 1000} s`);
    await sleep(20);
  }
};

/** Runs the demo pod with both containers; resolves when one has said its lines and the other has ended. */
export const runDemoPod = async ({ runtime }: CriClient, logDirectory: string): Promise<DemoPod> => {
  const config = sandboxConfig(logDirectory);
  const { podSandboxId } = await runtime.runPodSandbox({ config });
  const start = async (containerConfig: DeepPartial<ContainerConfig>): Promise<string> => {
    const request = { podSandboxId, config: containerConfig, sandboxConfig: config };
    const { containerId } = await runtime.createContainer(request);
    await runtime.startContainer({ containerId });
    return containerId;
  };
  const containerId = await start(stays);
  const jobId = await start(ends);
  await untilTrue('writing the demo log', async () => (await demoLog(logDirectory)).includes(lastLine));
  await untilTrue('ending the demo job', async () => {
    const { status } = await runtime.containerStatus({ containerId: jobId });
    return status !== undefined && status.finishedAt !== '0';
  });
  const { status } = await runtime.podSandboxStatus({ podSandboxId });
  return { podSandboxId, containerId, ip: status?.network?.ip ?? '' };
};

/** The log of the container that stays, as the CRI log format has it; '' while there is none. */
export const demoLog = (logDirectory: string): Promise<string> =>
  readFile(join(logDirectory, `${stays.logPath}`), 'utf8').catch(() => '');

/** Runs a command in the demo's container and returns its output. */
export const execInDemo = async ({ runtime }: CriClient, pod: DemoPod, cmd: readonly string[]): Promise<string> => {
  const { stdout, stderr, exitCode } = await runtime.execSync({
    containerId: pod.containerId,
    cmd: [...cmd],
    timeout: '10',
  });
  if (exitCode !== 0) throw new Error(`${cmd.join(' ')} ended with ${exitCode}: ${Buffer.from(stderr).toString()}`);
  return Buffer.from(stdout).toString();
};
