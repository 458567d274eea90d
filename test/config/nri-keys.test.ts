/** What the configuration says of single NRI plugins. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { tempDir } from '../support/temp-dir.ts';

const load = async (t: TestContext, text: string): Promise<Config> => {
  const path = join(await tempDir(t), 'config.toml');
  await writeFile(path, text);
  return await loadConfig({ path });
};

test('nothing holds for a plugin alone unless it is written', async (t) => {
  assert.deepEqual((await load(t, '')).nri.plugins, {});
  const { nri } = await load(t, '[nri.plugins.logger]\n');
  const nothing = { requestTimeoutMs: null, failurePolicy: null, missesMax: null, namespaces: null, labels: {} };
  assert.deepEqual(nri.plugins, { logger: nothing });
});

test('each key of a plugin is told, by name or by index and name', async (t) => {
  const text = `[nri.plugins.10-logger]
    request_timeout = "10s"
    failure_policy = "fail"
    misses_max = 0
    namespaces = ["a", "b"]
    labels = { "example.com/gpu" = "yes" }`;
  assert.deepEqual((await load(t, text)).nri.plugins, {
    '10-logger': {
      requestTimeoutMs: 10_000,
      failurePolicy: 'fail',
      missesMax: 0,
      namespaces: ['a', 'b'],
      labels: { 'example.com/gpu': 'yes' },
    },
  });
});

test('what a plugin can not have is refused by its key', async (t) => {
  const bad = {
    'request_timeout = "1ms"': /nri\.plugins\.logger\.request_timeout.*less than 10ms/,
    'failure_policy = "ignore"': /nri\.plugins\.logger\.failure_policy must be one of "continue", "fail"/,
    'namespaces = "a"': /nri\.plugins\.logger\.namespaces must be a list of namespaces/,
    'request_timout = "1s"': /request_timout.*request_timeout/,
  };
  for (const [line, message] of Object.entries(bad))
    await assert.rejects(load(t, `[nri.plugins.logger]\n${line}\n`), message, line);
  await assert.rejects(load(t, '[nri.plugins."a/b"]\n'), /a\/b/);
});
