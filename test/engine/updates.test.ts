/** Changes of limits where time matters: beside removals, without an answer of the shim, and over a restart. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { exitOf, reasonOf, runContainer, startRig } from './rig.ts';

const update = (containerId: string, cpuShares: string): CallDraft => ({
  method: 'UpdateContainerResources',
  containerId,
  resources: { cpuShares },
});

test('limits of a container that is being removed are refused, and its files stay until a change is done', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<Record<string, never>>();
  const rig = await startRig({
    perform: {
      UpdateContainer: () => held,
      KillTask: async ({ podSandboxId, containerId }) => {
        setImmediate(() => void rig.engine.observe(exitOf(podSandboxId, containerId, 137)));
        return { alreadyGone: false };
      },
    },
  });
  const { containerId } = await runContainer(rig);
  const first = rig.call(update(containerId, '100'));
  const second = rig.call(update(containerId, '200'));
  await rig.settle();
  const removed = rig.call({ method: 'RemoveContainer', containerId });
  assert.equal(reasonOf(await second), 'WrongState');
  assert.equal(reasonOf(await rig.call(update(containerId, '300'))), 'WrongState');
  for (let i = 0; i < 10; i += 1) await rig.settle();
  assert.ok(rig.performed.includes('DeleteTask'));
  assert.ok(!rig.performed.includes('CleanContainer'));
  release({});
  assert.deepEqual([reasonOf(await first), reasonOf(await removed)], ['OK', 'OK']);
  assert.equal(reasonOf(await rig.call(update(containerId, '100'))), 'ContainerNotFound');
});

test('C19: a change whose outcome nobody knows is carried on, before any other', async () => {
  const asked: (number | undefined)[] = [];
  let answers = false;
  const rig = await startRig({
    perform: {
      UpdateContainer: async ({ resources }) => {
        asked.push(resources.cpu?.shares);
        if (!answers) throw new FailureError('TimedOut', 'the shim does not answer');
        return {};
      },
    },
  });
  const { containerId } = await runContainer(rig);
  const shares = (): string | undefined => rig.view.state.containers.get(containerId)?.resources?.cpuShares;
  assert.equal(reasonOf(await rig.call(update(containerId, '100'))), 'TimedOut');
  assert.equal(shares(), undefined);
  await rig.advance(5_000);
  assert.deepEqual(asked, [100, 100]);
  answers = true;
  assert.equal(reasonOf(await rig.call(update(containerId, '200'))), 'OK');
  assert.deepEqual([asked, shares()], [[100, 100, 100, 200], '200']);
});

test('C19: annotations of a change are journaled and reach the shim, when it is carried on too, and only with it', async () => {
  const heard: (Readonly<Record<string, string>> | undefined)[] = [];
  let answers = false;
  const rig = await startRig({
    perform: {
      UpdateContainer: async ({ annotations }) => {
        heard.push(annotations);
        if (!answers) throw new FailureError('TimedOut', 'the shim does not answer');
        return {};
      },
    },
  });
  const { containerId } = await runContainer(rig);
  const annotations = { 'example.com/how': 'gently' };
  assert.equal(reasonOf(await rig.call({ ...update(containerId, '100'), annotations } as CallDraft)), 'TimedOut');
  answers = true;
  assert.equal(reasonOf(await rig.call(update(containerId, '200'))), 'OK');
  assert.deepEqual(heard, [annotations, annotations, undefined]);
  assert.ok(!('updateAnnotations' in (rig.view.state.containers.get(containerId) ?? {})));
});

test('a refused change leaves the limits as they were', async () => {
  const rig = await startRig({
    perform: {
      UpdateContainer: async () => {
        throw new FailureError('RuntimeFailed', 'device or resource busy');
      },
    },
  });
  const { containerId } = await runContainer(rig);
  assert.equal(reasonOf(await rig.call(update(containerId, '100'))), 'RuntimeFailed');
  const container = rig.view.state.containers.get(containerId);
  assert.deepEqual([container?.resources, container?.update], [undefined, undefined]);
});
