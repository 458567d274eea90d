/**
 * CheckpointPod: freezes containers of a pod together, has the state of each collected as for one container alone, and
 * writes an archive of each with a description of the pod into a directory that is empty or made for it. All of that is
 * there or nothing: until it is whole it lies below one name in there, which also says that the rest is ours to remove.
 */
import { lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { DESCRIPTION_VERSION } from '../../domain/pod-sandbox/checkpoint-description.ts';
import type { EffectOf, EffectResults } from '../../domain/model/effects.ts';
import type { TaskCheckpoint } from '../../domain/model/effects/checkpoint.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { writeFileWhole } from '../../platform/linux/files.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import {
  archiveMode,
  collect,
  directoryMode,
  findTool,
  limitOfAll,
  prepareWorkDir,
  removeWorkDir,
  setFrozen,
  tryThaw,
  writeArchive,
} from './checkpoint.ts';
import type { CheckpointTools } from './checkpoint-command.ts';
import type { ShimContext } from './context.ts';
import { whileDumped } from './ending-dumps.ts';
import { attempting } from './failures.ts';

type CheckpointPod = EffectOf<'CheckpointPod'>;

export const descriptionName = 'pod.json';
const unfinishedDir = (outputPath: string): string => join(outputPath, '.unfinished-checkpoint');
const archiveName = ({ containerId }: { readonly containerId: string }): string => `${containerId}.tar`;

/** Archives first: who finds the description finds them. */
const namesOf = ({ containers }: { readonly containers: readonly { readonly containerId: string }[] }): string[] => [
  ...containers.map(archiveName),
  descriptionName,
];

/** Whether the directory had to be made. */
const claimDirectory = async (outputPath: string): Promise<boolean> => {
  try {
    await mkdir(outputPath, { mode: directoryMode });
    return true;
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error;
  }
  const isEmpty = (await lstat(outputPath)).isDirectory() && (await readdir(outputPath)).length === 0;
  if (isEmpty) return false;
  const message = `output_path ${outputPath} is not an empty directory: name one that is empty, or that is not there yet.`;
  throw new FailureError('WrongState', message);
};

interface Freezing<T> {
  readonly freeze: (task: T) => Promise<void>;
  /** Never rejects. */
  readonly thaw: (task: T) => Promise<void>;
}

/** Freezes all before `work`, and thaws all after it, whatever failed. */
export const whileFrozen = async <T>(
  tasks: readonly T[],
  { freeze, thaw }: Freezing<T>,
  work: () => Promise<void>,
): Promise<void> => {
  try {
    const frozen = await Promise.allSettled(tasks.map(freeze));
    // One that is still being frozen would stay so, were it thawed before it is.
    for (const outcome of frozen) if (outcome.status === 'rejected') throw outcome.reason;
    await work();
  } finally {
    await Promise.all(tasks.map(thaw));
  }
};

/**
 * As they are at one moment, as far as that can be: all are frozen before the first is collected. None of them stays frozen
 * longer because the pod has more.
 */
const collectAll = (
  context: ShimContext,
  tools: CheckpointTools,
  containers: readonly TaskCheckpoint[],
): Promise<void> => {
  const freezing: Freezing<TaskCheckpoint> = {
    freeze: (task) => setFrozen(task, true),
    thaw: (task) => tryThaw(context, task),
  };
  return whileFrozen(containers, freezing, async () => {
    const limit = limitOfAll();
    await whileDumped(context, containers, async () => {
      for (const task of containers) await collect(context, tools, task, limit);
    });
  });
};

const describePod = ({ podSandboxId, containers, description }: CheckpointPod): string =>
  JSON.stringify({
    version: DESCRIPTION_VERSION,
    id: podSandboxId,
    ...description,
    containers: containers.map((task) => ({ ...task.description, archive: archiveName(task) })),
  });

const removeOutput = async (effect: EffectOf<'CheckpointPod' | 'EndPodCheckpoint'>): Promise<void> => {
  for (const name of namesOf(effect)) await rm(join(effect.outputPath, name), { force: true });
  await rm(unfinishedDir(effect.outputPath), { recursive: true, force: true });
};

/** Gives the digests of the archives. */
const writeOutput = async (
  context: ShimContext,
  tools: CheckpointTools,
  effect: CheckpointPod,
): Promise<readonly string[]> => {
  const { containers, outputPath } = effect;
  const unfinished = unfinishedDir(outputPath);
  await mkdir(unfinished, { mode: directoryMode });
  try {
    for (const task of containers) await prepareWorkDir(task);
    await collectAll(context, tools, containers);
    const digests: string[] = [];
    const limit = limitOfAll();
    for (const task of containers)
      digests.push(await writeArchive(tools, task, join(unfinished, basename(task.location)), limit));
    await writeFileWhole(join(unfinished, descriptionName), describePod(effect), archiveMode);
    for (const name of namesOf(effect)) await rename(join(unfinished, name), join(outputPath, name));
    await rmdir(unfinished);
    return digests;
  } catch (error) {
    await removeOutput(effect);
    throw error;
  } finally {
    for (const task of containers) await removeWorkDir(task);
  }
};

export const checkpointPod = (
  context: ShimContext,
  tools: CheckpointTools,
  effect: CheckpointPod,
): Promise<EffectResults['CheckpointPod']> =>
  attempting(`checkpoint pod sandbox ${effect.podSandboxId}`, async () => {
    // Before anything is frozen or made.
    await findTool(tools, 'criu');
    const isMade = await claimDirectory(effect.outputPath);
    try {
      return { digests: await writeOutput(context, tools, effect) };
    } catch (error) {
      if (isMade) await rmdir(effect.outputPath);
      throw error;
    }
  });

/** What stands in a directory that was not claimed, or beside a checkpoint that became whole, is left alone. */
export const endPodCheckpoint = (
  { log }: ShimContext,
  effect: EffectOf<'EndPodCheckpoint'>,
): Promise<EffectResults['EndPodCheckpoint']> =>
  attempting(`clear up the checkpoint of pod sandbox ${effect.podSandboxId} that was cut short`, async () => {
    const { podSandboxId, outputPath, containers } = effect;
    await Promise.all(containers.map((task) => setFrozen(task, false)));
    for (const task of containers) await removeWorkDir(task);
    if (await isThere(unfinishedDir(outputPath))) await removeOutput(effect);
    log.info({ podSandboxId, outputPath }, 'a checkpoint that the last end of the daemon cut short is cleared up');
    return {};
  });

const isThere = async (path: string): Promise<boolean> => {
  try {
    return (await lstat(path)).isDirectory();
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR') return false;
    throw error;
  }
};
