/**
 * What checkpoints say of themselves: pod.json of a pod's, config.dump of a container's. Taken as anybody's: of known
 * fields only, and naming nothing outside of its directory. Pure; throws FailureError InvalidField.
 */
import { FailureError } from '../model/errors.ts';
import type { IdRange, PodUserNamespace } from '../model/user-namespace.ts';
import type { DescribedContainer, DescribedImage, DescribedPod } from '../model/pod-restore.ts';
import { type Read, type Shapes, shapes } from '../values/shape.ts';

/** Of what is in a pod's description. */
export const DESCRIPTION_VERSION = 1;
const CONTAINERS_MAX = 1_000;
const ID_MAX = 0xffff_ffff;

const LINE = /^[^\x00-\x1f\x7f]{1,1024}$/;
const ARCHIVE_NAME = /^[0-9a-zA-Z][0-9a-zA-Z_-]{0,127}\.tar$/;
const IMAGE_ID = /^sha256:[0-9a-f]{64}$/;
const CONTAINER_FIELDS = ['id', 'name', 'rootfsImageName', 'rootfsImageRef', 'runtime'];

function parsed(path: string, text: string): { readonly shape: Shapes; readonly said: unknown } {
  const refuse = (problem: string): never => {
    throw new FailureError('InvalidField', `${path} describes no checkpoint: ${problem}.`);
  };
  try {
    return { shape: shapes(refuse), said: JSON.parse(text) };
  } catch {
    return refuse('it is not JSON');
  }
}

const image = (shape: Shapes, said: Readonly<Record<string, unknown>>, name: string): DescribedImage => ({
  imageName: shape.text(said['rootfsImageName'], `${name}.rootfsImageName`, LINE, 'the name of an image'),
  imageId: shape.text(said['rootfsImageRef'], `${name}.rootfsImageRef`, IMAGE_ID, 'the id of an image'),
});

/** `path` is for messages. */
export function describedImage(path: string, text: string): DescribedImage {
  const { shape, said } = parsed(path, text);
  return image(shape, shape.object(said, 'it', CONTAINER_FIELDS), 'it');
}

export function describedPod(path: string, text: string): DescribedPod {
  const { shape, said } = parsed(path, text);
  const range: Read<IdRange> = (value, name) => {
    const { first, length } = shape.object(value, name, ['first', 'length']);
    return {
      first: shape.whole(first, `${name}.first`, 0, ID_MAX),
      length: shape.whole(length, `${name}.length`, 0, ID_MAX),
    };
  };
  const users: Read<PodUserNamespace> = (value, name) => {
    const { uids, gids } = shape.object(value, name, ['uids', 'gids']);
    return { uids: range(uids, `${name}.uids`), gids: range(gids, `${name}.gids`) };
  };
  const container: Read<DescribedContainer> = (value, name) => {
    const fields = shape.object(value, name, [...CONTAINER_FIELDS, 'archive']);
    return {
      name: shape.text(fields['name'], `${name}.name`, LINE, 'the name of a container'),
      archive: shape.text(fields['archive'], `${name}.archive`, ARCHIVE_NAME, 'the name of an archive beside it'),
      ...image(shape, fields, name),
    };
  };
  const pod = shape.object(said, 'it', ['version', 'id', 'runtimeHandler', 'config', 'users', 'containers']);
  shape.whole(pod['version'], 'version', DESCRIPTION_VERSION, DESCRIPTION_VERSION);
  const containers = shape.list(pod['containers'], 'containers', container);
  const names = new Set(containers.map(({ name }) => name));
  shape.whole(names.size, 'the number of containers with different names', 1, CONTAINERS_MAX);
  shape.whole(containers.length, 'the number of containers', names.size, names.size);
  return { containers, users: pod['users'] === undefined ? null : users(pod['users'], 'users') };
}
