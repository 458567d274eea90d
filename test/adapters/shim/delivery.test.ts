/** C3: a fact that could not be recorded is told again until it is, in order per id, and nothing is acknowledged before. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createDelivery } from '../../../src/adapters/shim/delivery.ts';
import type { Observation } from '../../../src/domain/model/observation.ts';

const log = pino({ level: 'silent' });
const backoff = { firstMs: 2, lastMs: 8 };
const exitOf = (containerId: string): Observation => ({
  kind: 'TaskExited',
  podSandboxId: 'pod',
  containerId,
  execId: null,
  exit: { pid: 1, exitStatus: 0, exitedAtNs: '1', oomKills: 0 },
});
const oomOf = (containerId: string): Observation => ({ kind: 'TaskOomed', containerId });

describe('delivery of facts', () => {
  it('C3: a failed handling is retried, later facts of its id queue behind it, others pass', async () => {
    const seen: string[] = [];
    let failures = 3;
    const delivery = createDelivery(
      (observation) => {
        const id = 'containerId' in observation ? observation.containerId : '';
        seen.push(`${observation.kind} ${id}`);
        if (id === 'a' && failures > 0) {
          failures -= 1;
          return Promise.reject(new Error('disk on fire'));
        }
        return Promise.resolve();
      },
      backoff,
      log,
    );
    const order: string[] = [];
    await Promise.all([
      delivery.deliver('a', oomOf('a')).then(() => order.push('a oomed')),
      delivery.deliver('a', exitOf('a')).then(() => order.push('a exited')),
      delivery.deliver('b', exitOf('b')).then(() => order.push('b exited')),
    ]);
    assert.deepEqual(order, ['b exited', 'a oomed', 'a exited']);
    assert.deepEqual(
      seen.filter((one) => one.endsWith(' a')),
      [...Array<string>(4).fill('TaskOomed a'), 'TaskExited a'],
    );
  });

  it('gives up when the adapter is closed, and says so', async () => {
    const delivery = createDelivery(() => Promise.reject(new Error('no')), { firstMs: 60_000, lastMs: 60_000 }, log);
    const pending = delivery.deliver('a', exitOf('a'));
    setImmediate(delivery.close);
    await assert.rejects(pending, { name: 'FailureError' });
  });
});
