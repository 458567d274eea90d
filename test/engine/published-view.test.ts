/** Who follows what is published: when they hear of it, and that none of them is another's trouble. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reportThrownBySubscribers } from '../../src/daemon/subscribers.ts';
import { idOf, reasonOf, runPod, startRig } from './rig.ts';

test('C1: subscribers hear of a change when the state shows it and before the reply to it leaves', async () => {
  const rig = await startRig();
  const order: string[] = [];
  rig.view.changes.subscribe((records) => {
    for (const { type } of records)
      if (type === 'sandbox.ready' || type === 'call.completed')
        order.push(`${type}, ${rig.view.state.sandboxes.size} pod, ${rig.view.state.calls.size} calls`);
  });
  await rig.call(runPod()).then(() => order.push('reply'));
  assert.deepEqual(order, ['sandbox.ready, 1 pod, 0 calls', 'call.completed, 1 pod, 0 calls', 'reply']);
});

test('records of the types that are asked for come one by one and in order, and no others do', async () => {
  const rig = await startRig();
  const heard: string[] = [];
  const subscription = rig.view
    .recordsOf('call.received', 'sandbox.ready', 'call.completed')
    .subscribe(({ type }) => heard.push(type));
  const podSandboxId = idOf(await rig.call(runPod()));
  subscription.unsubscribe();
  await rig.call({ method: 'StopPodSandbox', podSandboxId: `${podSandboxId}-unknown` });
  assert.deepEqual(heard, ['call.received', 'sandbox.ready', 'call.completed']);
});

test('C20: what a subscriber throws is reported; it, the others and the calls go on', async () => {
  const told = Promise.withResolvers<string>();
  reportThrownBySubscribers({ error: () => undefined }, told.resolve);
  const rig = await startRig();
  const heard = { throwing: 0, others: 0 };
  rig.view.changes.subscribe(() => {
    heard.throwing += 1;
    throw new Error('no room');
  });
  rig.view.recordsOf('sandbox.ready').subscribe(() => {
    throw new Error('no room');
  });
  rig.view.changes.subscribe(() => {
    heard.others += 1;
  });
  assert.equal(reasonOf(await rig.call(runPod())), 'OK');
  assert.equal(
    await told.promise,
    'Something that follows what the daemon records failed, and goes on: Error: [message left out]',
  );
  assert.ok(heard.others > 1);
  assert.equal(heard.throwing, heard.others);
  assert.deepEqual(rig.errors, []);
});
