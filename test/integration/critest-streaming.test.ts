/**
 * The streaming specs of the public CRI validation suite, over WebSocket; critest.test.ts runs them over
 * SPDY. Runs alone: it takes fixed ports, and its own timeouts are short.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pushCritestImages, critestRegistries, runCritest } from '../support/critest.ts';
import { shimsKept, startDaemon } from '../support/daemon.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { netnsOf } from '../support/netns.ts';
import { keptShimsEnd } from '../support/pods.ts';
import { startRegistry } from '../support/registry.ts';

const specs = 5;

test('critest passes its streaming specs over WebSocket', async (t) => {
  const netns = await netnsOf(t);
  const registry = await startRegistry(t, { netns });
  await pushCritestImages(registry);
  const registryConfigDir = await registry.mirrorsFor(critestRegistries);
  const daemon = await startDaemon(t, { netns, registryConfigDir, keptShims: shimsKept });

  const flags = ['-websocket-exec', '-websocket-attach', '-websocket-portforward'];
  const run = { focus: '\\[k8s\\.io\\] Streaming', skip: '^$', timeoutMs: 100_000, flags };
  const results = await runCritest(t, daemon, run);
  assert.deepEqual(
    results.filter(({ state }) => state !== 'passed'),
    [],
  );
  assert.equal(results.length, specs);
  await keptShimsEnd(daemon);
  assert.deepEqual(await daemon.leftovers(), noLeftovers);
});
