/** Limits in the words of CRI, NRI and OCI, into each other and back. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import type { NriResources } from '../../../src/domain/model/nri.ts';
import {
  fromCriResources,
  fromOciResources,
  toCriResources,
  toOciResources,
} from '../../../src/domain/nri/resources.ts';

const int64 = fc.bigInt({ min: -1n, max: BigInt(Number.MAX_SAFE_INTEGER) }).map(String);
const record = <T extends object>(fields: { [K in keyof T]-?: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(fields, { requiredKeys: [], noNullPrototype: true }) as unknown as fc.Arbitrary<T>;

/** What both NRI and OCI have words for. */
const limits = record<NriResources>({
  memory: record<NonNullable<NriResources['memory']>>({
    limit: int64,
    reservation: int64,
    swap: int64,
    kernel: int64,
    kernelTcp: int64,
    swappiness: int64,
    disableOomKiller: fc.boolean(),
    useHierarchy: fc.boolean(),
  }).filter((memory) => Object.keys(memory).length > 0),
  cpu: record<NonNullable<NriResources['cpu']>>({
    shares: int64,
    quota: int64,
    period: int64,
    realtimeRuntime: int64,
    realtimePeriod: int64,
    cpus: fc.constantFrom('0', '0-3'),
    mems: fc.constantFrom('0'),
  }).filter((cpu) => Object.keys(cpu).length > 0),
  hugepageLimits: fc.array(
    fc.record({ pageSize: fc.constantFrom('2MB', '1GB'), limit: int64 }, { noNullPrototype: true }),
    { minLength: 1 },
  ),
  unified: fc.dictionary(fc.constantFrom('memory.high', 'io.weight'), fc.string(), { noNullPrototype: true }),
  devices: fc.constant([{ allow: true, type: 'c' as const, access: 'r' }]),
  pids: fc.record({ limit: int64 }, { noNullPrototype: true }),
  blockioClass: fc.constant(undefined as unknown as string),
  rdtClass: fc.constant(undefined as unknown as string),
}).map(({ blockioClass: _io, rdtClass: _rdt, ...rest }) => rest);

it("limits of NRI survive the way through a spec's", () => {
  fc.assert(
    fc.property(limits, (resources) => assert.deepEqual(fromOciResources(toOciResources(resources)), resources)),
  );
});

it('what is above what JSON numbers hold exactly becomes the most that they hold', () => {
  assert.deepEqual(toOciResources({ memory: { limit: '9223372036854775807' } }), {
    memory: { limit: Number.MAX_SAFE_INTEGER },
  });
});

it("limits of CRI survive the way through NRI's, and what CRI leaves out is said as 0", () => {
  const resources = fc.record(
    {
      cpuPeriod: int64,
      cpuQuota: int64,
      cpuShares: int64,
      memoryLimitInBytes: int64,
      memorySwapLimitInBytes: int64,
      cpusetCpus: fc.constantFrom('', '0-3'),
      cpusetMems: fc.constantFrom('', '0'),
      hugepageLimits: fc.array(
        fc.record({ pageSize: fc.constantFrom('2MB', '1GB'), limit: int64 }, { noNullPrototype: true }),
      ),
      unified: fc.dictionary(fc.constantFrom('memory.high', 'io.weight'), fc.string(), { noNullPrototype: true }),
    },
    { requiredKeys: ['cpuPeriod', 'cpuQuota', 'cpuShares', 'memoryLimitInBytes'], noNullPrototype: true },
  );
  fc.assert(fc.property(resources, (given) => assert.deepEqual(toCriResources(fromCriResources(given)), given)));
  assert.deepEqual(fromCriResources({}), {
    memory: { limit: '0' },
    cpu: { shares: '0', quota: '0', period: '0' },
  });
});
