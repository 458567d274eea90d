/**
 * Reload, on SIGHUP or when somebody asks: reads the configuration again, has the journal say what of it is another one and
 * who wanted it, and then applies what can change while the daemon runs; everything else that differs takes a restart. A
 * configuration that can't be used, or that the journal has no room for, changes nothing. Must apply only what has a place
 * to be applied to; network and hosts.toml files are read anew without being asked.
 */
import type { Config } from '../config/config.ts';
import { sealContradictions } from '../config/load.ts';
import type { AuditPolicy, ConfigChange, ConfigReload } from '../domain/model/audit-policy.ts';
import { type Failure, FailureError, messageOf } from '../domain/model/errors.ts';
import { refused, type Refused, type Result, succeeded } from '../domain/model/result.ts';
import { isObject, type JsonObject } from '../domain/values/json.ts';
import type { CallOptions, SubmitCall } from '../engine/ports.ts';

export interface ReloadOptions {
  readonly initial: Config;
  /** Reads the files and flags that the daemon was started with; rejects with what is wrong with them. */
  readonly load: () => Promise<Config>;
  readonly submit: SubmitCall;
  readonly log: {
    level: string;
    readonly info: (fields: object, message: string) => void;
    readonly warn: (fields: object, message: string) => void;
    readonly error: (fields: object, message: string) => void;
  };
  readonly setRegistryConfigDirs: (dirs: readonly string[]) => void;
  readonly setAuditPolicy: (policy: AuditPolicy) => void;
}

/** What differs from what is in force: what is applied, and then what takes a restart, in the order of the file; never rejects. */
export type Reload = (
  asked: CallOptions,
  by?: Pick<ConfigReload, 'signal'>,
) => Promise<Result<readonly ConfigChange[]>>;

/** A configuration of this size is nobody's: then the record says only which keys differ. */
const POLICY_CHARS_MAX = 64 * 1024;

type Values = Pick<ConfigChange, 'was' | 'is'>;

/** Keys of two tables whose values differ, as a file has them: "serve.log_level", "runtime.handlers.crun". */
const changedIn = (before: JsonObject, after: JsonObject, path = ''): readonly (readonly [string, Values])[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    const [was, is] = [before[key], after[key]];
    if (isObject(was) && isObject(is)) return changedIn(was, is, `${path}${key}.`);
    return JSON.stringify(was) === JSON.stringify(is) ? [] : [[`${path}${key}`, { was, is }] as const];
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

const changedKeys = (before: Config, after: Config): ReadonlyMap<string, Values> =>
  new Map([
    ...changedBaseSpecs(before, after).map((key) => [key, {}] as const),
    ...changedIn(before.written, after.written),
  ]);

const isOfPolicy = (key: string): boolean => key.startsWith('audit.');

const shownValues = (key: string, values: Values): Values =>
  isOfPolicy(key) && JSON.stringify(values).length <= POLICY_CHARS_MAX ? values : {};

const failureOf = (error: unknown): Failure =>
  error instanceof FailureError ? error.failure : { reason: 'Bug', message: messageOf(error) };

/** Reloads one after the other. */
export function createReload(options: ReloadOptions): Reload {
  const { initial, load, submit, log } = options;
  let current = initial;
  let working: Promise<unknown> = Promise.resolve();

  /** Where a key is applied; null: it takes a restart. */
  const place = (key: string): ((config: Config) => void) | null => {
    if (isOfPolicy(key)) return ({ audit }) => options.setAuditPolicy(audit);
    switch (key) {
      case 'serve.log_level':
        return ({ serve }) => {
          log.level = serve.logLevel;
        };
      case 'images.registry_config_dirs':
        return ({ images }) => options.setRegistryConfigDirs(images.registryConfigDirs);
      default:
        return null;
    }
  };

  /** What is in force is the newest configuration where it is applied, and the first one in all else, however often it was read. */
  const changesTo = (after: Config): readonly ConfigChange[] =>
    [true, false].flatMap((applied) =>
      [...changedKeys(applied ? current : initial, after)]
        .filter(([key]) => (place(key) !== null) === applied)
        .map(([key, values]) => ({ key, applied, ...shownValues(key, values) })),
    );

  /** The policy has to go with the handlers that are in force, which stay as they are until a restart. */
  async function read(): Promise<Result<Config>> {
    try {
      const next = await load();
      const [problem] = sealContradictions({ audit: next.written.audit, runtime: initial.written.runtime });
      if (problem === undefined) return succeeded(next);
      return refused({
        reason: 'InvalidField',
        message: `${problem}, and restart the daemon if it is of the handler.`,
      });
    } catch (error) {
      return refused(failureOf(error));
    }
  }

  function kept(failure: Failure): Refused {
    log.error({ failure }, 'the configuration cannot be used; the old one stays');
    return refused(failure);
  }

  const reload: Reload = async (asked, by = {}) => {
    const next = await read();
    const changes = next.ok ? changesTo(next.value) : [];
    const request: ConfigReload = { changes, ...(next.ok ? {} : { failure: next.failure }), ...by };
    const { outcome } = await submit({ method: 'ReloadConfig', ...request }, asked);
    if (!next.ok) return kept(next.failure);
    if (!outcome.ok) return kept(outcome.failure);
    for (const { key, applied } of changes) {
      place(key)?.(next.value);
      log.warn({ key }, `changed in the configuration${applied ? ' and applied' : '; it takes a restart'}`);
    }
    current = next.value;
    if (changes.length === 0) log.info({}, 'configuration read again; nothing has changed');
    return succeeded(changes);
  };

  return (asked, by) => {
    const done = working.then(() => reload(asked, by));
    working = done.catch(() => undefined);
    return done;
  };
}
