/**
 * Reads what a bundle's config.json says of its process and cgroup, and changes the limits in it. The process's env holds
 * secrets: it is read when it is needed and kept nowhere. Bounded, and never followed through a link.
 */
import { join } from 'node:path';
import * as z from 'zod';
import type { EffectOf } from '../../domain/model/effects.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { OciResources } from '../../domain/model/oci.ts';
import type { JsonObject } from '../../domain/values/json.ts';
import { writtenRlimits } from '../../domain/oci/rlimits.ts';
import { parseAs } from '../../platform/foreign-json.ts';
import { type FileCalls, pooledCalls } from '../../platform/linux/file-calls.ts';
import { writeFileWhole } from '../../platform/linux/files.ts';

const configBytesMax = 16 * 1024 * 1024;
const CGROUPS_PATH_MAX = 4096;

/** What others wrote into a part of the spec is kept as it is. */
const partSchema = z.looseObject({}).optional().catch(undefined);
const cgroupsPathSchema = z.string().max(CGROUPS_PATH_MAX);
const namespacesSchema = z.array(z.looseObject({ type: z.string(), path: z.string().optional() })).catch([]);
/** Their numbers go back as they were written, where the spec or its process is handed on. */
const rlimitsSchema = z.array(z.looseObject({})).transform(writtenRlimits).optional().catch(undefined);
const processSchema = z.looseObject({ rlimits: rlimitsSchema }).optional().catch(undefined);
const specSchema = z.looseObject({ process: processSchema, linux: partSchema, hooks: partSchema });
const pageSchema = z.object({ pageSize: z.string() });

type Spec = z.output<typeof specSchema>;

const configMode = 0o600;
const configPath = (bundlePath: string): string => join(bundlePath, 'config.json');

/** It holds secrets in the clear, so that no message may quote it. */
const readSpec = async (bundlePath: string, { content }: FileCalls = pooledCalls): Promise<Spec> => {
  const path = configPath(bundlePath);
  const bytes = await content(path, configBytesMax);
  if (bytes === null)
    throw new FailureError('HostFailed', `${path} has more than the ${configBytesMax} bytes that a spec may have.`);
  try {
    return parseAs(specSchema, bytes.toString('utf8'));
  } catch (error) {
    throw new FailureError('HostFailed', `${path} holds no OCI spec: it ${messageOf(error)}.`);
  }
};

/**
 * The OCI process of an exec in that container: the container's own (user, env, capabilities, limits), with other
 * arguments, and with a terminal or without. Throws HostFailed for a bundle without a process.
 */
export const readExecProcess = async (
  bundlePath: string,
  args: readonly string[],
  terminal: boolean,
  calls?: FileCalls,
): Promise<JsonObject> => {
  const { process } = await readSpec(bundlePath, calls);
  if (process === undefined) throw new FailureError('HostFailed', `The spec in ${bundlePath} has no process.`);
  const { consoleSize: _consoleSize, commandLine: _commandLine, ...rest } = process;
  return { ...rest, args, terminal, ...(terminal ? { env: withTerm(rest['env']) } : {}) };
};

const withTerm = (env: unknown): readonly unknown[] => {
  const known: readonly unknown[] = Array.isArray(env) ? env : [];
  const hasTerm = known.some((entry) => typeof entry === 'string' && entry.startsWith('TERM='));
  return hasTerm ? known : [...known, 'TERM=xterm'];
};

/** linux.cgroupsPath of the spec, or null when it can't be read. */
export const readCgroupsPath = async (bundlePath: string, calls?: FileCalls): Promise<string | null> => {
  const spec = await readSpec(bundlePath, calls).catch(() => null);
  return cgroupsPathSchema.safeParse(spec?.linux?.['cgroupsPath']).data ?? null;
};

/** Whether the container joins a user namespace, that of its pod. False of a spec that can't be read. */
export const joinsUsers = async (bundlePath: string, calls?: FileCalls): Promise<boolean> => {
  const spec = await readSpec(bundlePath, calls).catch(() => null);
  return namespacesSchema
    .parse(spec?.linux?.['namespaces'])
    .some(({ type, path }) => type === 'user' && path !== undefined);
};

/** Whether the OCI runtime has hooks to run once the container runs. Throws HostFailed for a bundle without a spec. */
export const hasPoststartHooks = async (bundlePath: string, calls?: FileCalls): Promise<boolean> => {
  const { hooks = {} } = await readSpec(bundlePath, calls);
  // OCI runtimes written in Go read names of any case.
  return Object.keys(hooks).some((name) => name.toLowerCase() === 'poststart');
};

const pageSizeOf = (page: unknown): string | undefined => pageSchema.safeParse(page).data?.pageSize;

/** Limits on top of those that stand there: what they do not name stays, within memory and the like too. */
const withLimits = (old: JsonObject, limits: OciResources): JsonObject => {
  const both = (key: 'memory' | 'cpu' | 'unified'): JsonObject =>
    limits[key] === undefined ? {} : { [key]: { ...partSchema.parse(old[key]), ...limits[key] } };
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
  if (linux === undefined || process === undefined)
    throw new FailureError('HostFailed', `The spec in ${bundlePath} is not one of a container.`);
  const changed = {
    ...spec,
    process: { ...process, oomScoreAdj },
    linux: { ...linux, resources: withLimits(partSchema.parse(linux['resources']) ?? {}, resources) },
  };
  await writeFileWhole(configPath(bundlePath), JSON.stringify(changed), configMode);
};
