/** A decider that throws half-way: nothing of its turn stays, nobody waits for ever, and no input goes without a record. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerStateOf, containerExitOf, runOf } from '../../src/domain/model/container-state.ts';
import { decide } from '../../src/domain/turn/decide.ts';
import type { BodyOf, Input, Sequenced } from '../../src/domain/model/records.ts';
import { writeState } from '../../src/domain/turn/snapshot.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { createMemoryJournal, emptyContents } from '../../src/journal/memory-journal.ts';
import { redecided } from '../support/redecided.ts';
import { foldJournal } from '../support/fold.ts';
import { FACTS } from '../simulation/facts.ts';
import { IMAGE } from '../simulation/images.ts';
import { exitOf, idOf, podConfig, reasonOf, type Rig, runContainer, runPod, settled, startRig } from './rig.ts';

type When = (input: Sequenced<Input>) => boolean;

/** Decides, and with that changes the state, and throws all the same when the switch is on. */
const planted = (when: When): { decide: typeof decide; on: boolean } => {
  const plant = {
    on: false,
    decide: ((state, input) => {
      const events = decide(state, input);
      if (plant.on && when(input)) throw new TypeError('planted');
      return events;
    }) as typeof decide,
  };
  return plant;
};

const recordsOf = (rig: Rig): Sequenced[] =>
  rig.contents.rows.flatMap(({ record }) => (record === null ? [] : (fromJournalRecord(record) ?? [])));

const failedTurns = (rig: Rig): Sequenced<{ type: 'turn.failed'; body: BodyOf<'turn.failed'> }>[] =>
  recordsOf(rig).flatMap((record) => (record.type === 'turn.failed' ? [record] : []));

/** The journal folds to what is decided from and to what is shown, decides the same again, and the daemon goes on. */
async function assertWhole(rig: Rig): Promise<void> {
  await assertFolded(rig);
  assert.deepEqual(redecided(recordsOf(rig)).differences, []);
  assert.equal(reasonOf(await rig.call({ method: 'UpdateRuntimeConfig', podCidr: '10.1.0.0/16' })), 'OK');
}

async function assertFolded(rig: Rig): Promise<void> {
  await rig.settle();
  assert.deepEqual(rig.errors, []);
  const folded = writeState(await foldJournal(createMemoryJournal({ contents: rig.contents })));
  assert.equal(writeState(rig.engine.state), folded);
  assert.equal(writeState(rig.view.state), folded);
}

/** The one pod's pause task ends, as it does when it is killed. */
async function endPause(rig: Rig): Promise<void> {
  for (let i = 0; i < 20; i += 1) await rig.settle();
  const [id = ''] = rig.view.state.sandboxes.keys();
  await rig.engine.observe(exitOf(id, id, 137, 11));
}

const isOutcome =
  (kind: string): When =>
  (input) =>
    input.type === 'effect.ended' && input.body.kind === kind;

test('a call whose turn throws changes nothing, is refused with INTERNAL, and the journal names it', async () => {
  const plant = planted((input) => input.type === 'call.received' && input.body.request.method === 'RunPodSandbox');
  const rig = await startRig({ decide: plant.decide });
  await runContainer(rig);
  const before = writeState(rig.engine.state);
  plant.on = true;
  assert.equal(reasonOf(await rig.call(runPod('second'))), 'Bug');
  assert.equal(writeState(rig.engine.state), before);
  const [failed] = failedTurns(rig);
  assert.equal(failed?.body.handling, 'refused');
  assert.deepEqual((failed.body.input.body as BodyOf<'call.received'>).request.method, 'RunPodSandbox');
  assert.equal(rig.reports.length, 1);
  assert.match(rig.reports[0] ?? '', /a call of RunPodSandbox .* TypeError: \[message left out\]$/);
  plant.on = false;
  idOf(await rig.call(runPod('second')));
  await assertWhole(rig);
});

test('a turn that throws leaves in place what others have on their way to the disk', async () => {
  let release: () => void = () => {};
  let holding = false;
  const plant = planted((input) => input.type === 'call.received' && input.body.request.method === 'RunPodSandbox');
  const rig = await startRig({
    decide: plant.decide,
    commit: () => (holding ? new Promise((resolve) => (release = resolve)) : Promise.resolve()),
  });
  holding = true;
  const first = rig.call({ method: 'UpdateRuntimeConfig', podCidr: '10.9.0.0/16' });
  await rig.settle();
  const second = rig.call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  const before = writeState(rig.engine.state);
  plant.on = true;
  const refused = rig.call(runPod());
  assert.equal(writeState(rig.engine.state), before);
  holding = false;
  release();
  assert.equal(reasonOf(await refused), 'Bug');
  assert.deepEqual([reasonOf(await first), reasonOf(await second)], ['OK', 'OK']);
  await assertWhole(rig);
});

test('a call that cannot even be refused is answered once the journal has it', async () => {
  const plant = planted(
    (input) => input.type === 'call.received' && input.body.request.method !== 'UpdateRuntimeConfig',
  );
  const rig = await startRig({ decide: plant.decide });
  plant.on = true;
  assert.equal(reasonOf(await rig.call(runPod())), 'Bug');
  assert.deepEqual(
    failedTurns(rig).map(({ body }) => body.handling),
    ['none'],
  );
  await assertWhole(rig);
});

test('a request that the journal cannot hold is refused, and what it was is said without it', async () => {
  const rig = await startRig();
  const annotations = { huge: '\u0001'.repeat(3_000_000) };
  const reply = await rig.call({
    method: 'RunPodSandbox',
    config: { ...podConfig(), annotations },
    runtimeHandler: '',
  });
  assert.equal(reasonOf(reply), 'Bug');
  assert.deepEqual(failedTurns(rig)[0]?.body.input, { type: 'call.received' });
  await assertWhole(rig);
});

test('an outcome whose turn throws counts as a failure: what was made is undone, and the caller told', async () => {
  const plant = planted((input) => isOutcome('AttachNetwork')(input) && 'result' in input.body);
  const rig = await startRig({ decide: plant.decide });
  plant.on = true;
  const reply = rig.call(runPod());
  await endPause(rig);
  assert.equal(reasonOf(await reply), 'Bug');
  assert.equal(rig.view.state.sandboxes.size, 0);
  assert.ok(rig.performed.includes('DetachNetwork'));
  const [failed] = failedTurns(rig);
  assert.equal(failed?.body.handling, 'failed');
  assert.deepEqual((failed.body.input.body as BodyOf<'effect.ended'>).result, { ips: ['10.0.0.2'], result: {} });
  await assertWhole(rig);
});

test('an outcome that cannot be decided at all is noted: whoever waits is told, and removing works', async () => {
  const plant = planted(isOutcome('AttachNetwork'));
  const rig = await startRig({ decide: plant.decide });
  plant.on = true;
  assert.equal(reasonOf(await rig.call(runPod())), 'Bug');
  assert.deepEqual(
    failedTurns(rig).map(({ body }) => body.handling),
    ['noted'],
  );
  const [podSandboxId = ''] = rig.view.state.sandboxes.keys();
  const removed = rig.call({ method: 'RemovePodSandbox', podSandboxId });
  await endPause(rig);
  assert.equal(reasonOf(await removed), 'OK');
  assert.equal(rig.view.state.sandboxes.size, 0);
  await assertWhole(rig);
});

test('C3: an exit whose turn throws is in the journal before the shim is answered, and is shown', async () => {
  const plant = planted((input) => input.type === 'task.exited');
  const rig = await startRig({ decide: plant.decide });
  const { podSandboxId, containerId } = await runContainer(rig);
  const stopping = rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '30' });
  plant.on = true;
  const exit = exitOf(podSandboxId, containerId, 3);
  await rig.engine.observe(exit);
  const [failed] = failedTurns(rig);
  assert.equal(failed?.body.handling, 'noted');
  assert.deepEqual(failed.body.input, { type: 'task.exited', body: { exit: exit.exit } });
  // Told again, it is no news.
  await rig.engine.observe(exit);
  assert.equal(failedTurns(rig).length, 1);
  const container = rig.view.state.containers.get(containerId);
  assert.ok(container !== undefined);
  assert.equal(containerStateOf(container), 'CONTAINER_EXITED');
  assert.equal(containerExitOf(container)?.exitStatus, 3);
  assert.equal(reasonOf(await stopping), 'OK');
  assert.equal(reasonOf(await rig.call({ method: 'RemoveContainer', containerId })), 'OK');
  await assertWhole(rig);
});

test('C3: an exit that nothing can be made of is in the journal before the shim is answered', async () => {
  const plant = planted(
    (input) => input.type === 'task.exited' || (input.type === 'turn.failed' && input.body.handling === 'noted'),
  );
  const rig = await startRig({ decide: plant.decide });
  const { podSandboxId, containerId } = await runContainer(rig);
  plant.on = true;
  await rig.engine.observe(exitOf(podSandboxId, containerId, 3));
  assert.deepEqual(
    failedTurns(rig).map(({ body }) => body.handling),
    ['interrupted'],
  );
  await assertWhole(rig);
});

test('a timer whose turn throws fires once, and looks follow every two minutes: the caller is told, and asking again goes on', async () => {
  const plant = planted(isOutcome('WaitUntil'));
  const signals: number[] = [];
  const rig = await startRig({
    decide: plant.decide,
    perform: {
      KillTask: async ({ signal }) => {
        signals.push(signal);
        return { alreadyGone: false };
      },
    },
  });
  const { podSandboxId, containerId } = await runContainer(rig);
  const stopping = rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '1' });
  for (let i = 0; i < 5; i += 1) await rig.settle();
  plant.on = true;
  for (let minute = 0; minute < 10; minute += 1) await rig.advance(60_000);
  assert.equal(reasonOf(await stopping), 'Bug');
  // Its own, and those of looks: of the container and of its pod, each soon and then every two minutes.
  assert.equal(failedTurns(rig).length, 1 + 2 * 5);
  plant.on = false;
  const again = rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '0' });
  await rig.settle();
  assert.deepEqual(signals, [15, 9]);
  await rig.engine.observe(exitOf(podSandboxId, containerId, 137));
  assert.equal(reasonOf(await again), 'OK');
  await assertWhole(rig);
});

test('what else comes unasked and throws is noted: it is written into the state, and nothing follows', async () => {
  const types = ['task.oomed', 'shim.lost', 'content.damaged', 'network.configured', 'call.detached'] as const;
  const plant = planted((input) => types.some((type) => type === input.type));
  let pulled: () => void = () => {};
  const rig = await startRig({
    decide: plant.decide,
    perform: {
      PullImage: ({ reference }) =>
        reference.includes('slow')
          ? new Promise((resolve) => (pulled = () => resolve({ image: IMAGE })))
          : Promise.resolve({ image: IMAGE }),
    },
  });
  const { podSandboxId, containerId } = await runContainer(rig);
  const [imageId = ''] = rig.view.state.images.keys();
  const caller = new AbortController();
  const slow = rig.call({ method: 'PullImage', image: 'registry.test/slow:1', credentials: null }, caller.signal);
  await rig.settle();
  plant.on = true;
  caller.abort();
  await rig.engine.observe({ kind: 'TaskOomed', containerId });
  await rig.engine.observe({
    kind: 'ContentDamaged',
    imageId,
    damaged: { kind: 'blob', digest: 'd', problem: 'altered' },
  });
  await rig.engine.observe({ kind: 'NetworkConfigured', confList: null, problem: 'gone' });
  await rig.engine.observe({ kind: 'ShimLost', podSandboxId });
  const noted = failedTurns(rig).map(({ body }) => body);
  assert.deepEqual(noted.map(({ input }) => input.type).toSorted(), [...types].toSorted());
  assert.ok(noted.every(({ handling }) => handling === 'noted'));
  assert.equal(runOf(rig.view.state.containers.get(containerId))?.oomed, true);
  assert.equal(rig.view.state.network.problem, 'gone');
  assert.equal(rig.view.state.sandboxes.get(podSandboxId)?.shimContact, 'gone');
  pulled();
  idOf({ ...(await slow), outcome: { ok: true, value: { id: 'answered' } } });
  await assertWhole(rig);
});

test('an end whose turn throws is an end', async () => {
  const plant = planted((input) => input.type === 'daemon.stopped');
  const rig = await startRig({ decide: plant.decide });
  plant.on = true;
  await rig.engine.stop('SIGTERM');
  assert.equal(failedTurns(rig)[0]?.body.input.type, 'daemon.stopped');
  assert.deepEqual(rig.errors, []);
});

test('C20: a start passes over the one object that nothing can be decided about, and recovers the others', async () => {
  const contents = emptyContents();
  // By these, files are asked for when it was inspected: in between, a start decides about its spec.
  const before = await startRig({ contents, facts: { ...FACTS, rules: 7 } });
  await runContainer(before);
  const other = idOf(await before.call(runPod('other')));
  const config = { metadata: { name: 'bad' }, image: { image: 'registry.test/app:1' } };
  const containerId = idOf(await before.call({ method: 'CreateContainer', podSandboxId: other, config }));
  await settled(before);
  // As it was when it had been looked at, but with mounts that nobody can walk through, as another bug would write them.
  const inspected = contents.rows.findLastIndex(({ record }) => record?.body.includes('"InspectContainer","result"'));
  contents.rows.splice(inspected + 1);
  for (const [index, row] of contents.rows.entries())
    if (row.record?.type === 'container.requested' && row.record.stream.endsWith(containerId)) {
      const body = row.record.body.replace('"config":{', '"config":{"mounts":7,');
      contents.rows[index] = { ...row, record: { ...row.record, body } };
    }
  const rig = await startRig({ contents });
  const started = recordsOf(rig).findLast(({ type }) => type === 'daemon.started')?.body as BodyOf<'daemon.started'>;
  assert.deepEqual(
    started.leftAlone?.map(({ stream }) => stream),
    [`container/${containerId}`],
  );
  assert.match(rig.reports[0] ?? '', new RegExp(`recovery passes over container/${containerId} `));
  assert.equal(rig.performed.filter((kind) => kind === 'ReconnectShim').length, 2);
  idOf(await rig.call(runPod('third')));
  await assertFolded(rig);
});

test('C20: a start that cannot be decided at all serves, and recovers one object after the other', async () => {
  const contents = emptyContents();
  const { podSandboxId, containerId } = await runContainer(await startRig({ contents }));
  const plant = planted((input) => input.type === 'daemon.started');
  plant.on = true;
  const rig = await startRig({ contents, decide: plant.decide });
  assert.equal(failedTurns(rig)[0]?.body.input.type, 'daemon.started');
  assert.notEqual(rig.view.state.facts, null);
  idOf(await rig.call(runPod('new')));
  await rig.advance(2_000);
  assert.equal(rig.view.state.sandboxes.get(podSandboxId)?.shimContact, 'connected');
  const stopping = rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '0' });
  await rig.settle();
  await rig.engine.observe(exitOf(podSandboxId, containerId, 137));
  assert.equal(reasonOf(await stopping), 'OK');
  await assertWhole(rig);
});

test('an outcome that cannot be decided when it comes is taken up by a look at its pod', async () => {
  const plant = planted(isOutcome('AttachNetwork'));
  const rig = await startRig({ decide: plant.decide });
  plant.on = true;
  assert.equal(reasonOf(await rig.call(runPod())), 'Bug');
  plant.on = false;
  await rig.advance(2_000);
  await endPause(rig);
  for (let i = 0; i < 5; i += 1) await rig.settle();
  // Its creation is undone, as that of any pod without a network.
  assert.equal(rig.view.state.sandboxes.size, 0);
  assert.ok(rig.performed.includes('DetachNetwork'));
  await assertWhole(rig);
});

test('a start and a change of limits whose turns throw are shown, since they are so', async () => {
  const plant = planted((input) => isOutcome('StartTask')(input) || isOutcome('UpdateContainer')(input));
  const rig = await startRig({ decide: plant.decide });
  await rig.call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  const podSandboxId = idOf(await rig.call(runPod()));
  const config = { metadata: { name: 'c' }, image: { image: 'registry.test/app:1' } };
  const containerId = idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config }));
  plant.on = true;
  assert.equal(reasonOf(await rig.call({ method: 'StartContainer', containerId })), 'OK');
  const resources = { cpuShares: '7' };
  await rig.call({ method: 'UpdateContainerResources', containerId, resources });
  const container = rig.view.state.containers.get(containerId);
  assert.ok(container !== undefined);
  assert.equal(containerStateOf(container), 'CONTAINER_RUNNING');
  assert.equal(container.resources?.cpuShares, '7');
  assert.equal(failedTurns(rig).length, 2);
  plant.on = false;
  await rig.advance(2_000);
  await assertWhole(rig);
});

test('C3: a signal whose turn throws does not have the pause task deleted before its exit is known', async () => {
  const plant = planted(isOutcome('KillTask'));
  const rig = await startRig({ decide: plant.decide });
  const podSandboxId = idOf(await rig.call(runPod()));
  plant.on = true;
  const stopping = rig.call({ method: 'StopPodSandbox', podSandboxId });
  for (let i = 0; i < 20; i += 1) await rig.settle();
  plant.on = false;
  await rig.advance(2_000);
  assert.ok(!rig.performed.includes('DeleteTask'));
  assert.equal(reasonOf(await stopping), 'Bug');
  await endPause(rig);
  assert.equal(reasonOf(await rig.call({ method: 'StopPodSandbox', podSandboxId })), 'OK');
  assert.ok(rig.performed.includes('DeleteTask'));
  await assertWhole(rig);
});

test('C7: an input that can neither be taken nor written down ends the daemon, and nobody is answered', async () => {
  const plant = planted(() => true);
  const rig = await startRig({ decide: plant.decide });
  const { podSandboxId, containerId } = await runContainer(rig);
  const before = writeState(rig.engine.state);
  plant.on = true;
  await assert.rejects(
    rig.engine.observe(exitOf(podSandboxId, containerId, 3)),
    /task\.exited on container\/\d+ could/,
  );
  assert.equal(writeState(rig.engine.state), before);
  assert.match(rig.errors[0]?.message ?? '', /task\.exited on container\/\d+ could not be decided, nor written down/);
});
