/** Telling a plugin all there is, in chunks that messages hold, and what it answers. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { ContainerUpdate, Container, PodSandbox, SynchronizeResponse } from '../../../src/wire/nri/api.ts';
import { synchronizeTimeoutMs } from '../../../src/adapters/nri/synchronize.ts';
import { requireRoot } from '../../support/netns.ts';
import { startTested } from './adaptation.ts';
import { connectDouble } from './plugin-double.ts';

const OBJECTS = 2_000;
const pods = Array.from({ length: OBJECTS }, (_, n) =>
  PodSandbox.fromPartial({ id: `pod-${n}`, labels: { app: 'a'.repeat(500) } }),
);
/** 8 MB of them. */
const containers = Array.from({ length: OBJECTS }, (_, n) =>
  Container.fromPartial({
    id: `container-${n}`,
    podSandboxId: `pod-${n}`,
    env: Array.from({ length: 40 }, (_unused, at) => `VARIABLE_${at}=${'x'.repeat(85)}`),
  }),
);
const update = ContainerUpdate.fromPartial({
  containerId: 'container-1',
  linux: { resources: { cpu: { shares: { value: '7' } } } },
});
const answer = (more: boolean): Uint8Array =>
  SynchronizeResponse.encode({ update: more ? [] : [update], more }).finish();

before(requireRoot);

describe('synchronizing a plugin', { timeout: 60_000 }, () => {
  it('is one message with all there is, and nothing is an empty one', async (t) => {
    const nri = await startTested(t);
    const double = await connectDouble(t, nri.settings.socketPath, {
      handlers: { Synchronize: async () => answer(false) },
    });
    await double.register();
    const { id } = await nri.registered('double');
    const synchronized = await nri.synchronize(id, [], []);
    assert.deepEqual(synchronized.ok && synchronized.update, [update]);
    assert.equal(nri.status()[0]?.state, 'active');
    const again = await nri.synchronize(id, [], []);
    assert.equal(!again.ok && again.why, 'refused');
    assert.deepEqual(double.calls, ['Configure', 'Synchronize']);
  });

  it('is several messages where one does not hold it', async (t) => {
    const nri = await startTested(t);
    const double = await connectDouble(t, nri.settings.socketPath);
    await double.register();
    const { id } = await nri.registered('double');
    const synchronized = await nri.synchronize(id, pods, containers);
    assert.deepEqual(synchronized.ok && synchronized.update, []);
    const told = double.synchronizations;
    assert.deepEqual(
      told.map(({ more }) => more),
      [...Array.from({ length: told.length - 1 }, () => true), false],
    );
    assert.ok(told.length >= 3 && told.length <= 4, `${told.length} messages`);
    assert.deepEqual(
      told.flatMap((request) => request.pods),
      pods,
    );
    assert.deepEqual(
      told.flatMap((request) => request.containers),
      containers,
    );
  });

  it('ends with a plugin that takes a part for the whole', async (t) => {
    const nri = await startTested(t);
    const double = await connectDouble(t, nri.settings.socketPath, {
      handlers: { Synchronize: async () => answer(false) },
    });
    await double.register();
    const { id } = await nri.registered('double');
    const waiting = nri.synchronize(id, pods, containers);
    const behind = nri.ask(id, 'RunPodSandbox', { pod: undefined });
    const synchronized = await waiting;
    assert.equal(!synchronized.ok && synchronized.why, 'refused');
    assert.match((!synchronized.ok && synchronized.message) || '', /it takes a part of what there is for the whole/);
    assert.match(await nri.gone(id), /^it could not be synchronized: .*it takes a part of what there is for the whole/);
    const asked = await behind;
    assert.equal(!asked.ok && asked.why, 'closed');
  });

  it('ends with a plugin that refuses it or is too late', async (t) => {
    const nri = await startTested(t, { settings: { requestTimeoutMs: 300 } });
    const bad = {
      refuses: () => Promise.reject<Uint8Array>(new Error('no room')),
      hangs: () => new Promise<Uint8Array>(() => undefined),
    };
    for (const [name, Synchronize] of Object.entries(bad)) {
      const double = await connectDouble(t, nri.settings.socketPath, { name, handlers: { Synchronize } });
      await double.register();
      const { id } = await nri.registered(name);
      const synchronized = await nri.synchronize(id, [], []);
      assert.equal(!synchronized.ok && synchronized.why, name === 'hangs' ? 'timedOut' : 'refused');
      const why = name === 'hangs' ? 'The NRI plugin 10-hangs did not answer Synchronize within 300 ms' : 'no room';
      assert.equal(await nri.gone(id), `it could not be synchronized: ${why}`);
      // Whoever waited until it was told what there is hears why it is not asked.
      const behind = await nri.ask(id, 'RunPodSandbox', { pod: undefined });
      const absent = `it is not connected any more (it could not be synchronized: ${why})`;
      assert.equal(!behind.ok && behind.message, `The NRI plugin 10-${name} was not asked: ${absent}.`);
      await double.mux.closed;
    }
    assert.deepEqual(nri.status(), []);
  });

  it('has more time the more there is', () => {
    assert.equal(synchronizeTimeoutMs(2_000, 0), 2_000);
    assert.equal(synchronizeTimeoutMs(2_000, 4_000), 42_000);
  });
});
