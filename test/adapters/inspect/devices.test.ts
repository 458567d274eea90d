/** Devices that come and go while a directory of them is looked at. */
import assert from 'node:assert/strict';
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { inspectDevices } from '../../../src/adapters/inspect/devices.ts';
import { tempDir } from '../../support/temp-dir.ts';

const LOOKS = 2_000;

it('below a directory that vanishes while it is looked at there are none', async (t) => {
  const dir = await tempDir(t);
  let ended = false;
  const comeAndGo = async (): Promise<void> => {
    while (!ended) {
      await mkdir(join(dir, 'by-id'));
      await rmdir(join(dir, 'by-id'));
    }
  };
  const look = async (): Promise<void> => {
    try {
      for (let looks = 0; looks < LOOKS; looks += 1) assert.deepEqual(await inspectDevices(dir), []);
    } finally {
      ended = true;
    }
  };
  await Promise.all([comeAndGo(), look()]);
});
