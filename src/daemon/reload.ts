/**
 * Reload on SIGHUP: reads the configuration again, applies what can change while the daemon runs, and says of
 * everything else that differs that it takes a restart. A configuration that can't be used changes nothing. Must
 * apply only what has a place to be applied to; network and hosts.toml files are read anew without being asked.
 */
import type { Config } from '../config/config.ts';

export interface ReloadOptions {
  readonly initial: Config;
  /** Reads the files and flags that the daemon was started with; rejects with what is wrong with them. */
  readonly load: () => Promise<Config>;
  readonly log: {
    level: string;
    readonly info: (fields: object, message: string) => void;
    readonly warn: (fields: object, message: string) => void;
    readonly error: (fields: object, message: string) => void;
  };
  readonly setRegistryConfigDirs: (dirs: readonly string[]) => void;
}

type Table = Readonly<Record<string, unknown>>;

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Keys of two tables whose values differ, as a file has them: "serve.log_level", "runtime.handlers.crun". */
const changedIn = (before: Table, after: Table, path = ''): string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    const [was, is] = [before[key], after[key]];
    if (isTable(was) && isTable(is)) return changedIn(was, is, `${path}${key}.`);
    return JSON.stringify(was) === JSON.stringify(is) ? [] : [`${path}${key}`];
  });

/** Handlers whose base spec is in the same file as before and says something else. */
const changedBaseSpecs = (before: Config, after: Config): string[] =>
  after.runtime.handlers.flatMap(({ name, baseSpec }) => {
    const was = before.runtime.handlers.find((handler) => handler.name === name);
    if (was?.baseSpec === undefined || baseSpec === undefined) return [];
    return JSON.stringify(was.baseSpec) === JSON.stringify(baseSpec)
      ? []
      : [`runtime.handlers.${name}.base_runtime_spec`];
  });

const changedKeys = (before: Config, after: Config): readonly string[] => [
  ...new Set([...changedIn(before.written, after.written), ...changedBaseSpecs(before, after)]),
];

/** Reloads one after the other; the function never rejects. */
export function createReload({ initial, load, log, setRegistryConfigDirs }: ReloadOptions): () => Promise<void> {
  let current = initial;
  let working: Promise<void> = Promise.resolve();

  const apply: Readonly<Record<string, (config: Config) => void>> = {
    'serve.log_level': ({ serve }) => {
      log.level = serve.logLevel;
    },
    'images.registry_config_dirs': ({ images }) => setRegistryConfigDirs(images.registryConfigDirs),
  };

  async function reload(): Promise<void> {
    try {
      const next = await load();
      const changed = changedKeys(current, next);
      for (const key of changed) {
        const change = apply[key];
        change?.(next);
        if (change === undefined) log.warn({ key }, 'changed in the configuration; it takes a restart');
        else log.warn({ key }, 'changed in the configuration and applied');
      }
      current = next;
      if (changed.length === 0) log.info({}, 'configuration read again; nothing has changed');
    } catch (error) {
      log.error({ error }, 'the configuration cannot be used; the old one stays');
    }
  }

  return () => {
    working = working.then(reload);
    return working;
  };
}
