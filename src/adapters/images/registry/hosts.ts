/**
 * Which servers stand for a registry: hosts.toml as containerd documents it (docs/hosts.md there), Docker's directories
 * of .crt, .cert and .key files, and the registry itself where nothing is configured. Files are read anew for each
 * pull, so that a change takes effect at once. Plain http is spoken only where a file says http:// or to loopback.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { parse, type TomlTable } from 'smol-toml';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import { errorCodeOf } from '../../../platform/linux/syscalls.ts';
import { authorityProblem, clientPairProblem } from './pem.ts';

export type HostCapability = 'pull' | 'resolve' | 'push';

/** Certificates and keys in PEM. */
export interface TlsMaterial {
  readonly ca: readonly string[];
  readonly clientPairs: readonly { readonly cert: string; readonly key: string }[];
  readonly skipVerify: boolean;
}

/** One server to ask, and how. */
export interface Endpoint {
  /** host or host:port. */
  readonly host: string;
  /** Without a slash at the end; API paths are appended: "https://mirror.example/v2". */
  readonly base: string;
  readonly capabilities: ReadonlySet<HostCapability>;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly tls: TlsMaterial;
  readonly dialTimeoutMs: number;
  /** The registry a mirror is asked on behalf of (query parameter ns); null for the registry itself. */
  readonly namespace: string | null;
}

const DIAL_TIMEOUT_MS = 30_000;
const CONFIG_BYTES_MAX = 1024 * 1024;
const HOSTS_FILE = 'hosts.toml';
const DEFAULT_DIRECTORY = '_default';
const everything: ReadonlySet<HostCapability> = new Set(['pull', 'resolve', 'push']);
const noTls: TlsMaterial = { ca: [], clientPairs: [], skipVerify: false };

/** What hosts.toml says of a server. */
const SERVER_KEYS: ReadonlySet<string> = new Set([
  'capabilities',
  'ca',
  'client',
  'skip_verify',
  'header',
  'override_path',
  'dial_timeout',
]);
const FILE_KEYS: ReadonlySet<string> = new Set([...SERVER_KEYS, 'server', 'host']);

type Table = TomlTable;

/** True for hosts (with or without port) that can only be this machine. */
export const isLoopback = (host: string): boolean =>
  /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[(?:::1|(?:0{1,4}:){7}0{0,3}1)\])(?::\d{1,5})?$/i.test(host);

/** Docker Hub's API is at another name than its images. */
export const serverOf = (registryHost: string): string =>
  registryHost === 'docker.io' ? 'registry-1.docker.io' : registryHost;

const badConfig = (path: string, what: string): FailureError =>
  new FailureError('HostFailed', `The registry configuration ${path} can't be used: ${what}.`);

const readBounded = async (path: string): Promise<string> => {
  const { size } = await stat(path);
  if (size > CONFIG_BYTES_MAX) throw badConfig(path, `it is larger than ${CONFIG_BYTES_MAX} bytes`);
  return await readFile(path, 'utf8');
};

const readIfThere = async (path: string): Promise<string | null> => {
  try {
    return await readBounded(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
};

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Go's form of a duration: "1.5s", "1m30s". null for anything else. */
export const parseDuration = (text: string): number | null => {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return null;
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (unitMs[unit ?? ''] ?? 0), 0);
};

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : [value]);

interface ConfigFile {
  readonly path: string;
  readonly directory: string;
}

const textsOf = (file: ConfigFile, table: Table, key: string): readonly string[] => {
  const values = table[key] === undefined ? [] : asList(table[key]);
  if (!values.every((value) => typeof value === 'string')) throw badConfig(file.path, `${key} is not text`);
  return values;
};

const booleanOf = (file: ConfigFile, table: Table, key: string): boolean => {
  const value = table[key] ?? false;
  if (typeof value !== 'boolean') throw badConfig(file.path, `${key} is neither true nor false`);
  return value;
};

const pathFrom = (file: ConfigFile, path: string): string => (isAbsolute(path) ? path : join(file.directory, path));

const readAuthority = async (from: string, path: string): Promise<string> => {
  const text = await readBounded(path);
  const problem = authorityProblem({ path, text });
  if (problem !== null) throw badConfig(from, problem);
  return text;
};

const readPair = async (
  from: string,
  certPath: string,
  keyPath: string,
): Promise<TlsMaterial['clientPairs'][number]> => {
  const [cert, key] = [await readBounded(certPath), await readBounded(keyPath)];
  const problem = clientPairProblem({ path: certPath, text: cert }, { path: keyPath, text: key });
  if (problem !== null) throw badConfig(from, problem);
  return { cert, key };
};

const readClientPair = (file: ConfigFile, value: unknown): Promise<TlsMaterial['clientPairs'][number]> => {
  const [certPath, keyPath] = asList(value);
  const isPair = typeof certPath === 'string' && (keyPath === undefined || typeof keyPath === 'string');
  if (!isPair) throw badConfig(file.path, 'client is neither a file nor pairs of files');
  return readPair(file.path, pathFrom(file, certPath), pathFrom(file, keyPath || certPath));
};

const readTls = async (file: ConfigFile, table: Table): Promise<TlsMaterial> => ({
  ca: await Promise.all(textsOf(file, table, 'ca').map((path) => readAuthority(file.path, pathFrom(file, path)))),
  clientPairs: await Promise.all(
    (table.client === undefined ? [] : asList(table.client)).map((value) => readClientPair(file, value)),
  ),
  skipVerify: booleanOf(file, table, 'skip_verify'),
});

const readHeaders = (file: ConfigFile, table: Table): Endpoint['headers'] => {
  const header = table.header ?? {};
  if (!isTable(header)) throw badConfig(file.path, 'header is not a table');
  return Object.fromEntries(Object.keys(header).map((name) => [name, textsOf(file, header, name)]));
};

const readCapabilities = (file: ConfigFile, table: Table): ReadonlySet<HostCapability> => {
  const words = textsOf(file, table, 'capabilities');
  const unknown = words.find((word) => !everything.has(word as HostCapability));
  if (unknown !== undefined) throw badConfig(file.path, `there is no capability ${JSON.stringify(unknown)}`);
  return words.length === 0 ? everything : new Set(words as HostCapability[]);
};

const readDialTimeout = (file: ConfigFile, table: Table): number => {
  if (table.dial_timeout === undefined) return DIAL_TIMEOUT_MS;
  const timeoutMs = typeof table.dial_timeout === 'string' ? parseDuration(table.dial_timeout) : null;
  if (timeoutMs === null) throw badConfig(file.path, 'dial_timeout is not a duration like "5s"');
  return timeoutMs === 0 ? DIAL_TIMEOUT_MS : timeoutMs;
};

const parseBase = (file: ConfigFile, address: string, overridePath: boolean): { host: string; base: string } => {
  const withScheme = /^https?:\/\//i.test(address) ? address : `https://${address}`;
  if (!URL.canParse(withScheme))
    throw badConfig(file.path, `${JSON.stringify(address)} is not the address of a server`);
  const { protocol, host, pathname } = new URL(withScheme);
  const path = pathname.replace(/\/+$/, '');
  const apiPath = overridePath || path.endsWith('/v2') ? path : `${path}/v2`;
  return { host, base: `${protocol}//${host}${apiPath}` };
};

const readEndpoint = async (file: ConfigFile, address: string, table: Table, namespace: string): Promise<Endpoint> => {
  const { host, base } = parseBase(file, address, booleanOf(file, table, 'override_path'));
  return {
    host,
    base,
    capabilities: readCapabilities(file, table),
    headers: readHeaders(file, table),
    tls: await readTls(file, table),
    dialTimeoutMs: readDialTimeout(file, table),
    namespace: host === serverOf(namespace) ? null : namespace,
  };
};

const parseToml = (file: ConfigFile, text: string): Table => {
  try {
    return parse(text);
  } catch (error) {
    throw badConfig(file.path, error instanceof Error ? error.message.split('\n', 1).join('') : 'it is not TOML');
  }
};

const upstream = (registryHost: string, tls: TlsMaterial): Endpoint => {
  const host = serverOf(registryHost);
  const isPlain = isLoopback(host) && !host.endsWith(':443') && tls === noTls;
  return {
    host,
    base: `${isPlain ? 'http' : 'https'}://${host}/v2`,
    capabilities: everything,
    headers: {},
    tls,
    dialTimeoutMs: DIAL_TIMEOUT_MS,
    namespace: null,
  };
};

const readHostsFile = async (file: ConfigFile, text: string, registryHost: string): Promise<readonly Endpoint[]> => {
  const table = parseToml(file, text);
  const hosts = table.host ?? {};
  if (!isTable(hosts)) throw badConfig(file.path, 'host is not a table of servers');
  const mirrors = await Promise.all(
    Object.entries(hosts).map(([address, fields]) => {
      if (!isTable(fields)) throw badConfig(file.path, `host.${JSON.stringify(address)} is not a table`);
      return readEndpoint(file, address, fields, registryHost);
    }),
  );
  if (table.server === undefined) return [...mirrors, upstream(registryHost, noTls)];
  if (typeof table.server !== 'string') throw badConfig(file.path, 'server is not text');
  return [...mirrors, await readEndpoint(file, table.server, table, registryHost)];
};

/** Docker's form: *.crt are authorities, *.cert with *.key client certificates. */
const readCertificates = async (directory: string): Promise<TlsMaterial> => {
  const names = (await readdir(directory)).toSorted();
  const path = (name: string): string => join(directory, name);
  const authorities = names.filter((name) => name.endsWith('.crt'));
  const ca = await Promise.all(authorities.map((name) => readAuthority(directory, path(name))));
  const certs = names.filter((name) => name.endsWith('.cert'));
  const clientPairs = await Promise.all(
    certs.map((name) => readPair(directory, path(name), path(name.replace(/cert$/, 'key')))),
  );
  return ca.length + clientPairs.length === 0 ? noTls : { ca, clientPairs, skipVerify: false };
};

const isDirectory = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
};

/** "registry.example:5000" may be a directory of that name or, where colons are unwelcome, registry.example_5000_. */
const directoryNames = (registryHost: string): readonly string[] => {
  const underscored = registryHost.replace(/:(\d+)$/, '_$1_');
  return [...new Set([underscored, registryHost, DEFAULT_DIRECTORY])];
};

const findDirectory = async (roots: readonly string[], registryHost: string): Promise<string | null> => {
  const candidates = roots.flatMap((root) => directoryNames(registryHost).map((name) => join(root, name)));
  for (const candidate of candidates) if (await isDirectory(candidate)) return candidate;
  return null;
};

/**
 * The servers that the directory of one registry names, in order. Throws FailureError HostFailed for a configuration
 * that can't be used.
 */
export const readRegistryDirectory = async (directory: string, registryHost: string): Promise<readonly Endpoint[]> => {
  const path = join(directory, HOSTS_FILE);
  try {
    const text = await readIfThere(path);
    if (text !== null) return await readHostsFile({ path, directory }, text, registryHost);
    return [upstream(registryHost, await readCertificates(directory))];
  } catch (error) {
    if (error instanceof FailureError) throw error;
    throw badConfig(directory, messageOf(error));
  }
};

/** What stands in the hosts.toml of a directory and is read by nobody, such as a key that is misspelt. */
export const unknownHostsKeys = async (directory: string): Promise<readonly { path: string; key: string }[]> => {
  const path = join(directory, HOSTS_FILE);
  const table = parseToml({ path, directory }, (await readIfThere(path)) ?? '');
  const unknownIn = (fields: Table, known: ReadonlySet<string>): string[] =>
    Object.keys(fields).filter((key) => !known.has(key));
  const hosts = isTable(table.host) ? Object.values(table.host).filter(isTable) : [];
  const keys = [...unknownIn(table, FILE_KEYS), ...hosts.flatMap((host) => unknownIn(host, SERVER_KEYS))];
  return keys.map((key) => ({ path, key }));
};

/**
 * The servers to ask for images of `registryHost`, in order; the last is the registry itself or what is configured in
 * its place. `roots` are directories of hosts.toml directories, the first that knows the registry counts. Throws
 * FailureError HostFailed for a configuration that can't be used.
 */
export const findEndpoints = async (roots: readonly string[], registryHost: string): Promise<readonly Endpoint[]> => {
  const directory = await findDirectory(roots, registryHost);
  return directory === null ? [upstream(registryHost, noTls)] : readRegistryDirectory(directory, registryHost);
};
