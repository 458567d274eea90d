/** Classes of block I/O from real files and device nodes. Needs root. */
import assert from 'node:assert/strict';
import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { createInspectBlockIOClass } from '../../../src/adapters/inspect/blockio-classes.ts';
import { deviceNumber, makeNode, NodeType } from '../../../src/platform/linux/syscalls.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { requireRoot } from '../../support/netns.ts';
import { tempDir } from '../../support/temp-dir.ts';

before(requireRoot);

const setUp = async (t: TestContext) => {
  const dir = await tempDir(t);
  await mkdir(join(dir, 'by-id'));
  for (const [index, name] of ['sda', 'sdb', 'sdc'].entries())
    await makeNode(join(dir, name), NodeType.blockDevice | 0o600, deviceNumber(8, 16 * index));
  await makeNode(join(dir, 'sdz'), NodeType.characterDevice | 0o600, deviceNumber(1, 3));
  await symlink('../sdc', join(dir, 'by-id/disk-SSD-1'));
  await symlink('../gone', join(dir, 'by-id/disk-SSD-2'));
  const path = join(dir, 'classes.yaml');
  const write = (text: string): Promise<void> => writeFile(path, text.replaceAll('DIR', dir));
  return { dir, path, write, inspect: createInspectBlockIOClass(path) };
};

const failedWith =
  (reason: string, message: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FailureError, String(error));
    assert.equal(error.failure.reason, reason);
    assert.match(error.message, message);
    return true;
  };

describe('classes of block I/O', () => {
  it('name block devices by patterns; what is none, or not there, is passed over', async (t) => {
    const { dir, write, inspect } = await setUp(t);
    await write(`Classes:
  slow:
    - Weight: 80
    - Devices: ["DIR/sd[abz]", DIR/sda, DIR/absent, "DIR/x*"]
      ThrottleReadBps: 1M
    - Devices: ["DIR/by-id/*SSD*"]
      Weight: 20
`);
    const facts = (await inspect('slow')) ?? [];
    assert.deepEqual(facts[0], { devices: null, weight: 80 });
    const minors = new Set(facts[1]?.devices?.map(({ minor }) => minor));
    assert.deepEqual([minors, facts[1]?.throttleReadBps], [new Set([0, 16]), 1_000_000]);
    assert.deepEqual(facts[2], { devices: [{ major: 8, minor: 32 }], weight: 20 });
    await rm(join(dir, 'sdc'));
    assert.deepEqual((await inspect('slow'))?.[2]?.devices, []);
  });

  it('are read anew when the file changes, and never from one that others can write', async (t) => {
    const { path, write, inspect } = await setUp(t);
    await assert.rejects(inspect('slow'), failedWith('HostFailed', /^runtime\.blockio_config_file: .*ENOENT/));
    await write('Classes: {slow: [{Weight: 100}]}');
    assert.deepEqual(await inspect('slow'), [{ devices: null, weight: 100 }]);
    assert.deepEqual(await inspect('slow'), [{ devices: null, weight: 100 }]);
    await write('Classes: {slow: [{Weight: 200}]}');
    assert.deepEqual(await inspect('slow'), [{ devices: null, weight: 200 }]);
    for (const name of ['fast', 'toString', '__proto__'])
      await assert.rejects(inspect(name), failedWith('HostLacks', /is not in .*classes\.yaml: add it/));
    await write('Classes: {slow: [{Weight: 1}]}');
    await assert.rejects(inspect('slow'), failedWith('HostFailed', /blockio_config_file: .*Weight must be/));
    await write('Classes: {slow: [');
    await assert.rejects(
      inspect('slow'),
      failedWith('HostFailed', /^runtime\.blockio_config_file: [^\n]*classes\.yaml[^\n]*$/),
    );
    await chmod(path, 0o666);
    await assert.rejects(inspect('slow'), failedWith('HostFailed', /can be written by others/));
  });

  it('are none where no file is configured', async () => {
    assert.equal(await createInspectBlockIOClass(null)('slow'), null);
  });
});
