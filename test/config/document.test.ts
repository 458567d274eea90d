/** The documented default file: complete, and the same as no file at all. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'smol-toml';
import { defaultConfigToml } from '../../src/config/document.ts';
import { loadConfig } from '../../src/config/load.ts';

describe('the documented default file', () => {
  it('loads as the defaults do', async (t) => {
    const dir = await mkdtemp(join(tmpdir(), 'scribe-config-'));
    t.after(() => rm(dir, { recursive: true, force: true }));
    const documented = join(dir, 'documented.toml');
    const empty = join(dir, 'empty.toml');
    await writeFile(documented, defaultConfigToml());
    await writeFile(empty, '');
    const [fromDocument, fromNothing] = await Promise.all([documented, empty].map((path) => loadConfig({ path })));
    assert.deepEqual({ ...fromDocument, files: [] }, { ...fromNothing, files: [] });
  });

  it('has a comment above every key and every table, and fits a terminal', () => {
    const lines = defaultConfigToml().split('\n');
    for (const [index, line] of lines.entries()) {
      assert.ok(line.length <= 120, `too long: ${line}`);
      if (/^(# )?[a-z_]+ = |^\[/.test(line))
        assert.match(lines[index - 1] ?? '', /^# .*[.:]$/, `no comment above ${line}`);
    }
  });

  it('still works with the lines that are shown as comments', () => {
    const uncommented = defaultConfigToml().replace(/^# ([a-z_]+ = )/gm, '$1');
    assert.equal(JSON.stringify(parse(uncommented)).includes('"systemd_cgroup":false'), true);
  });
});
