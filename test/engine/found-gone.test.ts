/** Pods and containers that a start of the daemon finds gone: clients who follow container events hear of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { criEventsOf } from '../../src/projections/cri-events.ts';
import { FACTS } from '../simulation/facts.ts';
import { NamespaceMode } from '../../src/domain/model/cri.ts';
import type { DaemonFacts } from '../../src/domain/model/daemon-facts.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { exitOf, idOf, podConfig, type Rig, runContainer, settled, startRig } from './rig.ts';
import { containerExitOf } from '../../src/domain/model/container-state.ts';

/** "type id" of the events in what was recorded since. */
const eventsSince = ({ contents }: Rig, seq: number): string[] =>
  contents.rows.slice(seq).flatMap(({ record }) => {
    const sequenced = record === null ? null : fromJournalRecord(record);
    return sequenced === null ? [] : criEventsOf(sequenced).map(({ type, containerId }) => `${type} ${containerId}`);
  });

test('a pod whose pause task is found dead gives CONTAINER_STOPPED once, over further starts too', async () => {
  const rig = await startRig();
  const { podSandboxId } = await runContainer(rig);
  const before = rig.contents.rows.length;
  const next = await startRig({ contents: rig.contents, deadTasks: [podSandboxId] });
  await settled(next);
  const stopped = `CONTAINER_STOPPED_EVENT ${podSandboxId}`;
  assert.deepEqual(
    eventsSince(next, before).filter((event) => event.endsWith(podSandboxId)),
    [stopped],
  );
  const again = await startRig({ contents: next.contents, deadTasks: [podSandboxId] });
  await settled(again);
  assert.equal(eventsSince(again, before).filter((event) => event === stopped).length, 1);
});

test('a pod without a pause task whose namespaces are found gone gives CONTAINER_STOPPED', async () => {
  const rig = await startRig();
  const config = {
    ...podConfig(),
    linux: { securityContext: { namespaceOptions: { pid: NamespaceMode.CONTAINER } } },
  };
  const run: CallDraft = { method: 'RunPodSandbox', config, runtimeHandler: '' };
  const podSandboxId = idOf(await rig.call(run));
  assert.equal(rig.engine.state.sandboxes.get(podSandboxId)?.sandboxer, 'none');
  const before = rig.contents.rows.length;
  const next = await startRig({ contents: rig.contents, deadTasks: [podSandboxId] });
  assert.deepEqual(eventsSince(next, before), [`CONTAINER_STOPPED_EVENT ${podSandboxId}`]);
});

test('after a reboot every pod and container that ran gives CONTAINER_STOPPED, and what had ended does not again', async () => {
  const rig = await startRig();
  const { podSandboxId, containerId } = await runContainer(rig);
  const config = { metadata: { name: 'ended' }, image: { image: 'registry.test/app:1' } };
  const ended = idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config }));
  await rig.call({ method: 'StartContainer', containerId: ended });
  await rig.engine.observe(exitOf(podSandboxId, ended, 0));
  await settled(rig);
  const before = rig.contents.rows.length;
  const next = await startRig({ contents: rig.contents, rebooted: true });
  await settled(next);
  assert.deepEqual(
    eventsSince(next, before).sort(),
    [containerId, podSandboxId].map((id) => `CONTAINER_STOPPED_EVENT ${id}`).sort(),
  );
  const exit = containerExitOf(next.view.state.containers.get(containerId));
  assert.deepEqual([exit?.exitStatus, exit?.message], [255, 'the node was rebooted']);
});

test('by the rules of older journals a start tells nobody', async () => {
  const facts: DaemonFacts = { ...FACTS, rules: 1 };
  const rig = await startRig({ facts });
  await runContainer(rig);
  const before = rig.contents.rows.length;
  const next = await startRig({ contents: rig.contents, rebooted: true, facts });
  await settled(next);
  assert.deepEqual(eventsSince(next, before), []);
});

test('a pod that goes on, or is being stopped, gives nothing', async () => {
  const rig = await startRig({ perform: { KillTask: () => new Promise(() => {}) } });
  const { podSandboxId } = await runContainer(rig);
  const before = rig.contents.rows.length;
  const next = await startRig({ contents: rig.contents });
  await settled(next);
  assert.ok(!eventsSince(next, before).includes(`CONTAINER_STOPPED_EVENT ${podSandboxId}`));
});
