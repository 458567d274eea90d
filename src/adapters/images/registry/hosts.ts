/**
 * Which servers stand for a registry: hosts.toml as containerd documents it (docs/hosts.md there), Docker's directories
 * of .crt, .cert and .key files, and the registry itself where nothing is configured. Files are read anew for each
 * pull, so that a change takes effect at once. Plain http is spoken only where a file says http:// or to loopback.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import type * as Parser from './hosts-file.ts';
import type { HostCapability, SaidServer, ServerWords } from './hosts-file.ts';
import { authorityProblem, clientPairProblem } from './pem.ts';

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

interface ConfigFile {
  readonly path: string;
  readonly directory: string;
}

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
  otherwise = 'where they are two files, write client = [["cert.pem", "key.pem"]]',
): Promise<TlsMaterial['clientPairs'][number]> => {
  const [cert, key] = [await readBounded(certPath), await readBounded(keyPath)];
  const problem = clientPairProblem({ path: certPath, text: cert }, { path: keyPath, text: key }, otherwise);
  if (problem !== null) throw badConfig(from, problem);
  return { cert, key };
};

const readClientPair = (
  file: ConfigFile,
  [certPath = '', keyPath]: readonly string[],
): Promise<TlsMaterial['clientPairs'][number]> =>
  readPair(file.path, pathFrom(file, certPath), pathFrom(file, keyPath || certPath));

/** One after the other, so that of several files that cannot be used the first one is named. */
const oneByOne = async <T, R>(items: readonly T[], read: (item: T) => Promise<R>): Promise<R[]> => {
  const all: R[] = [];
  for (const item of items) all.push(await read(item));
  return all;
};

const readTls = async (
  file: ConfigFile,
  { ca, client, skip_verify: skipVerify }: ServerWords,
): Promise<TlsMaterial> => ({
  ca: await oneByOne(ca, (path) => readAuthority(file.path, pathFrom(file, path))),
  clientPairs: await oneByOne(client, (pair) => readClientPair(file, pair)),
  skipVerify,
});

const parseBase = (file: ConfigFile, address: string, overridePath: boolean): { host: string; base: string } => {
  const withScheme = /^https?:\/\//i.test(address) ? address : `https://${address}`;
  if (!URL.canParse(withScheme))
    throw badConfig(file.path, `${JSON.stringify(address)} is not the address of a server`);
  const { protocol, host, pathname } = new URL(withScheme);
  const path = pathname.replace(/\/+$/, '');
  const apiPath = overridePath || path.endsWith('/v2') ? path : `${path}/v2`;
  return { host, base: `${protocol}//${host}${apiPath}` };
};

const readEndpoint = async (file: ConfigFile, [address, words]: SaidServer, namespace: string): Promise<Endpoint> => {
  const { host, base } = parseBase(file, address, words.override_path);
  return {
    host,
    base,
    capabilities: words.capabilities,
    headers: words.header,
    tls: await readTls(file, words),
    dialTimeoutMs: words.dial_timeout || DIAL_TIMEOUT_MS,
    namespace: host === serverOf(namespace) ? null : namespace,
  };
};

/** Of most registries there is no such file, and then a pull does not wait for what reads one. */
const readWords = async <T>(path: string, read: (parser: typeof Parser) => T): Promise<T> => {
  const parser = await import('./hosts-file.ts');
  try {
    return read(parser);
  } catch (error) {
    throw badConfig(path, messageOf(error));
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

/** The registry itself, with what a file that names no server says beside its mirrors. It can do everything, as containerd has it. */
const readUpstream = async (file: ConfigFile, words: ServerWords, registryHost: string): Promise<Endpoint> => {
  const { ca, client, skip_verify: skipVerify, header: headers, dial_timeout: dialTimeoutMs } = words;
  const saysTls = ca.length > 0 || client.length > 0 || skipVerify;
  const plain = upstream(registryHost, saysTls ? await readTls(file, words) : noTls);
  return { ...plain, headers, dialTimeoutMs: dialTimeoutMs || DIAL_TIMEOUT_MS };
};

/** What is said of how a server is asked, in a form that can be compared. */
const wordsOf = ({ headers, tls }: Pick<Endpoint, 'headers' | 'tls'>): string => JSON.stringify([headers, tls]);
const noWords = wordsOf({ headers: {}, tls: noTls });

/**
 * Many files name one server as the registry and as its only host: asked twice, it would fail twice, and the second time without the
 * certificates that only the host's part names.
 */
const isRepeated = (last: Endpoint, mirror: Endpoint | undefined): boolean =>
  mirror?.base === last.base &&
  mirror.capabilities.has('pull') &&
  mirror.capabilities.has('resolve') &&
  [noWords, wordsOf(mirror)].includes(wordsOf(last));

const readHostsFile = async (file: ConfigFile, text: string, registryHost: string): Promise<readonly Endpoint[]> => {
  const { hosts, server, own } = await readWords(file.path, ({ parseHostsFile }) => parseHostsFile(text));
  const mirrors = await Promise.all(hosts.map((host) => readEndpoint(file, host, registryHost)));
  const last = await (server ? readEndpoint(file, [server, own], registryHost) : readUpstream(file, own, registryHost));
  // Only where nobody is between: what the last one says of an image counts.
  return isRepeated(last, mirrors.at(-1)) ? mirrors : [...mirrors, last];
};

/** Docker's form: *.crt are authorities, *.cert with *.key client certificates. As containerd has it, a *.cert without *.key is both. */
const readCertificates = async (directory: string): Promise<TlsMaterial> => {
  const entries = await readdir(directory, { withFileTypes: true });
  const names = entries.flatMap((entry) => (entry.isDirectory() ? [] : entry.name)).toSorted();
  const path = (name: string): string => join(directory, name);
  const authorities = names.filter((name) => name.endsWith('.crt'));
  const ca = await oneByOne(authorities, (name) => readAuthority(directory, path(name)));
  const certs = names.filter((name) => name.endsWith('.cert'));
  const clientPairs = await oneByOne(certs, (name) => {
    const keyName = name.replace(/cert$/, 'key');
    return names.includes(keyName)
      ? readPair(directory, path(name), path(keyName))
      : readPair(directory, path(name), path(name), `it is looked for in ${keyName} beside it, too`);
  });
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
    if (text) return await readHostsFile({ path, directory }, text, registryHost);
    return [upstream(registryHost, await readCertificates(directory))];
  } catch (error) {
    if (error instanceof FailureError) throw error;
    throw badConfig(directory, messageOf(error));
  }
};

/** What stands in the hosts.toml of a directory and is read by nobody, such as a key that is misspelt. */
export const unknownHostsKeys = async (directory: string): Promise<readonly { path: string; key: string }[]> => {
  const path = join(directory, HOSTS_FILE);
  const text = (await readIfThere(path)) ?? '';
  const keys = await readWords(path, ({ unknownKeysIn }) => unknownKeysIn(text));
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
