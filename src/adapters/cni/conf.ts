/**
 * Reads network configurations: the first valid one of a directory, in lexical order of the file names. A
 * .conflist is a network configuration of CNI 1.1, a .conf or .json the single plugin of older versions.
 * Files are somebody else's: they are bounded in size and number, and a bad one is skipped and named, never fatal.
 */
import { constants } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { errorCodeOf } from '../../platform/error-code.ts';
import type { CniConfList, CniPluginConf } from '../../domain/model/cni.ts';
import { parseAs } from '../../platform/foreign-json.ts';
import { highestSupported, OLDEST_VERSION, supportedVersionsText } from './versions.ts';

const CONF_BYTES_MAX = 1024 * 1024;
const PLUGINS_MAX = 32;
const CONFLIST_EXTENSION = '.conflist';
const PLUGIN_EXTENSION = '.conf';
const EXTENSIONS: readonly string[] = [CONFLIST_EXTENSION, PLUGIN_EXTENSION, '.json'];

/** The network that pods are attached to from now on. */
export interface LoadedNetwork {
  readonly path: string;
  readonly confList: CniConfList;
  readonly disableGC: boolean;
}

export interface LoadedConfDir {
  readonly network: LoadedNetwork | null;
  /** Why there is no network; null when there is one. */
  readonly problem: string | null;
  /** Files that came before the network's (or all of them) and can't be used, each with its reason. */
  readonly skipped: readonly string[];
}

const nameSchema = z
  .string()
  .max(255)
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'must start with a letter or digit and hold only those, "_", "." and "-"');

/** Also the name of an executable, so it must not lead out of the plugin directories. */
const pluginSchema = z.looseObject({
  type: nameSchema,
  capabilities: z.record(z.string(), z.boolean()).optional(),
});

/** Booleans may be written as text, as the reference library has it. */
const flagSchema = z.union([
  z.boolean(),
  z
    .string()
    .toLowerCase()
    .pipe(z.enum(['true', 'false']))
    .transform((text) => text === 'true'),
]);

const versionSchema = z.string().max(64);
const versionFields = { cniVersion: versionSchema.optional(), cniVersions: z.array(versionSchema).max(64).optional() };

const confListSchema = z.looseObject({
  ...versionFields,
  name: nameSchema,
  disableCheck: flagSchema.optional(),
  disableGC: flagSchema.optional(),
  loadOnlyInlinedPlugins: flagSchema.optional(),
  plugins: z.array(pluginSchema).max(PLUGINS_MAX).optional(),
});

const singleSchema = pluginSchema.extend({ ...versionFields, name: nameSchema });

const chosenVersion = (conf: { cniVersion?: string | undefined; cniVersions?: string[] | undefined }): string => {
  const named = [...(conf.cniVersions ?? []), ...(conf.cniVersion === undefined ? [] : [conf.cniVersion])];
  const offered = named.filter((version) => version !== '');
  const chosen = highestSupported(offered.length === 0 ? [OLDEST_VERSION] : offered);
  if (chosen === null) {
    throw new Error(`cniVersion: ${offered.join(', ')} is none of the supported versions ${supportedVersionsText}`);
  }
  return chosen;
};

const readBounded = async (path: string): Promise<string> => {
  // Not blocking: a FIFO that somebody put there must not hang the open.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Error('is not a regular file');
    const buffer = Buffer.alloc(CONF_BYTES_MAX + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length > CONF_BYTES_MAX) throw new Error(`is larger than ${CONF_BYTES_MAX} bytes`);
    return buffer.toString('utf8', 0, length);
  } finally {
    await file.close();
  }
};

const isMissing = (error: unknown): boolean => errorCodeOf(error) === 'ENOENT';

const confFileNames = async (directory: string, extensions: readonly string[]): Promise<string[]> => {
  const entries = await readdir(directory, { withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory() && extensions.some((extension) => entry.name.endsWith(extension)))
    .map((entry) => entry.name)
    .sort();
};

/** Plugins that others add to a network: <directory>/<network name>/*.conf (CNI 1.1, loadOnlyInlinedPlugins). */
const addedPlugins = async (directory: string, room: number): Promise<CniPluginConf[]> => {
  let names: string[];
  try {
    names = await confFileNames(directory, [PLUGIN_EXTENSION]);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  if (names.length > room) throw new Error(`has more than ${PLUGINS_MAX} plugins with those of ${directory}`);
  return Promise.all(names.map(async (name) => parseAs(pluginSchema, await readBounded(join(directory, name)))));
};

const loadConfList = async (directory: string, path: string): Promise<LoadedNetwork> => {
  const conf = parseAs(confListSchema, await readBounded(path));
  const inlined = conf.plugins ?? [];
  const added =
    conf.loadOnlyInlinedPlugins === true
      ? []
      : await addedPlugins(pluginDirectory(directory, conf.name), PLUGINS_MAX - inlined.length);
  const plugins = [...inlined, ...added];
  if (plugins.length === 0) throw new Error('has no plugins');
  const confList = {
    cniVersion: chosenVersion(conf),
    name: conf.name,
    plugins,
    ...(conf.disableCheck === true ? { disableCheck: true } : {}),
  };
  return { path, confList, disableGC: conf.disableGC === true };
};

const loadSingle = async (path: string): Promise<LoadedNetwork> => {
  const { cniVersion, cniVersions, name, ...plugin } = parseAs(singleSchema, await readBounded(path));
  const version = chosenVersion({ cniVersion, cniVersions });
  return { path, confList: { cniVersion: version, name, plugins: [plugin] }, disableGC: false };
};

/** Where plugins are added to the network `name`. */
export const pluginDirectory = (directory: string, name: string): string => join(directory, name);

/**
 * Loads the first valid network configuration of `directory`, or the first of that name, looking at `maxConfFiles`
 * files at most. Never rejects: what is wrong is in `problem` (nothing usable) and `skipped` (files passed over).
 */
export const loadConfDir = async (
  directory: string,
  maxConfFiles: number,
  networkName?: string,
): Promise<LoadedConfDir> => {
  let names: string[];
  try {
    names = await confFileNames(directory, EXTENSIONS);
  } catch (error) {
    const why = isMissing(error) ? 'the directory does not exist' : (error as Error).message;
    return { network: null, problem: `no CNI network configuration in ${directory}: ${why}`, skipped: [] };
  }
  const skipped: string[] = [];
  const others: string[] = [];
  for (const name of names.slice(0, maxConfFiles)) {
    const path = join(directory, name);
    try {
      const network = await (name.endsWith(CONFLIST_EXTENSION) ? loadConfList(directory, path) : loadSingle(path));
      if (networkName === undefined || network.confList.name === networkName)
        return { network, problem: null, skipped };
      others.push(`${path} is of network ${network.confList.name}`);
    } catch (error) {
      skipped.push(`${path} ${(error as Error).message}`);
    }
  }
  const unread =
    names.length > maxConfFiles ? [`only the first ${maxConfFiles} of ${names.length} files are read`] : [];
  const passed = [...skipped, ...others];
  const why = passed.length === 0 ? `it holds no ${EXTENSIONS.join(', ')} file` : [...passed, ...unread].join('; ');
  const wanted =
    networkName === undefined ? 'CNI network configuration' : `configuration of CNI network ${networkName}`;
  return { network: null, problem: `no valid ${wanted} in ${directory}: ${why}`, skipped };
};
