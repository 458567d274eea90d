/** What cgroup files mean in CRI's words, of files as kernels write them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createCpuRate } from '../../../src/adapters/stats/cpu-rate.ts';
import { numberOf, parseNumber, parsePressure } from '../../../src/adapters/stats/parse.ts';
import { cgroupUsage } from '../../../src/adapters/stats/usage.ts';

const second = 1_000_000_000n;
const timestamp = '1795229599034000000';

describe('cgroup files', () => {
  it('are read by whole keys, with numbers of any size', () => {
    const text = 'total_rss 5\nrss 9223372036854771712\nrss_huge 7\nlast 1';
    assert.equal(numberOf(text, 'rss'), 9223372036854771712n);
    assert.equal(numberOf(text, 'total_rss'), 5n);
    assert.equal(numberOf(text, 'last'), 1n);
    assert.equal(numberOf(text, 'huge'), undefined);
    assert.equal(numberOf(text, 'las'), undefined);
    assert.equal(parseNumber('max\n'), undefined);
    assert.equal(parseNumber('12\n'), 12n);
    assert.equal(parseNumber(''), undefined);
  });

  it('give pressure in nanoseconds', () => {
    const text =
      'some avg10=1.50 avg60=0.00 avg300=12.34 total=1000001\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n';
    assert.deepEqual(parsePressure(text), {
      Some: { Total: '1000001000', Avg10: 1.5, Avg60: 0, Avg300: 12.34 },
      Full: { Total: '0', Avg10: 0, Avg60: 0, Avg300: 0 },
    });
    assert.equal(parsePressure('nonsense'), undefined);
    assert.equal(parsePressure(undefined), undefined);
  });

  it('can hold anything without harm', () => {
    const text = fc.option(fc.oneof(fc.string(), fc.constantFrom('max\n', '-1', 'usage_usec x', 'some avg10=')), {
      nil: undefined,
    });
    const names = [
      'cpu.stat',
      'cpuacct.usage',
      'memory.stat',
      'memory.current',
      'memory.usage_in_bytes',
      'io.pressure',
    ];
    const texts = fc.record(Object.fromEntries(names.map((name) => [name, text])));
    fc.assert(
      fc.property(texts, fc.constantFrom(1 as const, 2 as const), (files, version) => {
        cgroupUsage(version, files, timestamp, undefined);
      }),
    );
  });

  it('of version 1', () => {
    const stat = [
      'rss 1',
      'hierarchical_memory_limit 104857600',
      'hierarchical_memsw_limit 157286400',
      'total_rss 4096',
      'total_swap 1048576',
      'total_pgfault 17',
      'total_pgmajfault 3',
      'total_inactive_file 1000000',
    ].join('\n');
    const texts = {
      'cpuacct.usage': '123456789012345678\n',
      'memory.usage_in_bytes': '5000000\n',
      'memory.stat': stat,
    };
    assert.deepEqual(cgroupUsage(1, texts, timestamp, 5n), {
      cpu: {
        timestamp,
        usageCoreNanoSeconds: { value: '123456789012345678' },
        usageNanoCores: { value: '5' },
        psi: undefined,
      },
      memory: {
        timestamp,
        workingSetBytes: { value: '4000000' },
        availableBytes: { value: '100857600' },
        usageBytes: { value: '5000000' },
        rssBytes: { value: '4096' },
        pageFaults: { value: '17' },
        majorPageFaults: { value: '3' },
        psi: undefined,
      },
      swap: { timestamp, swapAvailableBytes: { value: '51380224' }, swapUsageBytes: { value: '1048576' } },
      io: undefined,
      process: undefined,
    });
    const unlimited = stat.replace(/_limit \d+/g, '_limit 9223372036854771712');
    const free = cgroupUsage(1, { ...texts, 'memory.stat': unlimited }, timestamp, undefined);
    assert.equal(free.memory?.availableBytes, undefined);
    assert.equal(free.swap?.swapAvailableBytes, undefined);
    assert.equal(free.cpu?.usageNanoCores, undefined);
  });

  it('of version 2', () => {
    const pressure = 'some avg10=0.00 avg60=0.00 avg300=0.00 total=2\n';
    const psi = { Some: { Total: '2000', Avg10: 0, Avg60: 0, Avg300: 0 }, Full: undefined };
    const texts = {
      'cpu.stat': 'usage_usec 123456789012345\nuser_usec 1\n',
      'cpu.pressure': pressure,
      'memory.current': '5000000\n',
      'memory.stat': 'anon 4096\nfile 8\ninactive_file 6000000\npgfault 17\npgmajfault 3\n',
      'memory.max': '104857600\n',
      'memory.swap.current': '4096\n',
      'memory.swap.max': 'max\n',
      'memory.pressure': pressure,
      'io.pressure': pressure,
    };
    assert.deepEqual(cgroupUsage(2, texts, timestamp, undefined), {
      cpu: {
        timestamp,
        usageCoreNanoSeconds: { value: '123456789012345000' },
        usageNanoCores: undefined,
        psi,
      },
      memory: {
        timestamp,
        workingSetBytes: { value: '0' },
        availableBytes: { value: '104857600' },
        usageBytes: { value: '5000000' },
        rssBytes: { value: '4096' },
        pageFaults: { value: '17' },
        majorPageFaults: { value: '3' },
        psi,
      },
      swap: { timestamp, swapAvailableBytes: undefined, swapUsageBytes: { value: '4096' } },
      io: { timestamp, psi },
      process: undefined,
    });
    assert.deepEqual(cgroupUsage(2, {}, timestamp, undefined), {
      cpu: undefined,
      memory: undefined,
      swap: undefined,
      io: undefined,
      process: undefined,
    });
  });
});

describe('the rate of CPU use', () => {
  it('is known from the second sample on, and is that since a second ago or more', () => {
    const rate = createCpuRate();
    assert.equal(rate.add(0n, 0n), undefined);
    assert.equal(rate.add(second / 20n, second), undefined);
    assert.equal(rate.add(second / 2n, second / 4n), second / 2n);
    assert.equal(rate.add(second, second), second);
    assert.equal(rate.add((3n * second) / 2n, second), (2n * second) / 3n);
    // Asked often, it is compared with what is one to two seconds old, never with the moment before.
    let used = second;
    for (let tenth = 16n; tenth < 100n; tenth += 1n) {
      used += second / 20n;
      const found = rate.add((tenth * second) / 10n, used) ?? 0n;
      if (tenth > 40n) assert.ok(found > (49n * second) / 100n && found < (51n * second) / 100n, String(found));
    }
  });

  it('is never below zero', () => {
    const rate = createCpuRate();
    rate.add(0n, second);
    assert.equal(rate.add(2n * second, 0n), 0n);
  });
});
