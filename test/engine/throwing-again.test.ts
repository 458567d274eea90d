/** What a turn that threw, again and again, leaves behind is taken up by itself: without a restart, and without a call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decide } from '../../src/domain/turn/decide.ts';
import type { Input, Sequenced } from '../../src/domain/model/records.ts';
import { ObjectStuckError } from '../../src/domain/deciding/turn-failed.ts';
import { emptyContents } from '../../src/journal/memory-journal.ts';
import { FACTS } from '../simulation/facts.ts';
import { IMAGE } from '../simulation/images.ts';
import { exitOf, idOf, reasonOf, type Rig, runContainer, runPod, settled, startRig } from './rig.ts';
import { containerExitOf, runOf } from '../../src/domain/model/container-state.ts';

type When = (input: Sequenced<Input>) => boolean;

const throwing = (when: When, error: () => Error): { decide: typeof decide; on: boolean } => {
  const plant = {
    on: false,
    decide: ((state, input) => {
      const events = decide(state, input);
      if (plant.on && when(input)) throw error();
      return events;
    }) as typeof decide,
  };
  return plant;
};

/** The outcome of such an effect throws, and so does every way out of it but the last two. */
const outcomeOf = (kind: string): ReturnType<typeof throwing> =>
  throwing(
    (input) =>
      (input.type === 'effect.ended' && input.body.kind === kind) ||
      (input.type === 'turn.failed' && ['failed', 'noted'].includes(input.body.handling)),
    () => new TypeError('planted'),
  );

const handlings = ({ contents }: Rig): string[] =>
  contents.rows.flatMap(({ record }) =>
    record?.type === 'turn.failed' ? [(JSON.parse(record.body) as { handling: string }).handling] : [],
  );

test('an outcome of which not even a note can be made counts as cut short, and its pod is undone', async () => {
  const plant = outcomeOf('AttachNetwork');
  const rig = await startRig({ decide: plant.decide });
  plant.on = true;
  assert.equal(reasonOf(await rig.call(runPod())), 'Bug');
  assert.deepEqual(handlings(rig), ['interrupted']);
  plant.on = false;
  await rig.advance(2_000);
  const [podSandboxId = ''] = rig.view.state.sandboxes.keys();
  await rig.engine.observe(exitOf(podSandboxId, podSandboxId, 137, 11));
  await settled(rig);
  assert.equal(rig.view.state.sandboxes.size, 0);
  assert.ok(rig.performed.includes('DetachNetwork'));
});

test('a DEL of which not even a note can be made is tried again, and the pod goes', async () => {
  const plant = outcomeOf('DetachNetwork');
  const rig = await startRig({ decide: plant.decide });
  const podSandboxId = idOf(await rig.call(runPod()));
  plant.on = true;
  assert.equal(reasonOf(await rig.call({ method: 'RemovePodSandbox', podSandboxId })), 'Bug');
  await rig.engine.observe(exitOf(podSandboxId, podSandboxId, 137, 11));
  plant.on = false;
  await rig.advance(2_000);
  await settled(rig);
  assert.equal(rig.view.state.sandboxes.size, 0);
  assert.ok(rig.performed.filter((kind) => kind === 'DetachNetwork').length >= 2);
});

test('a start of which not even a note can be made is settled with the shim', async () => {
  const plant = outcomeOf('StartTask');
  const rig = await startRig({
    decide: plant.decide,
    perform: {
      ReconnectShim: async ({ containerIds }) => ({
        gone: false,
        tasks: containerIds.map((containerId) => ({ containerId, status: 'running', pid: 12, startTicks: '12' })),
      }),
    },
  });
  await rig.call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  const podSandboxId = idOf(await rig.call(runPod()));
  const config = { metadata: { name: 'c' }, image: { image: 'registry.test/app:1' } };
  const containerId = idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config }));
  plant.on = true;
  assert.equal(reasonOf(await rig.call({ method: 'StartContainer', containerId })), 'Bug');
  await settled(rig);
  assert.notEqual(runOf(rig.view.state.containers.get(containerId)), null);
});

test('an exit of which not even a note can be made is asked for', async () => {
  const plant = throwing(
    (input) => input.type === 'task.exited' || (input.type === 'turn.failed' && input.body.handling === 'noted'),
    () => new TypeError('planted'),
  );
  const exit = { pid: 12, exitStatus: 3, exitedAtNs: '1800000000000000001', oomKills: 0 };
  const rig = await startRig({
    decide: plant.decide,
    perform: {
      ReconnectShim: async ({ containerIds }) => ({
        gone: false,
        tasks: containerIds.map((containerId) => ({ containerId, status: 'stopped', pid: 12, exit })),
      }),
    },
  });
  const { podSandboxId, containerId } = await runContainer(rig);
  plant.on = true;
  await rig.engine.observe(exitOf(podSandboxId, containerId, 3));
  await settled(rig);
  assert.equal(containerExitOf(rig.view.state.containers.get(containerId))?.exitStatus, 3);
});

test('the exit is asked for when the turn of its signal threw and nobody tells of it', async () => {
  const plant = throwing(
    (input) => input.type === 'effect.ended' && input.body.kind === 'KillTask',
    () => new TypeError('planted'),
  );
  const rig = await startRig({ decide: plant.decide });
  const { containerId } = await runContainer(rig);
  plant.on = true;
  const stopped = rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '0' });
  await settled(rig);
  assert.equal(reasonOf(await stopped), 'Bug');
  assert.ok(!rig.performed.includes('ReconnectShim'));
  await rig.advance(30_000);
  assert.ok(rig.performed.includes('ReconnectShim'));
});

test('a pod that nobody claimed is undone when the turn of the timer threw', async () => {
  const plant = throwing(
    (input) => input.type === 'effect.ended' && input.body.kind === 'WaitUntil',
    () => new TypeError('planted'),
  );
  const rig = await startRig({ decide: plant.decide });
  const caller = new AbortController();
  const made = rig.call(runPod(), caller.signal);
  caller.abort();
  await made;
  plant.on = true;
  await rig.advance(121_000);
  assert.equal(rig.view.state.sandboxes.size, 1);
  plant.on = false;
  await rig.advance(121_000);
  assert.equal([...rig.view.state.sandboxes.values()].filter(({ goal }) => goal === 'run').length, 0);
});

test('C20: a pod that a start passed over is asked about and looked at, and can be stopped', async () => {
  const contents = emptyContents();
  const { podSandboxId, containerId } = await runContainer(await startRig({ contents }));
  const plant = throwing(
    (input) => input.type === 'daemon.started' && input.body.leftAlone === undefined,
    () => new ObjectStuckError(`sandbox/${podSandboxId}`, new TypeError('planted')),
  );
  plant.on = true;
  const rig = await startRig({ contents, decide: plant.decide });
  await rig.advance(2_000);
  assert.equal(rig.view.state.sandboxes.get(podSandboxId)?.shimContact, 'connected');
  const stopped = rig.call({ method: 'StopPodSandbox', podSandboxId });
  await settled(rig);
  await rig.engine.observe(exitOf(podSandboxId, containerId, 137));
  await settled(rig);
  await rig.engine.observe(exitOf(podSandboxId, podSandboxId, 137, 11));
  assert.equal(reasonOf(await stopped), 'OK');
});

test('C5: what nobody claimed is undone also where the start could not be decided', async () => {
  const contents = emptyContents();
  const before = await startRig({ contents });
  const caller = new AbortController();
  const made = before.call(runPod(), caller.signal);
  caller.abort();
  await made;
  const plant = throwing(
    (input) => input.type === 'daemon.started',
    () => new TypeError('planted'),
  );
  plant.on = true;
  const rig = await startRig({ contents, decide: plant.decide });
  await rig.advance(121_000);
  assert.equal([...rig.view.state.sandboxes.values()].filter(({ goal }) => goal === 'run').length, 0);
});

test('a call that waits for content to be deleted is told when what follows from the end of that throws', async () => {
  const plant = throwing(
    (input) => input.type === 'effect.ended' && input.body.kind === 'DeleteImageContent',
    () => new TypeError('planted'),
  );
  let end: () => void = () => {};
  const rig = await startRig({
    decide: plant.decide,
    perform: { DeleteImageContent: () => new Promise((resolve) => (end = () => resolve({ freedBytes: 1 }))) },
  });
  const [app = ''] = IMAGE.repoTags;
  const pull = { method: 'PullImage', image: app, credentials: null } as const;
  assert.equal(reasonOf(await rig.call(pull)), 'OK');
  assert.equal(reasonOf(await rig.call({ method: 'RemoveImage', image: app })), 'OK');
  await rig.settle();
  const pulled = rig.call(pull);
  await rig.settle();
  plant.on = true;
  end();
  assert.equal(reasonOf(await pulled), 'Bug');
  plant.on = false;
  assert.equal(reasonOf(await rig.call(pull)), 'OK');
});

test('by rules 10, an image that was removed during a load goes though what follows from the end of the load throws', async () => {
  const plant = throwing(
    (input) => input.type === 'effect.ended' && input.body.kind === 'LoadImages',
    () => new TypeError('planted'),
  );
  let end: () => void = () => {};
  const rig = await startRig({
    facts: { ...FACTS, rules: 10 },
    decide: plant.decide,
    perform: { LoadImages: () => new Promise((resolve) => (end = () => resolve({ images: [] }))) },
  });
  const [app = ''] = IMAGE.repoTags;
  assert.equal(reasonOf(await rig.call({ method: 'PullImage', image: app, credentials: null })), 'OK');
  const loaded = rig.call({ method: 'LoadImages', newId: 'upload' });
  await rig.settle();
  assert.equal(reasonOf(await rig.call({ method: 'RemoveImage', image: app })), 'OK');
  plant.on = true;
  end();
  assert.equal(reasonOf(await loaded), 'Bug');
  plant.on = false;
  assert.equal(rig.view.state.images.size, 1);
  await rig.advance(2_000);
  assert.equal(rig.view.state.images.size, 0);
});

test('C20: a pod whose look after a start threw as well is looked at again, and who joined its creation is answered', {
  timeout: 20_000,
}, async () => {
  const contents = emptyContents();
  const before = await startRig({ contents, perform: { AttachNetwork: () => new Promise(() => {}) } });
  void before.call(runPod());
  await settled(before);
  const [podSandboxId = ''] = before.view.state.sandboxes.keys();
  const plant = throwing(
    (input) =>
      (input.type === 'daemon.started' && input.body.leftAlone === undefined) ||
      (input.type === 'effect.ended' && input.body.kind === 'WaitUntil'),
    () => new ObjectStuckError(`sandbox/${podSandboxId}`, new TypeError('planted')),
  );
  plant.on = true;
  const rig = await startRig({ contents, decide: plant.decide });
  await rig.advance(2_000);
  assert.deepEqual(handlings(rig), ['noted']);
  plant.on = false;
  const joined = rig.call(runPod());
  await rig.advance(100_000);
  assert.equal(rig.view.state.sandboxes.size, 1);
  await rig.advance(21_000);
  await settled(rig);
  assert.equal(reasonOf(await joined), 'Interrupted');
  assert.equal(rig.view.state.sandboxes.size, 0);
});
