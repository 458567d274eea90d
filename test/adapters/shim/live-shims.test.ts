/** Which pods hear of the end of a shim, and that one which outlives its pods keeps nothing of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as otherTurns } from 'node:timers/promises';
import { pino } from 'pino';
import type { LiveShim } from '../../../src/adapters/shim/process/live-shim.ts';
import { createLiveShims } from '../../../src/adapters/shim/process/live-shims.ts';

/** A shim as far as anybody looks here, which counts how often its end is waited for. */
const shimThatEnds = () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let waits = 0;
  const live = {
    id: 'shared',
    shim: { pid: 1 },
    get ended() {
      waits += 1;
      return promise;
    },
    close: () => undefined,
  } as unknown as LiveShim;
  return { live, end: resolve, waits: () => waits };
};

const setUp = () => {
  const lost: string[] = [];
  const deliver = async (podSandboxId: string): Promise<void> => void lost.push(podSandboxId);
  const shims = createLiveShims({ deliver, close: () => undefined }, pino({ enabled: false }));
  return { shims, lost };
};

test('each pod that has a shim when it ends is told, and whoever gets it after that', async () => {
  const { shims, lost } = setUp();
  const { live, end } = shimThatEnds();
  for (const pod of ['a', 'left', 'b', 'b']) shims.add(pod, live);
  shims.take('left');
  end();
  await otherTurns();
  assert.deepEqual(lost, ['a', 'b']);
  shims.add('late', live);
  await otherTurns();
  assert.deepEqual(lost, ['a', 'b', 'late'], 'each once');
});

test('the end of a shim is waited for once, however many pods it has had', async () => {
  const { shims } = setUp();
  const { live, waits } = shimThatEnds();
  for (let pod = 0; pod < 100; pod += 1) {
    shims.add(`pod-${pod}`, live);
    shims.take(`pod-${pod}`);
  }
  assert.equal(waits(), 1);
});
