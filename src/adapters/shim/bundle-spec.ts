/**
 * Reads what a bundle's config.json says of its process and cgroup, and changes the limits in it. The process's env holds
 * secrets: it is read when it is needed and kept nowhere. Bounded, and never followed through a link.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { EffectOf } from '../../domain/model/effects.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { OciResources } from '../../domain/model/oci.ts';
import { parseJson } from '../../domain/values/parse-json.ts';
import { writeFileWhole } from '../../platform/linux/files.ts';

const configBytesMax = 16 * 1024 * 1024;

/** A JSON object whose fields are not known here: passed on as it is. */
export type JsonObject = Readonly<Record<string, unknown>>;

const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const readBounded = async (path: string): Promise<Buffer> => {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    if (size > configBytesMax)
      throw new FailureError('HostFailed', `${path} has ${size} bytes, more than a spec may have.`);
    const bytes = Buffer.allocUnsafe(size);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, size - length, length);
      length += bytesRead;
      if (bytesRead === 0 || length === size) return bytes.subarray(0, length);
    }
  } finally {
    await file.close();
  }
};

const configMode = 0o600;
const configPath = (bundlePath: string): string => join(bundlePath, 'config.json');

/** It holds secrets in the clear, so that no message may quote it. */
const parsed = (path: string, text: string): unknown => {
  try {
    return parseJson(text);
  } catch (error) {
    throw new FailureError('HostFailed', `${path} ${messageOf(error)}.`);
  }
};

const readSpec = async (bundlePath: string): Promise<JsonObject> => {
  const path = configPath(bundlePath);
  const text = (await readBounded(path)).toString('utf8');
  const spec = parsed(path, text);
  if (isJsonObject(spec)) return spec;
  throw new FailureError('HostFailed', `${path} holds no OCI spec.`);
};

/**
 * The OCI process of an exec in that container: the container's own (user, env, capabilities, limits), with other
 * arguments, and with a terminal or without. Throws HostFailed for a bundle without a process.
 */
export const readExecProcess = async (
  bundlePath: string,
  args: readonly string[],
  terminal: boolean,
): Promise<JsonObject> => {
  const { process } = await readSpec(bundlePath);
  if (!isJsonObject(process)) throw new FailureError('HostFailed', `The spec in ${bundlePath} has no process.`);
  const { consoleSize: _consoleSize, commandLine: _commandLine, ...rest } = process;
  return { ...rest, args, terminal, ...(terminal ? { env: withTerm(rest['env']) } : {}) };
};

const withTerm = (env: unknown): readonly unknown[] => {
  const known: readonly unknown[] = Array.isArray(env) ? env : [];
  const hasTerm = known.some((entry) => typeof entry === 'string' && entry.startsWith('TERM='));
  return hasTerm ? known : [...known, 'TERM=xterm'];
};

/** linux.cgroupsPath of the spec, or null when it can't be read. */
export const readCgroupsPath = async (bundlePath: string): Promise<string | null> => {
  const spec = await readSpec(bundlePath).catch((): JsonObject => ({}));
  const { linux } = spec;
  if (!isJsonObject(linux)) return null;
  return typeof linux['cgroupsPath'] === 'string' ? linux['cgroupsPath'] : null;
};

const objectIn = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});

const pageSizeOf = (page: unknown): unknown => objectIn(page)['pageSize'];

/** Limits on top of those that stand there: what they do not name stays, within memory and the like too. */
const withLimits = (old: JsonObject, limits: OciResources): JsonObject => {
  const both = (key: 'memory' | 'cpu' | 'unified'): JsonObject =>
    limits[key] === undefined ? {} : { [key]: { ...objectIn(old[key]), ...limits[key] } };
  const { hugepageLimits = [] } = limits;
  const known = Array.isArray(old['hugepageLimits']) ? (old['hugepageLimits'] as readonly unknown[]) : [];
  const kept = known.filter((page) => !hugepageLimits.some(({ pageSize }) => pageSize === pageSizeOf(page)));
  const pages = [...kept, ...hugepageLimits];
  return {
    ...old,
    ...limits,
    ...both('memory'),
    ...both('cpu'),
    ...both('unified'),
    ...(pages.length === 0 ? {} : { hugepageLimits: pages }),
  };
};

/** Writes limits and OOM score into the spec; what else stands there stays, a base spec's limits among them. */
export const writeLimits = async (
  bundlePath: string,
  { resources, oomScoreAdj }: Pick<EffectOf<'UpdateContainer'>, 'resources' | 'oomScoreAdj'>,
): Promise<void> => {
  const spec = await readSpec(bundlePath);
  const { linux, process } = spec;
  if (!isJsonObject(linux) || !isJsonObject(process))
    throw new FailureError('HostFailed', `The spec in ${bundlePath} is not one of a container.`);
  const changed = {
    ...spec,
    process: { ...process, oomScoreAdj },
    linux: { ...linux, resources: withLimits(objectIn(linux['resources']), resources) },
  };
  await writeFileWhole(configPath(bundlePath), JSON.stringify(changed), configMode);
};
