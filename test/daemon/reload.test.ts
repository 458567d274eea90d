/** Reload: what of a configuration is applied, and what is said of the rest, by the keys that the file has. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { createReload } from '../../src/daemon/reload.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('reload', () => {
  it('names every key that differs as the file does, also in tables and in files that it names', async (t) => {
    const dir = await tempDir(t);
    const [path, spec] = [join(dir, 'config.toml'), join(dir, 'spec.json')];
    const load = () => loadConfig({ path });
    const handlers = `[runtime.handlers.base]\nbase_runtime_spec = "${spec}"\n`;
    await writeFile(spec, '{"process": {"env": ["A=1"]}}');
    await writeFile(path, handlers);
    const said: string[] = [];
    const dirs: (readonly string[])[] = [];
    const reload = createReload({
      initial: await load(),
      load,
      log: {
        level: 'info',
        info: (_, message) => void said.push(message),
        warn: (fields, message) => void said.push(`${(fields as { key: string }).key}: ${message}`),
        error: (_, message) => void said.push(message),
      },
      setRegistryConfigDirs: (next) => void dirs.push(next),
    });
    await reload();
    assert.deepEqual(said.splice(0), ['configuration read again; nothing has changed']);

    await writeFile(spec, '{"process": {"env": ["A=2"]}}');
    await writeFile(
      path,
      `${handlers}[runtime.handlers.crun]\nbinary_name = "crun"
      [images]\npull_progress_timeout = "9s"\nregistry_config_dirs = ["/etc/registries"]
      [journal.retention]\nreads = "1h"\n`,
    );
    await reload();
    const restart = 'changed in the configuration; it takes a restart';
    assert.deepEqual(said.splice(0).toSorted(), [
      `images.pull_progress_timeout: ${restart}`,
      'images.registry_config_dirs: changed in the configuration and applied',
      `journal.retention.reads: ${restart}`,
      `runtime.handlers.base.base_runtime_spec: ${restart}`,
      `runtime.handlers.crun: ${restart}`,
    ]);
    assert.deepEqual(dirs, [['/etc/registries']]);
  });
});
