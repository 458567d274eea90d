/** What a shim says that a task uses, in either version of containerd's metrics, and shims that do not say it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createTaskFigures, figuresIn } from '../../../src/adapters/shim/tasks/task-figures.ts';
import type { TaskClient } from '../../../src/adapters/shim/task-client.ts';
import { defaultTimings } from '../../../src/adapters/shim/timings.ts';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import { TtrpcStatusError } from '../../../src/platform/ttrpc/status.ts';
import type { StatsResponse } from '../../../src/wire/runtime/task/v3/shim.ts';
import { Metrics as MetricsV1 } from '../../../src/wire/types/cgroups/v1/metrics.ts';
import { Metrics as MetricsV2 } from '../../../src/wire/types/cgroups/v2/metrics.ts';

const told = (figures: object | null): object =>
  Object.fromEntries(Object.entries(figures ?? {}).filter(([, value]) => value !== undefined));

/** As gVisor's shim tells it: what it does not count is 0. */
const sparse = {
  typeUrl: 'io.containerd.cgroups.v1.Metrics',
  value: Buffer.from(
    MetricsV1.encode(
      MetricsV1.fromPartial({
        pids: { current: '3' },
        cpu: { usage: { total: '5000000' }, throttling: {} },
        memory: { usage: { usage: '1000', limit: '9223372036854771712' } },
      }),
    ).finish(),
  ),
};

describe('the figures of a task', () => {
  it('are what metrics of version 1 say, and nothing that they leave out', () => {
    assert.deepEqual(told(figuresIn(sparse)), {
      cpuNs: 5_000_000n,
      memoryUsage: 1000n,
      memoryWorkingSet: 1000n,
      threads: 3n,
      deviceBytes: [],
      deviceTimes: [],
    });
  });

  it('are in the same units in version 2, whose working set is what could not be had back at once', () => {
    const metrics = MetricsV2.fromPartial({
      cpu: { usageUsec: '5000', userUsec: '3000', systemUsec: '2000' },
      memory: { usage: '1000', inactiveFile: '300', anon: '600', usageLimit: '4000', swapUsage: '70' },
    });
    const any = {
      typeUrl: 'types.googleapis.com/io.containerd.cgroups.v2.Metrics',
      value: Buffer.from(MetricsV2.encode(metrics).finish()),
    };
    assert.deepEqual(told(figuresIn(any)), {
      cpuNs: 5_000_000n,
      cpuUserNs: 3_000_000n,
      cpuSystemNs: 2_000_000n,
      memoryUsage: 1000n,
      memoryWorkingSet: 700n,
      memoryLimit: 4000n,
      memoryRss: 600n,
      memoryInactiveFile: 300n,
      memorySwap: 70n,
      deviceBytes: [],
      deviceTimes: [],
    });
  });

  it('are none of a shim that tells others, or nothing, or fails', async () => {
    const log = pino({ level: 'silent' });
    const ask = (stats: () => Promise<StatsResponse>) => {
      const clientOf = () => Promise.resolve({ stats } as unknown as TaskClient);
      const shims = { clientOf } as unknown as Parameters<typeof createTaskFigures>[0]['shims'];
      return createTaskFigures({ shims, timings: defaultTimings, log })('pod', 'container');
    };
    assert.equal((await ask(() => Promise.resolve({ stats: sparse })))?.memoryUsage, 1000n);
    assert.equal(await ask(() => Promise.resolve({ stats: { ...sparse, typeUrl: 'other.Metrics' } })), null);
    assert.equal(await ask(() => Promise.resolve({ stats: { ...sparse, value: Buffer.from('garbage') } })), null);
    assert.equal(await ask(() => Promise.resolve({ stats: undefined })), null);
    const missing = new TtrpcStatusError(GrpcCode.UNIMPLEMENTED, 'no Stats');
    assert.equal(await ask(() => Promise.reject(missing)), null);
  });
});
