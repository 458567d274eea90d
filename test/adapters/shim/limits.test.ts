/** Limits written into the spec of a container that does not run: what they do not name stays, a base spec's among them. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { writeLimits } from '../../../src/adapters/shim/bundle-spec.ts';
import type { OciResources } from '../../../src/domain/model/oci.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { tempDir } from '../../support/temp-dir.ts';

const resources = {
  devices: [{ allow: false, access: 'rwm' }],
  memory: { limit: 1000, swap: 1000, reservation: 500, swappiness: 10, disableOOMKiller: true },
  cpu: { shares: 100, quota: 5000, period: 100_000, burst: 10, idle: 0, cpus: '0' },
  pids: { limit: 77 },
  hugepageLimits: [
    { pageSize: '2MB', limit: 1 },
    { pageSize: '1GB', limit: 2 },
  ],
  blockIO: { weight: 10 },
  network: { classID: 5 },
  unified: { 'memory.high': '900', 'pids.max': '70' },
};

describe('limits of a container that does not run', () => {
  const owner = cleanupAfterAll();

  const written = async (limits: OciResources): Promise<unknown> => {
    const dir = await tempDir(owner);
    const path = join(dir, 'config.json');
    await writeFile(path, JSON.stringify({ process: { args: ['x'], oomScoreAdj: 1 }, linux: { resources } }));
    await writeLimits(dir, { resources: limits, oomScoreAdj: 7 });
    const spec = JSON.parse(await readFile(path, 'utf8')) as { process: object; linux: { resources: object } };
    assert.deepEqual(spec.process, { args: ['x'], oomScoreAdj: 7 });
    return spec.linux.resources;
  };

  test('those that are not named stay', async () => {
    assert.deepEqual(await written({}), resources);
    assert.deepEqual(await written({ cpu: { shares: 200 } }), { ...resources, cpu: { ...resources.cpu, shares: 200 } });
    assert.deepEqual(await written({ memory: { limit: 2000, swap: 2000 } }), {
      ...resources,
      memory: { ...resources.memory, limit: 2000, swap: 2000 },
    });
  });

  test('lists and maps change entry by entry', async () => {
    assert.deepEqual(await written({ hugepageLimits: [{ pageSize: '1GB', limit: 9 }] }), {
      ...resources,
      hugepageLimits: [
        { pageSize: '2MB', limit: 1 },
        { pageSize: '1GB', limit: 9 },
      ],
    });
    assert.deepEqual(await written({ unified: { 'pids.max': '80', 'io.max': 'x' } }), {
      ...resources,
      unified: { 'memory.high': '900', 'pids.max': '80', 'io.max': 'x' },
    });
  });
});
