/**
 * ReadPodCheckpoint: what a directory says that CheckpointPod wrote, on a machine that can restore it. The description
 * is taken as anybody's: bounded, of known fields only, and naming nothing outside of its directory.
 */
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { EffectOf, EffectResults } from '../../domain/model/effects.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { describedPod } from '../../domain/pod-sandbox/checkpoint-description.ts';
import type { DescribedPod } from '../../domain/model/pod-restore.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { criuProblem, findTool } from './checkpoint.ts';
import type { CheckpointTools } from './checkpoint-command.ts';
import { attempting } from './failures.ts';
import { descriptionName } from './pod-checkpoint.ts';

/** A pod's config is a part of it, which a request bounds too. */
const descriptionBytesMax = 4 * 1024 * 1024;

const refuse = (problem: string): never => {
  throw new FailureError('InvalidField', `checkpoint_path ${problem}.`);
};

const readDescription = async (path: string): Promise<string> => {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) refuse(`has a ${descriptionName} that is no regular file: ${path}`);
    if (stats.size > descriptionBytesMax) refuse(`has a ${descriptionName} of ${stats.size} bytes: ${path}`);
    const bytes = Buffer.alloc(stats.size);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    return bytes.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
};

/** Absent, a link, no directory on the way: whoever wrote it did not write what is asked for. */
const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'].includes(errorCodeOf(error) ?? '');

const described = async (checkpointPath: string): Promise<DescribedPod> => {
  const path = join(checkpointPath, descriptionName);
  try {
    const pod = describedPod(path, await readDescription(path));
    for (const { name, archive } of pod.containers) {
      const found = await lstat(join(checkpointPath, archive));
      if (!found.isFile())
        refuse(`${checkpointPath} has no archive of container "${name}": ${archive} is no regular file`);
    }
    return pod;
  } catch (error) {
    if (!isAbsent(error)) throw error;
    return refuse(`${checkpointPath} is no directory that CheckpointPod wrote: ${(error as Error).message}`);
  }
};

/** Throws HostLacks, with what to install. `what` begins the sentence. */
export const needCriu = async (tools: CheckpointTools, what: string): Promise<void> => {
  const criu = await findTool(tools, 'criu');
  const problem = await criuProblem(tools, criu);
  if (problem === null) return;
  const message = `${what} cannot be restored, because CRIU does not work on this machine: ${problem}; install a CRIU that fits the kernel (see '${criu} check').`;
  throw new FailureError('HostLacks', message);
};

export const readPodCheckpoint = (
  tools: CheckpointTools,
  { checkpointPath }: EffectOf<'ReadPodCheckpoint'>,
): Promise<EffectResults['ReadPodCheckpoint']> =>
  attempting(`read the checkpoint in ${checkpointPath}`, async () => {
    await needCriu(tools, `The checkpoint in ${checkpointPath}`);
    return { pod: await described(checkpointPath) };
  });
