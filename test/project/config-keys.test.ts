/** No key of the configuration is without effect: each reaches the daemon's configuration, and something reads it there. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type * as z from 'zod';
import { readBaseSpecs } from '../../src/config/base-specs.ts';
import { configOf } from '../../src/config/config.ts';
import { formOf } from '../../src/config/form.ts';
import { BUILT_IN_HANDLERS, configSchema } from '../../src/config/schema.ts';
import { tempDir } from '../support/temp-dir.ts';
import { unreadProperties } from './unread-properties.ts';

const top = join(import.meta.dirname, '../..');

const keysBelow = (schema: z.core.$ZodType, path: readonly string[] = []): (readonly string[])[] => {
  const form = formOf(schema);
  if (form.kind === 'value' || form.kind === 'list') return [path];
  if (form.kind === 'tables')
    return Object.entries(form.of.keys).flatMap(([name, inner]) => keysBelow(inner, [...path, 'runc', name]));
  return Object.entries(form.keys).flatMap(([name, inner]) => keysBelow(inner, [...path, name]));
};

const tableWith = ([first = '', ...rest]: readonly string[], value: unknown): object => ({
  [first]: rest.length === 0 ? value : tableWith(rest, value),
});

/** Among them is one that every key takes, and that is not its default. */
const candidates = (file: string): readonly unknown[] => [
  [{ level: 'none', methods: ['Version'] }],
  ['--other'],
  ...[true, false, 1, 2, 2_000, 0.5, '/other', file, 'other', ['/other'], ['other'], { ConfigPath: '/other' }],
  ...[
    '25h',
    '65MiB',
    '900MiB',
    '48KiB',
    '2MiB',
    '0600',
    '127.0.0.2',
    '127.0.0.1:1',
    'http://other/path',
    'linux/arm64',
  ],
  ...['io.containerd.other.v2', 'fatal', 'fail', 'cni', 'systemd', 'cgroupfs', 'shim', 'w+00000000+BA=='],
];

test('every key of the file changes what the daemon is told', async (t) => {
  const file = join(await tempDir(t), 'base-spec.json');
  await writeFile(file, '{"process":{"noNewPrivileges":true}}');
  const toldOf = async (table: object): Promise<object | null> => {
    const parsed = configSchema.safeParse(table);
    if (!parsed.success) return null;
    const problems: string[] = [];
    const baseSpecs = await readBaseSpecs(parsed.data.runtime, problems);
    const { written: _, ...told } = configOf(parsed.data, [], { baseSpecs, systemdRuns: false });
    return told;
  };
  const handlers = { handlers: BUILT_IN_HANDLERS };
  const byDefault = await toldOf({ runtime: handlers });
  // Goes with another key.
  const beside = { runtime: { handlers: { runc: { privileged_without_host_devices: true } } } };
  const besideTold = await toldOf(beside);
  const silent: string[] = [];
  for (const path of keysBelow(configSchema)) {
    const goesWith = path.at(-1) === 'privileged_without_host_devices_all_devices_allowed';
    let changed = false;
    for (const candidate of candidates(file)) {
      const alone = tableWith(path, candidate);
      const table = goesWith
        ? { runtime: { handlers: { runc: { ...beside.runtime.handlers.runc, [path.at(-1) ?? '']: candidate } } } }
        : path[0] === 'runtime'
          ? { runtime: { ...handlers, ...(alone as { runtime: object }).runtime } }
          : alone;
      const told = await toldOf(table);
      changed ||= told !== null && !isDeepStrictEqual(told, goesWith ? besideTold : byDefault);
    }
    if (!changed) silent.push(path.join('.'));
  }
  assert.deepEqual(silent, []);
});

test('everything that the daemon is told is read by something', () => {
  const unread = unreadProperties({
    top,
    roots: ['src/cli/main.ts'],
    declared: [
      ['src/config/config.ts', 'Config'],
      ['src/domain/model/runtime-handler.ts', 'RuntimeHandler'],
    ],
    counts: (file) => file.startsWith('src/') && !/^src\/(config|wire)\//.test(file),
  });
  assert.deepEqual(unread, []);
});

test('a property that nobody reads is found, and one that is read in any way is not', async (t) => {
  const dir = await tempDir(t);
  await writeFile(
    join(dir, 'config.ts'),
    `export interface Config {
      readonly accessed: number;
      readonly destructured: number;
      readonly a: { readonly handedOn: number; readonly leftBehind: number };
      readonly b: { readonly spread: number; readonly renamed: number };
      readonly unread: number;
    }`,
  );
  await writeFile(
    join(dir, 'main.ts'),
    `import type { Config } from './config.ts';
    const take = (_options: { readonly handedOn: number }): void => {};
    const build = (): { readonly spread: number } => ({ spread: 0 });
    export const main = (config: Config): unknown => {
      const { destructured, b: { renamed: other } } = config;
      take(config.a);
      const built: ReturnType<typeof build> = { ...config.b };
      return [config.accessed, destructured, other, built, config];
    };`,
  );
  const declared = [['config.ts', 'Config']] as const;
  const unread = unreadProperties({ top: dir, roots: ['main.ts'], declared, counts: (file) => file === 'main.ts' });
  assert.deepEqual(unread, ['a.leftBehind', 'unread']);
});
