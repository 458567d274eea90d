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

test('the default validator is off, and has the keys that containerd has', async (t) => {
  assert.equal((await load(t, '')).nri.defaultValidator.enable, false);
  const text = `[nri]
    enable = true
    startup_wait = "1m"
    [nri.default_validator]
    enable = true
    reject_oci_hook_adjustment = true
    reject_runtime_default_seccomp_adjustment = true
    reject_unconfined_seccomp_adjustment = true
    reject_custom_seccomp_adjustment = true
    reject_namespace_adjustment = true
    reject_sysctl_adjustment = true
    required_plugins = ["logger", "10-other"]
    tolerate_missing_plugins_annotation = "tolerate.example.com/missing"`;
  const { nri } = await load(t, text);
  assert.equal(nri.startupWaitMs, 60_000);
  assert.deepEqual(nri.defaultValidator, {
    enable: true,
    rules: {
      rejectOciHookAdjustment: true,
      rejectRuntimeDefaultSeccompAdjustment: true,
      rejectUnconfinedSeccompAdjustment: true,
      rejectCustomSeccompAdjustment: true,
      rejectNamespaceAdjustment: true,
      rejectSysctlAdjustment: true,
      requiredPlugins: ['logger', '10-other'],
      tolerateMissingPluginsAnnotation: 'tolerate.example.com/missing',
    },
  });
});

test('a default validator that would not judge, or could not, is refused', async (t) => {
  const off = load(t, '[nri]\nenable = false\n[nri.default_validator]\nenable = true\n');
  await assert.rejects(off, /nri\.default_validator\.enable is true, but NRI is off: set nri\.enable too/);
  const bad = {
    'required_plugins = ["a/b"]': /nri\.default_validator\.required_plugins.*must be the name of a plugin/,
    'required_plugins = "a"': /required_plugins must be a list of names of plugins/,
    'tolerate_missing_plugins_annotation = "a b"':
      /tolerate_missing_plugins_annotation must be the key of an annotation/,
    'reject_hooks = true': /reject_hooks/,
  };
  for (const [line, message] of Object.entries(bad))
    await assert.rejects(load(t, `[nri.default_validator]\n${line}\n`), message, line);
});
