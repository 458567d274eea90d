/**
 * What an NRI plugin wants without having been asked: each update is submitted for itself, and what failed is told. What it
 * wants beside what it was asked about comes of that only where nobody refuses it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { from, NEVER, toArray, firstValueFrom } from 'rxjs';
import type { NriPlugins, TakeNriUpdates } from '../../src/adapters/nri/plugins.ts';
import { startNri } from '../../src/daemon/nri.ts';
import { wishesOf } from '../../src/daemon/nri-wishes.ts';
import type { PluginAnswer } from '../../src/domain/model/nri-plugins.ts';
import { containerStream } from '../../src/domain/model/records.ts';
import { initialState } from '../../src/domain/model/state.ts';
import type { SubmitCall } from '../../src/engine/ports.ts';
import { ContainerUpdate } from '../../src/wire/nri/api.ts';

const update = (containerId: string, ignoreFailure = false): ContainerUpdate =>
  ContainerUpdate.fromPartial({ containerId, ignoreFailure });

test('an update that can not be is refused alone, and told as failed unless it may fail', async () => {
  const submitted: unknown[] = [];
  const warnings: unknown[] = [];
  const taken = Promise.withResolvers<TakeNriUpdates>();
  const plugins: NriPlugins = {
    ask: () => assert.fail('nobody is asked'),
    synchronize: () => assert.fail('nobody is synchronized'),
    dismiss: () => assert.fail('nobody is dismissed'),
    changes: NEVER,
    start: async (take) => taken.resolve(take),
    status: () => [],
    close: async () => undefined,
  };
  const submit: SubmitCall = async (draft) => {
    submitted.push('containerId' in draft ? draft.containerId : draft.method);
    const failure = { reason: 'WrongState', message: 'not now' } as const;
    const isRefused = 'containerId' in draft && draft.containerId === 'busy';
    return { outcome: isRefused ? { ok: false, failure } : { ok: true, value: {} }, attachment: null };
  };
  await startNri({
    plugins,
    submit,
    observe: async () => undefined,
    view: { state: initialState(), recordsOf: () => NEVER },
    log: { warn: (about: unknown) => warnings.push(about) } as never,
  });
  const take = await taken.promise;
  const wanted = [update('a'), update('', true), update(''), update('busy'), update('c')];
  const failed = await take({ pluginId: '10-odd@1', update: wanted, evict: [] });
  assert.deepEqual(submitted, ['a', 'busy', 'c']);
  assert.deepEqual(failed, [wanted[2], wanted[3]]);
  assert.equal(warnings.length, 3);
  assert.match(JSON.stringify(warnings), /update\[2\]\.container_id, which is empty/);
});

test('what is wanted of others beside a change of limits is dropped with the change, when a later plugin refuses that', async () => {
  const evictions = [{ containerId: 'third', reason: 'room' }];
  const updates = [{ containerId: 'asked' }, { containerId: 'other', resources: { pids: { limit: '7' } } }];
  const first: PluginAnswer = {
    plugin: '10-first',
    durationNs: '1',
    answer: { hook: 'UpdateContainer', updates, evictions },
  };
  const wishesBeside = async (later: Pick<PluginAnswer, 'answer' | 'failure'>): Promise<unknown> => {
    const answers = [first, { plugin: '20-later', durationNs: '1', ...later }];
    const record = { stream: containerStream('asked'), body: { kind: 'CallPlugins', result: { answers } } };
    const wishes = wishesOf({ state: initialState(), recordsOf: () => from([record]) as never });
    return firstValueFrom(wishes.pipe(toArray()));
  };
  assert.deepEqual(await wishesBeside({ failure: { kind: 'refused', message: 'no' } }), []);
  assert.deepEqual(await wishesBeside({ failure: { kind: 'unanswered', message: 'late', isRequired: true } }), []);
  assert.deepEqual(await wishesBeside({ failure: { kind: 'unanswered', message: 'late' } }), [
    { plugin: '10-first', updates: [updates[1]], evictions: [] },
    { plugin: '10-first', updates: [], evictions },
  ]);
});

test("what one wants in reply to Synchronize is done in its order, also twice of one container; two that are in each other's way are told", async () => {
  const shares = (value: string) => ({ containerId: 'c', resources: { cpu: { shares: value } } });
  const wished = async (kind: string, stream: string, answers: readonly PluginAnswer[]): Promise<unknown> => {
    const record = { stream, body: { kind, result: { answers } } };
    const wishes = wishesOf({ state: initialState(), recordsOf: () => from([record]) as never });
    return firstValueFrom(wishes.pipe(toArray()));
  };
  const updates = [shares('100'), shares('200'), { containerId: 'd' }];
  const synchronized: PluginAnswer = {
    plugin: '10-odd',
    durationNs: '1',
    answer: { hook: 'Synchronize', updates },
  };
  assert.deepEqual(await wished('SynchronizePlugin', 'node', [synchronized]), [
    { plugin: '10-odd', updates, evictions: [] },
  ]);
  const stopped = (plugin: string): PluginAnswer => ({
    plugin,
    durationNs: '1',
    answer: { hook: 'StopContainer', updates: [shares('100')] },
  });
  const told = await wished('CallPlugins', containerStream('b'), [stopped('10-a'), stopped('20-b')]);
  const changed = [stopped('10-a'), stopped('20-b')].map((one) => ({
    ...one,
    answer: {
      hook: 'UpdateContainer' as const,
      updates: [shares('1')],
      evictions: [{ containerId: 'd', reason: 'no' }],
    },
  }));
  assert.deepEqual(await wished('CallPlugins', containerStream('b'), changed), []);
  assert.match(JSON.stringify(told), /"plugin":"10-a, 20-b","updates":\[\],.*PluginConflict.*both tried to set/);
});
