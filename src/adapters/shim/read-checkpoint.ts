/**
 * ReadPodCheckpoint: what a directory says that CheckpointPod wrote, on a machine that can restore it. The description
 * is taken as anybody's: bounded, of known fields only, and naming nothing outside of its directory.
 */
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { EffectOf, EffectResults } from '../../domain/effects.ts';
import { FailureError } from '../../domain/errors.ts';
import type { IdRange, PodUserNamespace } from '../../domain/oci/user-namespace.ts';
import type { DescribedContainer, DescribedPod } from '../../domain/pod-sandbox/restored.ts';
import { type Read, shapes } from '../../domain/shape.ts';
import { errorCodeOf } from '../linux/syscalls.ts';
import { type CheckpointTools, criuProblem, findTool } from './checkpoint.ts';
import { attempting } from './failures.ts';
import { descriptionName, descriptionVersion } from './pod-checkpoint.ts';

/** A pod's config is a part of it, which a request bounds too. */
const descriptionBytesMax = 4 * 1024 * 1024;
const containersMax = 1_000;
const idMax = 0xffff_ffff;

const line = /^[^\x00-\x1f\x7f]{1,1024}$/;
const archiveName = /^[0-9a-zA-Z][0-9a-zA-Z_-]{0,127}\.tar$/;
const imageId = /^sha256:[0-9a-f]{64}$/;

const refuse = (problem: string): never => {
  throw new FailureError('InvalidField', `checkpoint_path ${problem}.`);
};

const parse = (path: string, text: string): DescribedPod => {
  const shape = shapes((problem) =>
    refuse(`has a ${descriptionName} that CheckpointPod did not write (${path}): ${problem}`),
  );
  const read = (): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      return refuse(`has a ${descriptionName} that is not JSON: ${path}`);
    }
  };
  const range: Read<IdRange> = (value, name) => {
    const { first, length } = shape.object(value, name, ['first', 'length']);
    return {
      first: shape.whole(first, `${name}.first`, 0, idMax),
      length: shape.whole(length, `${name}.length`, 0, idMax),
    };
  };
  const users: Read<PodUserNamespace> = (value, name) => {
    const { uids, gids } = shape.object(value, name, ['uids', 'gids']);
    return { uids: range(uids, `${name}.uids`), gids: range(gids, `${name}.gids`) };
  };
  const container: Read<DescribedContainer> = (value, name) => {
    const fields = ['id', 'name', 'rootfsImageName', 'rootfsImageRef', 'runtime', 'archive'];
    const said = shape.object(value, name, fields);
    return {
      name: shape.text(said['name'], `${name}.name`, line, 'the name of a container'),
      archive: shape.text(said['archive'], `${name}.archive`, archiveName, 'the name of an archive beside it'),
      imageName: shape.text(said['rootfsImageName'], `${name}.rootfsImageName`, line, 'the name of an image'),
      imageId: shape.text(said['rootfsImageRef'], `${name}.rootfsImageRef`, imageId, 'the id of an image'),
    };
  };
  const pod = shape.object(read(), 'it', ['version', 'id', 'runtimeHandler', 'config', 'users', 'containers']);
  shape.whole(pod['version'], 'version', descriptionVersion, descriptionVersion);
  const containers = shape.list(pod['containers'], 'containers', container);
  if (containers.length === 0 || containers.length > containersMax)
    refuse(`has a ${descriptionName} that tells of ${containers.length} containers: ${path}`);
  const names = new Set(containers.map(({ name }) => name));
  if (names.size < containers.length) refuse(`has a ${descriptionName} that has a container twice: ${path}`);
  return { containers, users: pod['users'] === undefined ? null : users(pod['users'], 'users') };
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
    const pod = parse(path, await readDescription(path));
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

export const readPodCheckpoint = (
  tools: CheckpointTools,
  { checkpointPath }: EffectOf<'ReadPodCheckpoint'>,
): Promise<EffectResults['ReadPodCheckpoint']> =>
  attempting(`read the checkpoint in ${checkpointPath}`, async () => {
    const criu = await findTool(tools, 'criu');
    const pod = await described(checkpointPath);
    const problem = await criuProblem(tools, criu);
    if (problem === null) return { pod };
    const message = `The checkpoint in ${checkpointPath} can not be restored, because CRIU does not work on this machine: ${problem}; install a CRIU that fits the kernel (see '${criu} check').`;
    throw new FailureError('HostLacks', message);
  });
