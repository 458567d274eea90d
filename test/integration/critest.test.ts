/**
 * The public CRI validation suite, unmodified, through mirrors and with stand-in images: every spec of the groups that
 * are offered. Runs alone: it takes fixed ports, and its own timeouts are short.
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

const groups = [
  'Runtime info',
  'PodSandbox',
  'Container runtime should support (basic operations|adding volume|log)',
  'Idempotence',
  'Image Manager',
  'Image Consistency',
  'Image Identifier Consistency',
  'Networking',
  'Multiple Containers',
  'Container OOM',
  'Streaming',
  'Container Mount',
  'Security Context',
];
const specs = 94;
/** No image of ours can have the digest that this spec is written for. */
const fixedDigest = 'public image with digest should be pulled and removed';
/** Written for the files of a real image: the stand-in has no shell, and no program with the setuid bit. */
const notOfStandIns = ['runtime should support MaskedPaths', 'NoNewPrivs should'];

test('critest passes all its specs of the groups that are offered', async (t) => {
  const netns = await netnsOf(t);
  const registry = await startRegistry(t, { netns });
  await pushCritestImages(registry);
  const registryConfigDir = await registry.mirrorsFor(critestRegistries);
  const daemon = await startDaemon(t, { netns, registryConfigDir });

  const focus = `\\[k8s\\.io\\] (${groups.join('|')})`;
  const results = await runCritest(t, daemon, {
    focus,
    skip: [fixedDigest, ...notOfStandIns].join('|'),
    timeoutMs: 240_000,
  });
  assert.deepEqual(
    results.filter(({ state }) => state !== 'passed'),
    [],
  );
  assert.equal(results.length, specs);

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
  t.diagnostic(`${results.length} specs passed`);
});
