/** How late the loop was: told while there is work, and measured by nobody when there is none. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { eventLoopDelay } from '../../../src/adapters/metrics/event-loop-delay.ts';

const worstIn = async (registry: Registry): Promise<number> => {
  const text = await registry.metrics();
  return Number(/^scribe_event_loop_delay_max_seconds (\S+)$/m.exec(text)?.[1]);
};

it('tells what held the loop up since it was last asked, and rests when there is no work', async () => {
  const registry = new Registry();
  let restedMs = 0;
  let looks = 0;
  const worked = eventLoopDelay([registry], () => {
    looks += 1;
    return performance.now() + restedMs;
  });
  assert.equal(await worstIn(registry), 0);
  worked();
  await sleep(30);
  const startMs = performance.now();
  while (performance.now() - startMs < 60);
  await sleep(30);
  const worst = await worstIn(registry);
  assert.ok(worst > 0.04 && worst < 30, `the loop was held up for 60 ms, and ${worst} s are told`);
  // So late that the next tick is the last.
  restedMs = 60_000;
  await sleep(60);
  const before = looks;
  await sleep(60);
  assert.equal(looks, before);
  assert.ok((await worstIn(registry)) > 30);
  worked();
  await sleep(60);
  assert.ok(looks > before + 1);
  assert.ok((await worstIn(registry)) < 30);
});
