/** Plugins that are bound to some pods hear of no others. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { createBinding } from '../../../src/adapters/nri/binding.ts';
import { Container, PodSandbox } from '../../../src/wire/nri/api.ts';
import { requireRoot } from '../../support/netns.ts';
import { pluginSettings, startTested } from './adaptation.ts';
import { connectDouble } from './plugin-double.ts';

const pod = (id: string, namespace: string, labels: Record<string, string> = {}): PodSandbox =>
  PodSandbox.fromPartial({ id, namespace, labels });

before(requireRoot);

test('a plugin that is bound to nothing hears of everything', () => {
  const binding = createBinding(undefined);
  assert.ok(binding.includes(undefined) && binding.includes(pod('p', 'any')));
  const containers = [Container.fromPartial({ id: 'c', podSandboxId: 'gone' })];
  assert.deepEqual(binding.partOf([], containers), { pods: [], containers });
});

test('namespaces and labels have to be as wanted, all of them', () => {
  const binding = createBinding({ namespaces: ['a', 'b'], labels: { gpu: 'yes', tier: 'one' } });
  assert.ok(binding.includes(pod('p', 'a', { gpu: 'yes', tier: 'one', more: 'x' })));
  assert.ok(!binding.includes(pod('p', 'c', { gpu: 'yes', tier: 'one' })));
  assert.ok(!binding.includes(pod('p', 'a', { gpu: 'yes' })));
  assert.ok(!binding.includes(undefined));
});

test('no pod is remembered: each request is judged by what it says, however many there were', () => {
  const binding = createBinding({ namespaces: ['a'], labels: {} });
  for (let life = 0; life < 3; life += 1) assert.ok(binding.includes(pod(`mine-${life}`, 'a')));
  for (let life = 0; life < 3; life += 1) assert.ok(!binding.includes(pod(`mine-${life}`, '')));
});

test('a bound plugin is synchronized with its part, and asked about its part', { timeout: 60_000 }, async (t) => {
  const nri = await startTested(t, { settings: { plugins: { double: pluginSettings({ namespaces: ['a'] }) } } });
  const double = await connectDouble(t, nri.settings.socketPath);
  await double.register();
  const { id } = await nri.registered('double');
  const pods = [pod('mine', 'a'), pod('other', 'b')];
  const containers = pods.map((one) => Container.fromPartial({ id: `of-${one.id}`, podSandboxId: one.id }));
  assert.ok((await nri.synchronize(id, pods, containers)).ok);
  const [told] = double.synchronizations;
  assert.deepEqual([told?.pods, told?.containers], [[pods[0]], [containers[0]]]);
  const ask = async (one: PodSandbox): Promise<boolean> => (await nri.ask(id, 'StopPodSandbox', { pod: one })).ok;
  assert.deepEqual([await ask(pod('mine', 'a')), await ask(pod('other', 'b'))], [true, false]);
  assert.ok((await nri.ask(id, 'RemovePodSandbox', { pod: pod('mine', 'a') })).ok);
  assert.deepEqual(double.calls, ['Configure', 'Synchronize', 'StopPodSandbox', 'RemovePodSandbox']);
});
