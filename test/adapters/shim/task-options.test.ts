/** What a shim is told of its runtime handler: its own message for runc's, the one for all for any other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taskOptions } from '../../../src/adapters/shim/tasks/task-options.ts';
import { Options as RuncOptions } from '../../../src/wire/types/runc/options/oci.ts';
import { Options as GenericOptions } from '../../../src/wire/types/runtimeoptions/v1/api.ts';
import type { RuntimeHandler } from '../../../src/domain/model/runtime-handler.ts';

const handler: RuntimeHandler = {
  name: 'x',
  runtimeType: 'io.containerd.runc.v2',
  binaryName: 'crun',
  systemdCgroup: true,
};

test("runc's shim is told the OCI runtime, its root and what is configured", () => {
  const runcOptions = { noPivotRoot: true, ioUid: 1000, ioGid: 2000 };
  const any = taskOptions({ handler: { ...handler, runcOptions } }, '/state/runtime');
  assert.equal(any?.typeUrl, 'containerd.runc.v1.Options');
  const told = RuncOptions.decode(any.value);
  const expected = { binaryName: 'crun', root: '/state/runtime', systemdCgroup: true, ...runcOptions };
  assert.deepEqual(told, RuncOptions.fromPartial(expected));
});

test("the root of a pod with users of its own owns the task's output, whatever is configured", () => {
  const ids = { first: 100_000, length: 65_536 };
  const any = taskOptions(
    { handler: { ...handler, runcOptions: { ioUid: 1, ioGid: 2 } }, users: { uids: ids, gids: ids } },
    '/r',
  );
  const { ioUid, ioGid } = RuncOptions.decode(any?.value ?? Buffer.alloc(0));
  assert.deepEqual([ioUid, ioGid], [100_000, 100_000]);
});

test('another shim is told what its table says, and nothing without one', () => {
  const other = { ...handler, runtimeType: 'io.containerd.kata.v2' };
  assert.equal(taskOptions({ handler: other }, '/state/runtime'), undefined);
  const shimOptions = { typeUrl: 'example', configPath: '', configBody: 'a = 1\n' };
  const any = taskOptions({ handler: { ...other, shimOptions } }, '/state/runtime');
  assert.equal(any?.typeUrl, 'runtimeoptions.v1.Options');
  const { typeUrl, configPath, configBody } = GenericOptions.decode(any.value);
  assert.deepEqual([typeUrl, configPath, configBody.toString()], ['example', '', 'a = 1\n']);
});
