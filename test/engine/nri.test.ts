/** NRI plugins through the engine: what they say is in the journal, and is decided again without them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NriPlugin } from '../../src/domain/model/nri-plugins.ts';
import type { OciSpec } from '../../src/domain/model/oci.ts';
import { adjustedSpecOf } from '../../src/domain/nri/spec.ts';
import { pluginName } from '../../src/domain/nri/plugins.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { redecided } from '../support/redecided.ts';
import { exitOf, reasonOf, type Rig, runContainer, startRig } from './rig.ts';

const plugins: readonly NriPlugin[] = ['10', '20', '30'].map((index) => ({
  id: `${index}-p@1`,
  index,
  name: 'p',
  hooks: [
    'RunPodSandbox',
    'CreateContainer',
    'StartContainer',
    'PostStartContainer',
    'StopContainer',
    'RemoveContainer',
  ],
}));

const register = async (rig: Rig): Promise<void> => {
  for (const body of plugins.toReversed())
    await rig.engine.observe({ kind: 'NriNoted', note: { type: 'nri.plugin.registered', body } });
};

test('C13: a journal that three plugins had a part in is decided again to the same specs with none', async () => {
  const specs: OciSpec[] = [];
  const rig = await startRig({
    perform: {
      CallPlugins: async ({ hook, plugins: asked }) => ({
        answers: asked.map((plugin) => {
          const common = { plugin: pluginName(plugin), durationNs: '1' };
          const env = [`PLUGIN_${plugin.index}=yes`];
          return hook === 'CreateContainer'
            ? { ...common, answer: { hook, adjust: { env, annotations: { [plugin.index]: 'here' } } } }
            : { ...common, failure: { kind: 'unanswered', message: 'nothing' } };
        }),
      }),
      PrepareContainer: async ({ bundle }) => {
        specs.push(bundle.spec);
        return { rootfs: [] };
      },
    },
  });
  await register(rig);
  const { podSandboxId, containerId } = await runContainer(rig);
  const [spec] = specs;
  assert.deepEqual(
    spec?.process.env.filter((entry) => typeof entry === 'string' && entry.startsWith('PLUGIN')),
    ['PLUGIN_10=yes', 'PLUGIN_20=yes', 'PLUGIN_30=yes'],
  );
  const records = rig.contents.rows.flatMap(({ record }) => (record === null ? [] : (fromJournalRecord(record) ?? [])));
  const { state, differences } = redecided(records);
  assert.deepEqual(differences, []);
  const container = state.containers.get(containerId);
  assert.ok(container !== undefined && state.facts !== null);
  assert.deepEqual(adjustedSpecOf(state, state.facts, container), { ok: true, value: spec });
  await rig.engine.observe(exitOf(podSandboxId, containerId, 0));
  assert.equal(reasonOf(await rig.call({ method: 'RemoveContainer', containerId })), 'OK');
});

test('without plugins nothing is asked and nothing recorded', async () => {
  const rig = await startRig();
  await runContainer(rig);
  assert.ok(!rig.performed.includes('CallPlugins'));
});

test('plugins that have left are not asked', async () => {
  const rig = await startRig();
  await register(rig);
  for (const { id } of plugins)
    await rig.engine.observe({ kind: 'NriNoted', note: { type: 'nri.plugin.closed', body: { id, reason: 'gone' } } });
  await runContainer(rig);
  assert.ok(!rig.performed.includes('CallPlugins'));
  assert.equal(rig.view.state.nriPlugins, undefined);
});
