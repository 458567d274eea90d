/** The plugins that are there to be launched: executables of one directory, with their configuration. Starts nothing. */
import { constants } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../domain/model/errors.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { parsePluginName, type PluginName } from '../plugin-names.ts';
import { pluginName } from '../../../domain/nri/plugins.ts';

export interface FoundPlugin extends PluginName {
  readonly path: string;
  /** "" where there is none. */
  readonly config: string;
}

const EXECUTABLE = 0o111;
/** It goes into one message. */
const CONFIG_BYTES_MAX = 1024 * 1024;

const readConfig = async (path: string): Promise<string> => {
  // Not blocking: a FIFO must not hang the open.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = await file.stat();
    if (size > CONFIG_BYTES_MAX)
      throw new Error(`${path} has ${size} bytes, more than the ${CONFIG_BYTES_MAX} allowed`);
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
};

/** As each WASM module begins. */
const WASM = Buffer.from('\0asm');

const isWasm = async (path: string): Promise<boolean> => {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { buffer } = await file.read(Buffer.alloc(WASM.length), 0, WASM.length, 0);
    return buffer.equals(WASM);
  } finally {
    await file.close();
  }
};

const configOf = async (configDir: string, plugin: PluginName): Promise<string> => {
  for (const file of [pluginName(plugin), plugin.name]) {
    try {
      return await readConfig(join(configDir, `${file}.conf`));
    } catch (error) {
      if (errorCodeOf(error) !== 'ENOENT' && errorCodeOf(error) !== 'ENOTDIR') throw error;
    }
  }
  return '';
};

const isProgram = async (path: string): Promise<boolean> => {
  const facts = await stat(path).catch(() => null);
  return facts?.isFile() === true && (facts.mode & EXECUTABLE) !== 0;
};

const namesIn = async (directory: string, report: (sentence: string) => void): Promise<readonly string[]> => {
  try {
    return (await readdir(directory)).sort();
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT')
      report(`NRI plugins cannot be launched: ${directory} can't be read (${messageOf(error)}).`);
    return [];
  }
};

/** In the order of their names. A directory that is not there has none; what can't be launched is reported and left out. */
export const discoverPlugins = async (
  { pluginDir, configDir }: { readonly pluginDir: string; readonly configDir: string },
  report: (sentence: string) => void,
): Promise<readonly FoundPlugin[]> => {
  const found: FoundPlugin[] = [];
  for (const file of await namesIn(pluginDir, report)) {
    const path = join(pluginDir, file);
    if (!(await isProgram(path))) continue;
    const plugin = parsePluginName(file);
    if (plugin === null) {
      report(
        `${path} is not launched: the name of an NRI plugin has two digits, "-" and a name, like 10-logger. Rename it, or make it no executable.`,
      );
      continue;
    }
    try {
      if (await isWasm(path)) {
        report(`The NRI plugin ${path} is not launched: it is a WASM module, and only programs are. Build it as one.`);
        continue;
      }
      found.push({ ...plugin, path, config: await configOf(configDir, plugin) });
    } catch (error) {
      report(`The NRI plugin ${path} is not launched: it or its configuration can't be read (${messageOf(error)}).`);
    }
  }
  return found;
};
