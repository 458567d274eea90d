/**
 * The NRI specs of the public CRI validation suite, unmodified: a plugin that critest itself connects sees, delays and
 * vetoes what happens to pods and containers. Runs alone: its own timeouts are short.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { critestRegistries, pushCritestImages, runCritest } from '../support/critest.ts';
import { shimsKept, startDaemon } from '../support/daemon.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { netnsOf } from '../support/netns.ts';
import { keptShimsEnd } from '../support/pods.ts';
import { startRegistry } from '../support/registry.ts';
import { tempDir } from '../support/temp-dir.ts';

for (const sandboxer of ['none', 'pause'])
  test(`critest passes all its specs of NRI with sandboxer ${sandboxer}`, { timeout: 200_000 }, async (t) => {
    const netns = await netnsOf(t);
    const registry = await startRegistry(t, { netns });
    await pushCritestImages(registry);
    const registryConfigDir = await registry.mirrorsFor(critestRegistries);
    const nriSocket = join(await tempDir(t), 'nri/nri.sock');
    const config = `[nri]\nenable = true\nsocket = "${nriSocket}"\nplugin_dir = "${nriSocket}.plugins"\n\n[runtime.handlers.runc]\nsandboxer = "${sandboxer}"\n`;
    const daemon = await startDaemon(t, { netns, registryConfigDir, config, keptShims: shimsKept });

    const results = await runCritest(t, daemon, {
      program: 'critest-nri',
      focus: 'NRI',
      skip: '^$',
      timeoutMs: 180_000,
      flags: ['-nri-socket', nriSocket],
    });
    assert.deepEqual(
      results.filter(({ state }) => state !== 'passed'),
      [],
    );
    assert.equal(results.length, 13);
    await keptShimsEnd(daemon);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
    t.diagnostic(`${results.length} specs passed`);
  });
