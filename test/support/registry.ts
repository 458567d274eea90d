/**
 * A real registry (Debian's docker-registry) for tests, with images put straight into its storage. It listens on
 * loopback, of a network namespace when it is given one.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Image, writeToRegistry } from '../../scripts/lib/image.ts';
import type { Owner } from './cleanup.ts';
import type { Certificates } from './images/fault-server.ts';
import type { Netns } from './netns.ts';
import { startProcess } from './process.ts';
import { tempDir } from './temp-dir.ts';

export interface Registry {
  /** 127.0.0.1:PORT */
  readonly host: string;
  readonly push: (repository: string, tag: string, image: Image) => Promise<void>;
  /**
   * Writes a directory of hosts.toml files that send every one of `names` (registry.example, …) to this registry, as
   * --registry-config-dir wants it; or to what is in front of it. Returns the directory's path.
   */
  readonly mirrorsFor: (names: readonly string[], front?: string) => Promise<string>;
  readonly stop: () => Promise<void>;
}

export interface RegistryOptions {
  readonly netns?: Netns;
  /** Further lines of the registry's YAML configuration (auth, …), at the top level. */
  readonly config?: string;
  /** For localhost, signed by themselves: it speaks TLS with them, and hosts.toml files name them. */
  readonly certificates?: Pick<Certificates, 'caPath' | 'keyPath'>;
}

export const startRegistry = async (owner: Owner, options: RegistryOptions = {}): Promise<Registry> => {
  const { certificates } = options;
  const tls =
    certificates === undefined ? '' : `, tls: {certificate: ${certificates.caPath}, key: ${certificates.keyPath}}`;
  const dir = await tempDir(owner);
  const storage = join(dir, 'storage');
  const configPath = join(dir, 'config.yml');
  await mkdir(storage);
  await writeFile(
    configPath,
    [
      'version: 0.1',
      'log: {level: info, formatter: json, accesslog: {disabled: true}}',
      `storage: {filesystem: {rootdirectory: ${storage}}, delete: {enabled: true}}`,
      `http: {addr: "127.0.0.1:0"${tls}}`,
      options.config ?? '',
    ].join('\n'),
  );
  const argv = ['docker-registry', 'serve', configPath];
  const registry = await startProcess(owner, options.netns?.inside(argv) ?? argv);
  const [, host = ''] = await registry.until(/listening on (127\.0\.0\.1:\d+)/);

  const mirrorsFor = async (names: readonly string[], front = host): Promise<string> => {
    const hosts = join(dir, 'hosts');
    const url = certificates === undefined ? `http://${front}` : `https://${front.replace('127.0.0.1', 'localhost')}`;
    const ca = certificates === undefined ? '' : `  ca = "${certificates.caPath}"\n`;
    for (const name of names) {
      await mkdir(join(hosts, name), { recursive: true });
      await writeFile(
        join(hosts, name, 'hosts.toml'),
        `server = "${url}"\n[host."${url}"]\n  capabilities = ["pull", "resolve"]\n${ca}`,
      );
    }
    return hosts;
  };
  return {
    host,
    push: (repository, tag, image) => writeToRegistry(storage, repository, tag, image),
    mirrorsFor,
    stop: () => registry.stop(),
  };
};
