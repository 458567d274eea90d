/**
 * The CDI spec files of the node: reads those in the configured directories that are new or have changed, whenever
 * somebody asks, and finds devices in them by name. A later directory wins over an earlier one; two files of one directory
 * that describe the same device make that one unusable. A bad file is told of and keeps nobody from using the others.
 */
import { join } from 'node:path';
import type { CdiDevice, CdiSpec } from '../../domain/model/cdi.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { shown } from '../../domain/oci/refuse.ts';
import { namesIn } from '../../platform/linux/files.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { type FileText, parseFiles, type ParsedFile } from './parse-files.ts';
import { checkTrustedDirectory, readTrustedFile } from './trusted-file.ts';

const FILE_NAME = /\.(json|yaml)$/;
const FILES_MAX = 1_000;
const FILE_BYTES_MAX = 4 * 1024 * 1024;
const UNUSABLE = 'a CDI spec, or a directory of them, cannot be used';
/** Of problems that may be why a device was not found. */
const PROBLEMS_TOLD_MAX = 3;

type KnownFile = ParsedFile<'cdi'> & { readonly signature: string };

export interface FoundDevice {
  readonly name: string;
  readonly spec: CdiSpec;
  readonly device: CdiDevice;
}

export interface CdiSpecs {
  /** In the order of the names. Rejects with HostLacks, naming them, when there are devices that no file describes. */
  readonly find: (names: readonly string[]) => Promise<readonly FoundDevice[]>;
}

export interface CdiSpecsOptions {
  /** Later ones win. */
  readonly dirs: readonly string[];
  readonly log: { readonly warn: (fields: object, message: string) => void };
}

interface Described {
  readonly found: FoundDevice;
  readonly priority: number;
  /** Paths of all files of that directory that describe it. */
  readonly paths: readonly string[];
}

export function createCdiSpecs({ dirs, log }: CdiSpecsOptions): CdiSpecs {
  let known: ReadonlyMap<string, KnownFile> = new Map();
  let reading: Promise<unknown> = Promise.resolve();

  /** Something cannot be read: told once. It is looked at again each time, as rights may change. */
  const unusable = (path: string, problem: string): KnownFile => {
    if (known.get(path)?.problem !== problem) log.warn({ path, problem }, UNUSABLE);
    return { path, problem, signature: '' };
  };

  const pathsIn = async (dir: string): Promise<readonly string[]> => {
    try {
      await checkTrustedDirectory(dir);
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return [];
      throw error;
    }
    const names = (await namesIn(dir)).filter((name) => FILE_NAME.test(name)).toSorted();
    if (names.length > FILES_MAX)
      throw new FailureError(
        'HostFailed',
        `${dir} has ${names.length} CDI specs, more than the ${FILES_MAX} that are read`,
      );
    return names.map((name) => join(dir, name));
  };

  /** What is known of the file still holds, or its text and signature, to be parsed. */
  const look = async (path: string): Promise<KnownFile | (FileText & { readonly signature: string }) | null> => {
    const before = known.get(path);
    try {
      const { signature, text } = await readTrustedFile(path, FILE_BYTES_MAX, before?.signature);
      if (text !== null) return { path, text, signature };
      return before ?? null;
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return null;
      return unusable(path, messageOf(error));
    }
  };

  const refresh = async (): Promise<ReadonlyMap<string, KnownFile>> => {
    const files = new Map<string, KnownFile>();
    const changed = new Map<string, FileText & { readonly signature: string }>();
    for (const dir of dirs)
      for (const path of await pathsIn(dir).catch((error: unknown) => {
        files.set(dir, unusable(dir, messageOf(error)));
        return [];
      })) {
        const file = await look(path);
        if (file === null) continue;
        if ('text' in file) changed.set(path, file);
        else files.set(path, file);
      }
    for (const file of await parseFiles('cdi', [...changed.values()])) {
      const { path, problem } = file;
      if (problem !== undefined) log.warn({ path, problem }, UNUSABLE);
      files.set(path, { ...file, signature: changed.get(path)?.signature ?? '' });
    }
    known = files;
    return files;
  };

  const index = (files: ReadonlyMap<string, KnownFile>): ReadonlyMap<string, Described> => {
    const devices = new Map<string, Described>();
    for (const [priority, dir] of dirs.entries())
      for (const { path, content: spec } of files.values()) {
        if (spec === undefined || join(path, '..') !== join(dir)) continue;
        for (const device of spec.devices) {
          const name = `${spec.kind}=${device.name}`;
          const other = devices.get(name);
          const paths = other?.priority === priority ? [...other.paths, path] : [path];
          devices.set(name, { found: { name, spec, device }, priority, paths });
        }
      }
    return devices;
  };

  const lacking = (names: readonly string[], files: ReadonlyMap<string, KnownFile>): FailureError => {
    const where = dirs.length === 0 ? 'runtime.cdi_spec_dirs names no directory' : `looked in ${dirs.join(', ')}`;
    const problems = [...files.values()].flatMap(({ problem }) => problem ?? []).slice(0, PROBLEMS_TOLD_MAX);
    const told = [where, ...problems].join('; ');
    return new FailureError(
      'HostLacks',
      `CDI_devices ${names.map(shown).join(', ')}: no CDI spec describes it (${told})`,
    );
  };

  return {
    find: async (names) => {
      // One after the other, so that no file is parsed twice; each looks anew, for files made just before it was asked.
      const files = reading.then(refresh, refresh);
      reading = files.catch(() => undefined);
      const devices = index(await files);
      const missing = names.filter((name) => !devices.has(name));
      if (missing.length > 0) throw lacking(missing, await files);
      return names.flatMap((name) => {
        const described = devices.get(name);
        if (described === undefined) return [];
        if (described.paths.length === 1) return [described.found];
        const message = `CDI_devices ${shown(name)} is described by ${described.paths.join(' and ')}: remove it from all but one`;
        throw new FailureError('HostLacks', message);
      });
    },
  };
}
