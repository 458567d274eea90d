/**
 * Classes of block I/O: reads the configured file of them when it has changed since it was last asked for, and finds the
 * devices that a class names. Devices come and go, so they are looked for each time; one that is not there is passed over.
 */
import { glob, stat } from 'node:fs/promises';
import type { BlockDevice, BlockIOClasses, BlockIOFact } from '../../domain/model/classes.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { shown } from '../../domain/oci/refuse.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { majorOf, minorOf, typeOf } from './devices.ts';
import { parseFiles } from './parse-files.ts';
import { readTrustedFile } from './trusted-file.ts';

const FILE_BYTES_MAX = 256 * 1024;
const DEVICES_MAX = 1_000;

/** null when no file of classes is configured. Rejects with HostLacks for a class that the file does not have. */
export type InspectBlockIOClass = (name: string) => Promise<readonly BlockIOFact[] | null>;

async function deviceAt(path: string): Promise<BlockDevice | null> {
  const stats = await stat(path, { bigint: true }).catch((error: unknown) => {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  });
  if (stats === null || typeOf(stats) !== 'b') return null;
  return { major: majorOf(stats.rdev), minor: minorOf(stats.rdev) };
}

async function devicesOf(patterns: readonly string[]): Promise<readonly BlockDevice[]> {
  const devices: BlockDevice[] = [];
  let paths = 0;
  for await (const path of glob([...patterns])) {
    paths += 1;
    if (paths > DEVICES_MAX) {
      const message = `${patterns.join(', ')} names more than ${DEVICES_MAX} files: name devices more closely`;
      throw new FailureError('HostFailed', message);
    }
    const device = await deviceAt(path);
    if (device !== null) devices.push(device);
  }
  return devices;
}

/** `path` is the file of classes; null when there is none. */
export function createInspectBlockIOClass(path: string | null): InspectBlockIOClass {
  let known: { readonly signature: string; readonly classes: BlockIOClasses } | null = null;

  const read = async (file: string): Promise<BlockIOClasses> => {
    const { signature, text } = await readTrustedFile(file, FILE_BYTES_MAX, known?.signature);
    if (text === null && known !== null) return known.classes;
    const [parsed] = await parseFiles('blockIO', [{ path: file, text: text ?? '' }]);
    if (parsed?.content === undefined)
      throw new FailureError('HostFailed', parsed?.problem ?? `${file} was not parsed`);
    known = { signature, classes: parsed.content };
    return parsed.content;
  };

  return async (name) => {
    if (path === null) return null;
    const classes = await read(path).catch((error: unknown) => {
      throw new FailureError('HostFailed', `runtime.blockio_config_file: ${messageOf(error)}`, { cause: error });
    });
    const parameters = Object.hasOwn(classes, name) ? classes[name] : undefined;
    if (parameters === undefined)
      throw new FailureError(
        'HostLacks',
        `the class ${shown(name)} of block I/O is not in ${path}: add it, or ask for another`,
      );
    return Promise.all(
      parameters.map(async ({ devices, ...limits }) => ({
        ...limits,
        devices: devices === undefined ? null : await devicesOf(devices),
      })),
    );
  };
}
