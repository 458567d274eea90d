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

type Values = Readonly<Record<string, unknown>>;

/** Names of the parts of two configurations that differ: "serve.logLevel". */
const changedKeys = (before: Config, after: Config): string[] =>
  Object.entries(before).flatMap(([table, values]: [string, unknown]) => {
    const now: unknown = after[table as keyof Config];
    // A list of files says where it was read, not what it says.
    if (table === 'files') return [];
    return Object.entries(values as Values).flatMap(([key, value]) =>
      JSON.stringify(value) === JSON.stringify((now as Values)[key]) ? [] : [`${table}.${key}`],
    );
  });

/** Reloads one after the other; the function never rejects. */
export function createReload({ initial, load, log, setRegistryConfigDirs }: ReloadOptions): () => Promise<void> {
  let current = initial;
  let working: Promise<void> = Promise.resolve();

  const apply: Readonly<Record<string, (config: Config) => void>> = {
    'serve.logLevel': ({ serve }) => {
      log.level = serve.logLevel;
    },
    'images.registryConfigDirs': ({ images }) => setRegistryConfigDirs(images.registryConfigDirs),
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
      log.error({ error }, 'the configuration can not be used; the old one stays');
    }
  }

  return () => {
    working = working.then(reload);
    return working;
  };
}
