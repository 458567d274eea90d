/** The daemon's two states, held against each other and against the journal: in slices, and only while nothing is in flight. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { statePieces, writeState } from '../../src/domain/turn/snapshot.ts';
import type { NodeState } from '../../src/domain/model/state.ts';
import { startHousekeeping } from '../../src/daemon/housekeeping.ts';
import { takeSettledStates, takeStates } from '../../src/daemon/live-states.ts';
import { hashOfState } from '../../src/journal/snapshots.ts';
import { onCleanup } from '../support/cleanup.ts';
import { openTemporary } from '../journal/support.ts';
import { type Rig, runContainer, startRig } from '../engine/rig.ts';
import { tempDir } from '../support/temp-dir.ts';

const PODS = 1_000;
const CONTAINERS_PER_POD = 3;
const patienceMs = 30_000;

/** Copies of the node's one pod and container, with as much in them as kubelet's have. */
function multiply(state: Readonly<NodeState>): void {
  const [pod] = state.sandboxes.values();
  const [container] = state.containers.values();
  assert.ok(pod !== undefined && container !== undefined);
  const envs = Array.from({ length: 30 }, (_, index) => ({
    key: `VARIABLE_${index}`,
    token: `secret:${'x'.repeat(22)}`,
  }));
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(2_000) };
  for (let p = 0; p < PODS; p += 1) {
    const id = `pod-${p}`;
    state.sandboxes.set(id, { ...pod, id, name: id, config: { ...pod.config, annotations } });
    for (let c = 0; c < CONTAINERS_PER_POD; c += 1) {
      const containerId = `${id}-${c}`;
      const config = { ...container.config, envs, annotations };
      state.containers.set(containerId, { ...container, id: containerId, name: containerId, podSandboxId: id, config });
    }
  }
}

test('C17: 1,000 pods are hashed in slices, between which the loop serves others', async () => {
  const rig = await startRig();
  await runContainer(rig);
  multiply(rig.engine.state);
  multiply(rig.view.state);
  const work = { isDone: false };
  let turns = 0;
  let longestUs = 0;
  const startUs = cpuUs();
  const states = takeStates(rig.view, rig.engine);
  let lastUs = startUs;
  const both = Promise.all([states.shown, states.decidedFrom]).finally(() => (work.isDone = true));
  while (!work.isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    const nowUs = cpuUs();
    longestUs = Math.max(longestUs, nowUs - lastUs);
    lastUs = nowUs;
    turns += 1;
  }
  const [shown, decidedFrom] = await both;
  assert.equal(shown, hashOfState(writeState(rig.view.state)));
  assert.equal(decidedFrom, shown);
  const wholeUs = lastUs - startUs;
  assert.ok(turns > 8, `the loop turned ${turns} times`);
  assert.ok(longestUs < wholeUs / 2, `${longestUs} of ${wholeUs} µs of this thread's time in one stretch`);
});

/** Of this thread alone: others may be busy beside it. */
const cpuUs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return user + system;
};

test('the pieces of a state are its text', async () => {
  const rig = await startRig();
  await runContainer(rig);
  const text = writeState(rig.view.state);
  assert.equal([...statePieces(rig.view.state)].join(''), text);
  const { facts, network, podCidr, sandboxes, containers, images, names, effects, calls } = rig.view.state;
  const lists = { sandboxes, containers, images, effects, calls };
  const values = Object.fromEntries(Object.entries(lists).map(([name, map]) => [name, [...map.values()]]));
  assert.deepEqual(
    JSON.parse(text),
    JSON.parse(JSON.stringify({ facts, network, podCidr, names: [...names], ...values })),
  );
});

test('C14: what is decided from is compared only while nothing is on its way to the disk, and soon then', async () => {
  let release: () => void = () => {};
  let holding = false;
  const rig = await startRig({
    commit: () => (holding ? new Promise((resolve) => (release = resolve)) : Promise.resolve()),
  });
  holding = true;
  const reply = rig.call({ method: 'UpdateRuntimeConfig', podCidr: '10.0.0.0/16' });
  await rig.settle();
  assert.equal(takeStates(rig.view, rig.engine).decidedFrom, null);
  assert.equal((await takeSettledStates(rig.view, rig.engine, 1)).decidedFrom, null);
  const later = takeSettledStates(rig.view, rig.engine, patienceMs);
  holding = false;
  release();
  await reply;
  const { seq, shown, decidedFrom } = await later;
  assert.equal(seq, rig.contents.rows.length);
  assert.equal(await decidedFrom, await shown);
});

interface Kept {
  readonly rig: Rig;
  readonly reports: string[];
  readonly infos: string[];
}

/** An engine on a real journal, of which a snapshot is taken every few records. */
async function keepHouse(t: TestContext, onInfo = (): void => {}): Promise<Kept> {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  const rig = await startRig({ journal });
  const [reports, infos]: [string[], string[]] = [[], []];
  const day = 86_400_000;
  const housekeeping = startHousekeeping({
    config: {
      snapshotEveryRecords: 5,
      retention: {
        readsMs: day,
        execProbesMs: day,
        execSessionsMs: null,
        refusedCallsMs: null,
        removedPodsMs: day,
        sizeBytesMax: 2 ** 30,
      },
    },
    journalPath: path,
    journal,
    snapshotSeq: 0,
    view: rig.view,
    engine: rig.engine,
    nowNs: () => 0n,
    log: {
      info: (_fields, message) => void [infos.push(message), onInfo()],
      error: (fields) => reports.push(JSON.stringify(fields)),
    },
    report: (message) => reports.push(message),
  });
  onCleanup(t, () => housekeeping.close());
  return { rig, reports, infos };
}

async function change(rig: Rig): Promise<void> {
  await rig.call({ method: 'UpdateRuntimeConfig', podCidr: '10.0.0.0/16' });
}

async function until(kept: Kept, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + patienceMs;
  while (!holds()) {
    assert.ok(performance.now() < endMs, `${kept.reports.join()} ${kept.infos.join()}`);
    await change(kept.rig);
    await sleep(5);
  }
}

test('C14: a snapshot is held against what is decided from as well', async (t) => {
  const kept = await keepHouse(t);
  await until(kept, () => kept.infos.includes('what is decided from is what was recorded'));
  assert.ok(kept.infos.includes('snapshot'));
  assert.deepEqual(kept.reports, []);
});

test('C14: a write state that is not what was recorded is a finding', async (t) => {
  const kept = await keepHouse(t);
  kept.rig.engine.state.names.set('nobody', 'asked for this');
  await until(kept, () => kept.reports.length > 0);
  assert.match(
    kept.reports[0] ?? '',
    /^What is decided from differs, after record \d+, from what the journal folds to/,
  );
});

test('C12: of an exception in keeping the journal in shape its message is left out', async (t) => {
  const kept = await keepHouse(t, () => {
    throw new Error('canary');
  });
  await until(kept, () => kept.reports.length > 0);
  assert.match(kept.reports.join(), /"message":"Error: \[message left out\]"/);
  assert.doesNotMatch(kept.reports.join(), /canary/);
});
