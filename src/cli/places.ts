/**
 * Where a node's things are, for commands: options say it, else the configuration does. A command that is told all it
 * needs by options reads no configuration, so that a broken one does not hide the journal.
 */
import { access, constants, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { ConfigOverrides } from '../config/load.ts';
import { messageOf } from '../domain/model/errors.ts';
import { failure, type Option, type Values } from './command.ts';

export const configOption = {
  value: 'FILE',
  about: 'The configuration file, instead of /etc/scribe/config.toml.',
} as const satisfies Option;

export const rootOption = {
  value: 'DIR',
  about: 'The root directory: the journal is DIR/journal.db. Wins over the configuration.',
} as const satisfies Option;

export const socketOption = {
  value: 'PATH',
  about: "The daemon's socket. Wins over the configuration.",
} as const satisfies Option;

export const jsonOption = {
  about: 'Prints JSON, one object per line, instead of what is meant for people.',
} as const satisfies Option;

/** Options of `serve`, and of whatever looks at a node as `serve` would. */
export const nodeOptions = {
  config: configOption,
  socket: { value: 'PATH', about: 'The socket that kubelet and crictl connect to.' },
  root: { value: 'DIR', about: 'Directory of all that outlives a reboot: the journal, images, containers.' },
  state: { value: 'DIR', about: 'Directory of all that a reboot ends: sockets, bundles, mounts.' },
  'cni-conf-dir': { value: 'DIR', about: 'Where CNI network configurations are.' },
  'cni-bin-dir': { value: 'DIR', repeatable: true, about: 'Where CNI plugins are.' },
  'registry-config-dir': {
    value: 'DIR',
    repeatable: true,
    about: 'A directory with a directory for each registry, which holds its hosts.toml.',
  },
  'nri-socket': { value: 'PATH', about: 'Where NRI plugins connect to; NRI is on then, whatever the file says.' },
  'nri-plugin-dir': { value: 'DIR', about: 'Where NRI plugins are that are launched; NRI is on then.' },
  'nri-config-dir': { value: 'DIR', about: 'Where the configurations of launched NRI plugins are; NRI is on then.' },
  runtime: { value: 'NAME', about: 'The OCI runtime of the default runtime handler, by name or path: runc, crun.' },
} as const;

/** The flags as the configuration takes them. */
export const overridesOf = (values: Values<typeof nodeOptions>): ConfigOverrides => {
  const all = {
    socket: values.socket,
    root: values.root,
    state: values.state,
    cniConfDir: values['cni-conf-dir'],
    cniBinDirs: values['cni-bin-dir'],
    registryConfigDirs: values['registry-config-dir'],
    nriSocket: values['nri-socket'],
    nriPluginDir: values['nri-plugin-dir'],
    nriConfigDir: values['nri-config-dir'],
    runtime: values.runtime,
  };
  // What is not given must be absent: the configuration's own value then stands.
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
};

const configuredServe = async (path: string | undefined) => {
  const { loadConfig } = await import('../config/load.ts');
  return (await loadConfig({ path })).serve;
};

export interface PlaceValues {
  readonly config?: string;
  readonly root?: string;
  readonly socket?: string;
}

export const rootOf = async ({ root, config }: PlaceValues): Promise<string> =>
  root === undefined ? (await configuredServe(config)).rootDir : resolve(root);

export const journalOf = (rootDir: string): string => join(rootDir, 'journal.db');

/** For a command that reads the journal of its root directory and no other. */
export const readsInRoot = async (values: PlaceValues): Promise<readonly string[]> => [await rootOf(values)];

const isFile = async (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isFile(),
    () => false,
  );

/** The journal of a root, for a command that needs one; a sentence says why there is none. */
export const readableJournal = async (rootDir: string): Promise<string> => {
  const path = journalOf(rootDir);
  try {
    await access(path, constants.R_OK);
    // SQLite would call that a disk that fails.
    if ((await stat(path)).isDirectory()) throw new Error('it is a directory');
    return path;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES') throw failure(`You may not read the journal ${path}; are you root?`, error);
    if (code === 'ENOTDIR' && (await isFile(rootDir)))
      throw failure(
        `${rootDir} is a file: --root takes the directory that the journal is in, ${dirname(rootDir)}.`,
        error,
      );
    if (code === 'ENOENT' || code === 'ENOTDIR')
      throw failure(`There is no journal at ${path}. Name its root directory with --root.`, error);
    throw failure(`The journal ${path} cannot be read: ${messageOf(error)}.`, error);
  }
};

export const socketOf = async ({ socket, config }: PlaceValues): Promise<string> =>
  socket === undefined ? (await configuredServe(config)).socketPath : resolve(socket);
