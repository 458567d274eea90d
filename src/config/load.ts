/**
 * Loads the configuration: the file, the files of conf.d beside it in lexical order, the flags; each wins over those
 * before it. All problems of all files are told at once. Read at start and whenever the daemon is told to reload; a
 * result never changes.
 */
import { access, readdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { FailureError } from '../domain/model/errors.ts';
import { takesRuncOptions } from '../domain/model/runtime-handler.ts';
import { readBaseSpecs } from './base-specs.ts';
import { globExpression } from '../domain/values/glob.ts';
import { isObject, type JsonObject } from '../domain/values/json.ts';
import { matchesWildcard } from '../domain/values/wildcard.ts';
import { type Config, configOf } from './config.ts';
import { problemsOf } from './problems.ts';
import { BUILT_IN_HANDLERS, configSchema, type ParsedConfig, RUNC_SHIM_KEYS } from './schema.ts';

/** Read when no other file is named; it may be missing. */
const DEFAULT_CONFIG_PATH = '/etc/scribe/config.toml';

const DROP_IN_DIRECTORY = 'conf.d';
const FLAGS = 'the command line';
/** A longer path can't be bound to (unix(7), sun_path). */
const SOCKET_PATH_BYTES_MAX = 107;

/** What flags say; paths may be relative to the working directory. */
export interface ConfigOverrides {
  readonly socket?: string;
  readonly root?: string;
  readonly state?: string;
  readonly cniConfDir?: string;
  readonly cniBinDirs?: readonly string[];
  readonly registryConfigDirs?: readonly string[];
  /** Any of these turns NRI on. */
  readonly nriSocket?: string;
  readonly nriPluginDir?: string;
  readonly nriConfigDir?: string;
  /** OCI runtime of the default runtime handler. */
  readonly runtime?: string;
  readonly logLevel?: string;
}

type Table = JsonObject;

interface Layer {
  readonly source: string;
  readonly table: Table;
}

/** Tables are merged key by key; anything else of `over` takes the place of what was there. */
const merge = (under: Table, over: Table): Table =>
  Object.fromEntries([
    ...Object.entries(under),
    ...Object.entries(over).map(([key, value]) => {
      const before = under[key];
      return [key, isObject(before) && isObject(value) ? merge(before, value) : value] as const;
    }),
  ]);

/** No key takes a TOML date, and to the schema an object of any class would pass for a table. */
const withoutDates = (value: unknown): unknown => {
  if (value instanceof Date) return null;
  if (Array.isArray(value)) return value.map(withoutDates);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withoutDates(part)]));
};

const readLayer = async (path: string, problems: string[]): Promise<Layer> => {
  try {
    const table = withoutDates(parse(await readFile(path, 'utf8')));
    return { source: path, table: isObject(table) ? table : {} };
  } catch (error) {
    if (error instanceof TomlError) {
      const [message] = error.message.split('\n');
      problems.push(`${path}:${error.line}:${error.column}: ${message}`);
    } else problems.push(`${path} can't be read: ${(error as Error).message}`);
    return { source: path, table: {} };
  }
};

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

const dropInPaths = async (directory: string, problems: string[]): Promise<string[]> => {
  try {
    const names: string[] = await readdir(directory);
    const chosen = names.filter((name) => name.endsWith('.toml') && !name.startsWith('.'));
    return chosen.sort((a, b) => (a < b ? -1 : 1)).map((name) => join(directory, name));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') {
      problems.push(`${directory} can't be read: ${(error as Error).message}`);
    }
    return [];
  }
};

const exists = async (path: string): Promise<boolean> => {
  try {
    await access(path);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR';
  }
};

/** There while systemd is the init (sd_booted(3)). */
export const systemdRuns = (): Promise<boolean> => exists('/run/systemd/system');

const defined = (table: Table): Table =>
  Object.fromEntries(Object.entries(table).filter(([, value]) => value !== undefined));

/** Whoever says where plugins are wants them. */
const nriTable = (places: Table): Table => {
  const given = defined(places);
  return Object.keys(given).length === 0 ? {} : { enable: true, ...given };
};

const overridesTable = (overrides: ConfigOverrides, defaultHandler: string): Table => {
  const absolute = (path: string | undefined) => (path === undefined ? undefined : resolve(path));
  const allAbsolute = (paths: readonly string[] | undefined) => paths?.map((path) => resolve(path));
  const handler = overrides.runtime === undefined ? {} : { [defaultHandler]: { binary_name: overrides.runtime } };
  return {
    serve: defined({
      socket: absolute(overrides.socket),
      root: absolute(overrides.root),
      state: absolute(overrides.state),
      log_level: overrides.logLevel,
    }),
    cni: defined({ conf_dir: absolute(overrides.cniConfDir), bin_dirs: allAbsolute(overrides.cniBinDirs) }),
    nri: nriTable({
      socket: absolute(overrides.nriSocket),
      plugin_dir: absolute(overrides.nriPluginDir),
      config_dir: absolute(overrides.nriConfigDir),
    }),
    images: defined({ registry_config_dirs: allAbsolute(overrides.registryConfigDirs) }),
    runtime: { handlers: handler },
  };
};

/** What no single key can tell. */
const contradictions = (config: Config): string[] => {
  const problems: string[] = [];
  const { serve, nri, runtime, streaming, metrics } = config;
  const handlers = runtime.handlers.map((handler) => handler.name);
  if (!handlers.includes(runtime.defaultHandler)) {
    const named = `runtime.default_runtime_handler is "${runtime.defaultHandler}"`;
    problems.push(
      `${named}, but there is no [runtime.handlers.${runtime.defaultHandler}]; there are ${handlers.join(', ')}`,
    );
  }
  if (serve.rootDir === serve.stateDir) problems.push(`serve.root and serve.state are both ${serve.rootDir}`);
  if (Buffer.byteLength(serve.socketPath) > SOCKET_PATH_BYTES_MAX) {
    problems.push(
      `serve.socket would be ${serve.socketPath}, longer than the ${SOCKET_PATH_BYTES_MAX} bytes a socket may have`,
    );
  }
  if (streaming.tls !== null && (streaming.tls.certPath === '') !== (streaming.tls.keyPath === '')) {
    problems.push('streaming.tls_cert and streaming.tls_key go together, but only one is set');
  }
  if (nri.defaultValidator.enable && !nri.enabled)
    problems.push(
      'nri.default_validator.enable is true, but NRI is off: set nri.enable too, or required plugins are not',
    );
  for (const { name, url, key } of config.journal.witnesses)
    if (url === '' || key === '') problems.push(`journal.witnesses.${name} needs both, url and key`);
  const { address } = metrics;
  if (streaming.port !== 0 && address?.port === streaming.port && address.host === streaming.address)
    problems.push(`streaming and metrics.address are both to listen on port ${streaming.port} of ${streaming.address}`);
  return problems;
};

/** What no single key of a handler can tell. */
const handlerContradictions = ([name, handler]: readonly [string, ParsedConfig['runtime']['handlers'][string]]) => {
  const table = `runtime.handlers.${name}`;
  const type = handler.runtime_type;
  const problems: string[] = [];
  if (takesRuncOptions({ runtimeType: type })) {
    if (handler.options !== undefined)
      problems.push(`${table}.options is for other shims than those of ${type}; its options are keys of [${table}]`);
  } else {
    const strayed = RUNC_SHIM_KEYS.filter((key) => handler[key] !== undefined);
    for (const key of strayed) problems.push(`${table}.${key} is for io.containerd.runc shims, and not for ${type}`);
    if (handler.pods_per_shim > 1)
      problems.push(`${table}.pods_per_shim is for io.containerd.runc shims, and ${type} has one for each pod`);
  }
  if (handler.pods_per_shim > 1 && handler.sandboxer === 'shim')
    problems.push(`${table}.pods_per_shim does not go with sandboxer = "shim": such a shim holds one pod`);
  for (const key of ['TypeUrl', 'ConfigPath'] as const) {
    const value = handler.options?.[key];
    if (value !== undefined && typeof value !== 'string')
      problems.push(`${table}.options.${key} must be text in quotes`);
  }
  if (handler.privileged_without_host_devices_all_devices_allowed && !handler.privileged_without_host_devices)
    problems.push(
      `${table}.privileged_without_host_devices_all_devices_allowed goes with privileged_without_host_devices`,
    );
  return problems;
};

/** What a shim is told can't be a digest. */
export const sealContradictions = ({ audit, runtime }: Pick<ParsedConfig, 'audit' | 'runtime'>): string[] =>
  Object.entries(runtime.handlers).flatMap(([name, handler]) =>
    (['pod_annotations', 'container_annotations'] as const).flatMap((key) =>
      handler[key].flatMap((told) => {
        const both = audit.seal.annotations.find(
          (sealed) => matchesWildcard(sealed, told) || globExpression(told)?.test(sealed) === true,
        );
        const what = `audit.seal.annotations has "${both}" and runtime.handlers.${name}.${key} "${told}"`;
        return both === undefined ? [] : [`${what}: what shims are told can't be sealed; take it out of one of them`];
      }),
    ),
  );

/** kubelet is told one driver, and makes pods' cgroups by it: the default handler must not be said to have both. */
const cgroupContradictions = ({ cgroup_driver, default_runtime_handler, handlers }: ParsedConfig['runtime']) => {
  const systemd = handlers[default_runtime_handler]?.systemd_cgroup;
  if (cgroup_driver === 'auto' || systemd === undefined || systemd === (cgroup_driver === 'systemd')) return [];
  const key = `runtime.handlers.${default_runtime_handler}.systemd_cgroup`;
  return [
    `runtime.cgroup_driver is "${cgroup_driver}", but ${key} of the default handler is ${systemd}; leave one of them out`,
  ];
};

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) deepFreeze(part);
    Object.freeze(value);
  }
  return value;
};

const invalid = (problems: readonly string[]): FailureError =>
  new FailureError(
    'InvalidField',
    `The configuration can't be used:${problems.map((problem) => `\n- ${problem}`).join('')}`,
  );

/**
 * The configuration, complete and frozen. `path` names the file; without it DEFAULT_CONFIG_PATH is read if it is there.
 * Rejects with FailureError InvalidField that lists every problem: unreadable files, TOML errors, misspelt keys,
 * values out of bounds, contradictions.
 */
export const loadConfig = async ({
  path,
  overrides = {},
  runsSystemd = systemdRuns,
}: {
  readonly path?: string | undefined;
  readonly overrides?: ConfigOverrides;
  /** Whether systemd is this machine's init. */
  readonly runsSystemd?: () => Promise<boolean>;
}): Promise<Config> => {
  const problems: string[] = [];
  const mainPath = resolve(path ?? DEFAULT_CONFIG_PATH);
  const mainPaths = path !== undefined || (await exists(mainPath)) ? [mainPath] : [];
  const files = [...mainPaths, ...(await dropInPaths(join(dirname(mainPath), DROP_IN_DIRECTORY), problems))];
  const layers = await Promise.all(files.map((file) => readLayer(file, problems)));
  // Every key has a default, so each file alone is a whole configuration: that tells which file is wrong.
  for (const { source, table } of layers) {
    const { error } = configSchema.safeParse(table);
    if (error) problems.push(...problemsOf(error).map((problem) => `${source}: ${problem}`));
  }
  if (problems.length > 0) throw invalid(problems);

  // A file that adds a handler does not take the built-in one away.
  const builtIn: Table = { runtime: { handlers: BUILT_IN_HANDLERS } };
  const fromFiles = layers.reduce((merged, { table }) => merge(merged, table), builtIn);
  const { default_runtime_handler: defaultHandler } = configSchema.parse(fromFiles).runtime;
  const flags = overridesTable(overrides, defaultHandler);
  const flagsAlone = configSchema.safeParse(flags);
  if (!flagsAlone.success) throw invalid(problemsOf(flagsAlone.error).map((problem) => `${FLAGS}: ${problem}`));
  const parsed = configSchema.parse(merge(fromFiles, flags));
  const baseSpecs = await readBaseSpecs(parsed.runtime, problems);
  const config = configOf(parsed, files, { baseSpecs, systemdRuns: await runsSystemd() });
  const ofHandlers = Object.entries(parsed.runtime.handlers).flatMap(handlerContradictions);
  const contradicting = [
    ...problems,
    ...contradictions(config),
    ...cgroupContradictions(parsed.runtime),
    ...sealContradictions(parsed),
    ...ofHandlers,
  ];
  if (contradicting.length > 0) throw invalid(contradicting);
  return deepFreeze(config);
};
