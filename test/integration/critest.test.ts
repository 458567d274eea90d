/**
 * The public CRI validation suite, unmodified, through mirrors and with stand-in images: whole. Runs alone: it takes fixed ports, and its own timeouts are short.
 */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pushCritestImages, critestRegistries, runCritest } from '../support/critest.ts';
import { startDaemon } from '../support/daemon.ts';
import { recordsOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { netnsOf } from '../support/netns.ts';
import { startRegistry } from '../support/registry.ts';

const passes = 106;
/** What no stand-in can show: an image with the digest that is written there, and one whose shell runs `ls` itself. */
const notOfStandIns = ['public image with digest should be pulled and removed', 'runtime should support MaskedPaths'];

test('critest passes all its specs, but for two that need the real images', { timeout: 400_000 }, async (t) => {
  const netns = await netnsOf(t);
  const registry = await startRegistry(t, { netns });
  await pushCritestImages(registry);
  const registryConfigDir = await registry.mirrorsFor(critestRegistries);
  const daemon = await startDaemon(t, { netns, registryConfigDir });

  const skip = notOfStandIns.join('|');
  const results = await runCritest(t, daemon, { focus: '.', skip, timeoutMs: 360_000 });
  const passed = results.filter(({ state }) => state === 'passed');
  const skipped = results.filter(({ state }) => state === 'skipped');
  for (const { name, failure } of skipped) t.diagnostic(`skipped: ${name}: ${failure}`);
  assert.deepEqual(
    results.filter(({ state }) => state !== 'passed' && state !== 'skipped'),
    [],
  );
  assert.equal(passed.length, passes);

  assert.deepEqual((await daemon.cri.runtime.listPodSandbox()).items, []);
  assert.deepEqual(await daemon.leftovers(), noLeftovers);
  // critest gives no parent, so the cgroups of its pods are beside those of everybody else.
  const requested = await recordsOf(daemon, { types: ['sandbox.requested', 'container.requested'] });
  const ids = new Set(requested.map(({ stream }) => stream.slice(stream.indexOf('/') + 1)));
  const hierarchies = await readdir('/sys/fs/cgroup');
  const cgroups = await Promise.all(
    hierarchies.map((hierarchy) => readdir(join('/sys/fs/cgroup', hierarchy)).catch(() => [])),
  );
  assert.deepEqual(
    cgroups.flat().filter((name) => ids.has(name)),
    [],
  );
  t.diagnostic(`${passed.length} specs passed, ${skipped.length} do not apply here`);
});
