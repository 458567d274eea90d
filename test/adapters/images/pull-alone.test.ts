/** A pull that comes alone: what it needs is started beside each other. A stand-in for the unpacker notes when it is asked. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { createPullJobs } from '../../../src/adapters/images/pull/jobs.ts';
import { defaultImageLimits } from '../../../src/adapters/images/types.ts';
import type { Unpacker } from '../../../src/adapters/images/unpack/unpacker.ts';
import { tempDir } from '../../support/temp-dir.ts';

const notUsed = (): never => assert.fail('nothing is to be unpacked');

const jobsOf = async (t: TestContext) => {
  const asked: string[] = [];
  const unpacker: Unpacker = {
    expect: () => asked.push('a process'),
    ...{ unpack: notUsed, hold: notUsed, active: new Set(), takeAway: notUsed },
  };
  const options = {
    root: await tempDir(t),
    ...{ registryConfigDirs: [], mirrorCredentials: false, limits: defaultImageLimits },
    ...{ maxConcurrentDownloads: 1, maxConcurrentDownloadsPerRegistry: 1 },
    ...{ progress: { timeoutMs: 1000, bytesMin: 1 }, platform: { os: 'linux', architecture: 'amd64' } },
  };
  const jobs = createPullJobs(options, unpacker, { onProgress: () => undefined, onFetched: () => undefined });
  t.after(() => jobs.close());
  return { jobs, asked };
};

const pulled = { reference: 'localhost:1/app:1', credentials: null };

describe('a pull for which nothing is there yet', () => {
  it('has a process started that unpacks, beside the thread', async (t) => {
    const { jobs, asked } = await jobsOf(t);
    const abort = new AbortController();
    const pull = jobs.pull({ ...pulled, isHere: false }, abort.signal);
    assert.deepEqual(asked, ['a process']);
    abort.abort();
    await assert.rejects(pull, /cancelled/);
  });

  it('has none started where an image of that name is here: most of these have not changed', async (t) => {
    const { jobs, asked } = await jobsOf(t);
    const abort = new AbortController();
    const pull = jobs.pull({ ...pulled, isHere: true }, abort.signal);
    assert.deepEqual(asked, []);
    abort.abort();
    await assert.rejects(pull, /cancelled/);
  });
});
