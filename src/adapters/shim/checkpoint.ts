/**
 * CheckpointTask: has the OCI runtime write a task's state with CRIU, and puts it into one archive with the changed files
 * and the spec. The archive is for root alone, as it holds the memory of the container, and is there whole or not at all;
 * nothing else is written where the request points. The task runs on, whatever fails.
 */
import { constants } from 'node:fs';
import { copyFile, mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINT_FILES } from '../../domain/model/checkpoint-files.ts';
import type { EffectOf, EffectResults } from '../../domain/model/effects.ts';
import type { CheckpointedTask, TaskCheckpoint } from '../../domain/model/effects/checkpoint.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { cgroupDirectory } from '../../platform/linux/cgroup-path.ts';
import { CGROUP_ROOT, readCgroupFacts } from '../../platform/linux/cgroups.ts';
import { digestOf } from '../../platform/linux/file-digest.ts';
import { unfinishedName } from '../../platform/linux/files.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { isTimeout } from '../../platform/ttrpc/status.ts';
import type { RunResult } from '../../platform/spawner/types.ts';
import { CheckpointOptions } from '../../wire/types/runc/options/oci.ts';
import { Status } from '../../wire/types/task/task.ts';
import { readCgroupsPath } from './bundle-spec.ts';
import { type CheckpointTools, runCheckpoint } from './checkpoint-command.ts';
import type { ShimContext } from './context.ts';
import { readCriuErrors } from './criu-log.ts';
import { dumpedByShim, killedSignalOf, whileDumped } from './ending-dumps.ts';
import { attempting, quoted } from './failures.ts';
import { findProgram } from '../../platform/linux/find-program.ts';
import { beginningOf } from './tasks/start-init.ts';
import { type TaskClient, WHOLE_TASK } from './task-client.ts';

const optionsType = 'containerd.runc.v1.CheckpointOptions';
export const archiveMode = 0o600;
export const directoryMode = 0o700;
const outputBytesMax = 65_536;
const checkMs = 20_000;
/** Whoever gives no timeout is not made to wait for ever. */
const defaultMs = 300_000;

/** What is left for a step of a checkpoint. */
export type StepLimit = () => number;

/** A timeout that was given holds for all of them together. */
const stepLimitOf = (timeoutMs: number | null): StepLimit =>
  timeoutMs === null ? () => defaultMs : limitOfAll(timeoutMs);

/** Holds for all steps together, whoever they are for. */
export const limitOfAll = (timeoutMs = defaultMs): StepLimit => {
  const endMs = performance.now() + timeoutMs;
  return () => Math.max(1, Math.ceil(endMs - performance.now()));
};

const run = (
  { spawner, searchPath }: CheckpointTools,
  argv: readonly string[],
  timeoutMs: number,
): Promise<RunResult> => {
  const [command = '', ...args] = argv;
  return spawner.run({ command, args, env: { PATH: searchPath, LC_ALL: 'C' }, cwd: '/', timeoutMs, outputBytesMax });
};

export const findTool = async ({ searchPath }: CheckpointTools, name: string): Promise<string> => {
  const found = await findProgram(name, searchPath);
  if (found !== null) return found;
  const message = `Containers can only be checkpointed and restored with ${name}, which is not in PATH (${searchPath}): install the package ${name}.`;
  throw new FailureError('HostLacks', message);
};

const archive = async (
  tools: CheckpointTools,
  directory: string,
  path: string,
  timeoutMs: number,
  ...more: readonly string[]
): Promise<void> => {
  const tar = await findTool(tools, 'tar');
  const options = ['--create', '--force-local', '--numeric-owner', '--xattrs', '--xattrs-include=*', ...more];
  const result = await run(tools, [tar, ...options, '--file', path, '--directory', directory, '.'], timeoutMs);
  if (result.timedOut) throw new FailureError('TimedOut', `tar could not archive ${directory} in time.`);
  // 1: a file changed while it was read, as those of a container that runs may.
  if (result.exitCode === 0 || result.exitCode === 1) return;
  const words = quoted(Buffer.from(result.stderr).toString());
  throw new FailureError('HostFailed', `tar could not archive ${directory}: ${words || 'it was ended'}.`);
};

/** Why CRIU can't do anything on this machine; null when it says that it can. */
export const criuProblem = async (tools: CheckpointTools, criu: string): Promise<string | null> => {
  const { exitCode, stdout, stderr } = await run(tools, [criu, 'check'], checkMs);
  if (exitCode === 0) return null;
  const [first = `it ended with ${exitCode ?? 'a signal'}`] = Buffer.concat([stderr, stdout]).toString().split('\n');
  return quoted(first);
};

/** In the cgroup itself: a shim resumes only what it has paused, and runs nothing in what it has. */
export const setFrozen = async (
  { bundlePath }: Pick<CheckpointedTask, 'bundlePath'>,
  frozen: boolean,
): Promise<void> => {
  try {
    const [facts, cgroupsPath] = await Promise.all([readCgroupFacts(), readCgroupsPath(bundlePath)]);
    const directory = cgroupsPath === null ? null : cgroupDirectory(cgroupsPath);
    const { freezer } = facts.controllers;
    if (directory === null) return;
    if (facts.version === 2) await writeFile(join(CGROUP_ROOT, directory, 'cgroup.freeze'), frozen ? '1' : '0');
    else if (freezer !== undefined)
      await writeFile(join(freezer, directory, 'freezer.state'), frozen ? 'FROZEN' : 'THAWED');
  } catch (error) {
    // Without its cgroup, the container has ended.
    if (errorCodeOf(error) !== 'ENOENT') throw error;
  }
};

/**
 * CRIU lets go of what it has frozen; should it have been killed before, that is done here. Whether or not it can be done,
 * the checkpoint has its own outcome.
 */
export const tryThaw = async ({ log }: ShimContext, task: CheckpointedTask): Promise<void> => {
  try {
    await setFrozen(task, false);
  } catch (error) {
    log.warn(
      { containerId: task.containerId, error: messageOf(error) },
      'whether a checkpointed container runs on is not known',
    );
  }
};

const criuWorkDirOf = (workDir: string): string => join(workDir, 'work');

/** The shim has it made by the OCI runtime, unless it would refuse: one that it was not asked to start. */
const dumpTask = async (
  context: ShimContext,
  tools: CheckpointTools,
  client: TaskClient,
  { containerId, bundlePath, workDir }: TaskCheckpoint,
  limit: StepLimit,
  signal: AbortSignal,
): Promise<void> => {
  const imagesDir = join(workDir, 'archive', CHECKPOINT_FILES.images);
  const criuWorkDir = criuWorkDirOf(workDir);
  const { status, bundle, pid } = await client.state({ id: containerId, execId: WHOLE_TASK }, context.timings.callMs);
  if (status === Status.CREATED && (await beginningOf(context, containerId, bundle)) === 'begun') {
    const command = { containerId, bundlePath, imagesDir, workDir: criuWorkDir, timeoutMs: limit(), signal };
    return runCheckpoint(context, tools, command);
  }
  const options = CheckpointOptions.fromPartial({ exit: false, workPath: criuWorkDir });
  const encoded = { typeUrl: optionsType, value: Buffer.from(CheckpointOptions.encode(options).finish()) };
  await dumpedByShim(client.checkpoint({ id: containerId, path: imagesDir, options: encoded }, limit()), pid, signal);
};

/** The OCI runtime names CRIU's log, which nobody can read afterwards. */
const explained = async (error: unknown, { containerId, workDir }: TaskCheckpoint): Promise<unknown> => {
  const isTooLate = isTimeout(error) || (error instanceof FailureError && error.failure.reason === 'TimedOut');
  const said = isTooLate ? '' : await readCriuErrors(criuWorkDirOf(workDir));
  if (said === '') return error;
  const message = `Could not checkpoint container ${containerId}: criu failed: ${said}.`;
  return new FailureError('RuntimeFailed', message, { cause: error });
};

const dump = async (
  context: ShimContext,
  tools: CheckpointTools,
  task: TaskCheckpoint,
  limit: StepLimit,
): Promise<void> => {
  const { podSandboxId, containerId } = task;
  const criu = await findTool(tools, 'criu');
  const client = await context.shims.clientOf(podSandboxId);
  const killed = killedSignalOf(context, containerId);
  try {
    killed.throwIfAborted();
    await dumpTask(context, tools, client, task, limit, killed);
  } catch (error) {
    if (killed.aborted) throw killed.reason;
    const problem = await criuProblem(tools, criu);
    if (problem === null) throw await explained(error, task);
    const message = `Container ${containerId} cannot be checkpointed, because CRIU does not work on this machine: ${problem}; install a CRIU that fits the kernel (see '${criu} check').`;
    throw new FailureError('HostLacks', message, { cause: error });
  }
};

/** The layer that overlayfs keeps the container's changes in. */
const changesOf = ({ rootfs }: TaskCheckpoint): string | null => {
  const options = rootfs.flatMap((mount) => mount.options);
  return options.find((option) => option.startsWith('upperdir='))?.slice('upperdir='.length) ?? null;
};

const archiveDir = ({ workDir }: CheckpointedTask): string => join(workDir, 'archive');

/** Empties the directory in which a checkpoint is put together. */
export const prepareWorkDir = async (task: CheckpointedTask): Promise<void> => {
  await rm(task.workDir, { recursive: true, force: true });
  await mkdir(join(archiveDir(task), CHECKPOINT_FILES.images), { recursive: true, mode: directoryMode });
  await mkdir(criuWorkDirOf(task.workDir), { mode: directoryMode });
};

export const removeWorkDir = ({ workDir }: CheckpointedTask): Promise<void> =>
  rm(workDir, { recursive: true, force: true });

/** Has the task's state, its changed files and its description written into the work directory. */
export const collect = async (
  context: ShimContext,
  tools: CheckpointTools,
  task: TaskCheckpoint,
  limit: StepLimit,
): Promise<void> => {
  await dump(context, tools, task, limit);
  await describe(tools, task, limit);
};

const describe = async (tools: CheckpointTools, task: TaskCheckpoint, limit: StepLimit): Promise<void> => {
  const directory = archiveDir(task);
  const changes = changesOf(task);
  if (changes !== null) await archive(tools, changes, join(directory, CHECKPOINT_FILES.changes), limit(), '--sparse');
  await copyFile(join(task.bundlePath, 'config.json'), join(directory, CHECKPOINT_FILES.spec));
  await writeFile(join(directory, CHECKPOINT_FILES.description), JSON.stringify(task.description));
};

/** Under another name beside it first. What stands there is replaced, and no link is followed. Gives the archive's digest. */
export const writeArchive = async (
  tools: CheckpointTools,
  task: TaskCheckpoint,
  location: string,
  limit: StepLimit,
): Promise<string> => {
  const unfinished = unfinishedName(location);
  await rm(unfinished, { force: true });
  const file = await open(unfinished, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL, archiveMode);
  try {
    await archive(tools, archiveDir(task), `/proc/${process.pid}/fd/${file.fd}`, limit());
    await file.chmod(archiveMode);
    await file.sync();
    const { size: sizeBytes } = await file.stat();
    const digest = await digestOf({ from: file.fd, sizeBytes, to: null });
    await rename(unfinished, location);
    return digest;
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  } finally {
    await file.close();
  }
};

export const checkpointTask = async (
  context: ShimContext,
  tools: CheckpointTools,
  effect: EffectOf<'CheckpointTask'>,
): Promise<EffectResults['CheckpointTask']> =>
  attempting(`checkpoint container ${effect.containerId}`, async () => {
    const limit = stepLimitOf(effect.timeoutMs);
    await prepareWorkDir(effect);
    try {
      try {
        await whileDumped(context, [effect], () => collect(context, tools, effect, limit));
      } finally {
        await tryThaw(context, effect);
      }
      return { digests: [await writeArchive(tools, effect, effect.location, limit)] };
    } finally {
      await removeWorkDir(effect);
    }
  });

/** The archive itself is whole wherever it stands under its own name. */
export const endCheckpoint = async (
  { log }: ShimContext,
  effect: EffectOf<'EndCheckpoint'>,
): Promise<EffectResults['EndCheckpoint']> =>
  attempting(`clear up the checkpoint of container ${effect.containerId} that was cut short`, async () => {
    const { containerId, location } = effect;
    await setFrozen(effect, false);
    await removeWorkDir(effect);
    await rm(unfinishedName(location), { force: true });
    log.info({ containerId, location }, 'a checkpoint that the last end of the daemon cut short is cleared up');
    return {};
  });
