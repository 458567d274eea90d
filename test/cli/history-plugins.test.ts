/** `scribe history --plugin`: what an NRI plugin had a part in, and what it said. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { NriPlugin } from '../../src/domain/model/nri-plugins.ts';
import { pluginName } from '../../src/domain/nri/plugins.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { exitOf, runContainer } from '../engine/rig.ts';
import { rowsOf } from './story.ts';
import { jsonLines, recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';

const pluginOf = (index: string, name: string, hooks: NriPlugin['hooks']): NriPlugin => ({
  ...{ id: `${index}-${name}@1`, index, name, hooks },
});

test('a plugin that only evicts is none that agreed, in SQL either', async (t) => {
  const node = await startNode({
    perform: {
      CallPlugins: async ({ hook, plugins }) => ({
        answers: plugins.map((plugin) => {
          const common = { plugin: pluginName(plugin), durationNs: '1' };
          if (hook !== 'CreateContainer') return common;
          return { ...common, answer: { hook, evictions: [{ containerId: 'greedy', reason: 'too much' }] } };
        }),
      }),
    },
  });
  const body = pluginOf('10', 'evictor', ['CreateContainer', 'StartContainer']);
  await node.engine.observe({ kind: 'NriNoted', note: { type: 'nri.plugin.registered', body } });
  await runContainer(node);
  const { dir } = await rootWith(t, recordsOf(node));
  const query = 'SELECT hook, decision FROM nri_decisions ORDER BY seq';
  const { stdout } = await scribe(['sql', '--root', dir, '--json', query]);
  assert.deepEqual(jsonLines(stdout), [
    { hook: 'CreateContainer', decision: 'evicted' },
    { hook: 'StartContainer', decision: 'agreed' },
  ]);
  const told = await scribe(['history', '--root', dir, '--events', '--plugin', 'evictor']);
  assert.match(told.stdout, /10-evictor evicted 1 container/);
});

describe('a history by NRI plugin', () => {
  const owner: Owner = cleanupAfterAll();
  let root: Root;

  before(async () => {
    const node = await startNode({
      perform: {
        SynchronizePlugin: async ({ plugin }) => {
          if (plugin.name !== 'unwilling') return { answers: [] };
          const message = `NRI plugin "${pluginName(plugin)}" refused Synchronize: I do not want to`;
          throw new FailureError('HostFailed', message);
        },
        CallPlugins: async ({ hook, plugins }) => ({
          answers: plugins.map((plugin) => {
            const common = { plugin: pluginName(plugin), durationNs: '1' };
            if (plugin.name === 'late') return { ...common, failure: { kind: 'unanswered', message: 'no word' } };
            return hook === 'CreateContainer'
              ? { ...common, answer: { hook, adjust: { env: ['A=b', '-B'] } } }
              : common;
          }),
        }),
        KillTask: async ({ podSandboxId, containerId }) => {
          setImmediate(() => void node.engine.observe(exitOf(podSandboxId, containerId, 137)));
          return { alreadyGone: false };
        },
      },
    });
    for (const body of [
      pluginOf('10', 'setter', ['CreateContainer']),
      pluginOf('20', 'late', ['StartContainer']),
      pluginOf('30', 'unwilling', ['StopContainer']),
    ])
      await node.engine.observe({ kind: 'NriNoted', note: { type: 'nri.plugin.registered', body } });
    const { containerId } = await runContainer(node);
    const evicted = { plugin: '20-late', reason: 'too much' };
    await node.ask({ method: 'StopContainer', containerId, timeoutSeconds: '0', evicted }, null);
    const closed = { id: '20-late@1', reason: 'it left' };
    await node.engine.observe({ kind: 'NriNoted', note: { type: 'nri.plugin.closed', body: closed } });
    root = await rootWith(owner, recordsOf(node));
  });

  const told = async (...words: readonly string[]): Promise<string[]> => {
    const { exitStatus, stdout, stderr } = await scribe(['history', '--root', root.dir, ...words]);
    assert.equal(exitStatus, 0, stderr);
    return rowsOf(stdout).map(({ WHAT = '', OUTCOME = '' }) => `${WHAT}: ${OUTCOME}`);
  };
  const ofSetter = [
    'NRI plugin registered: 10-setter: CreateContainer',
    'CreateContainer: OK (registry.test/app:1)',
    '  done: CallPlugins: 10-setter adjusted',
    '  container adjusted: Env B taken away by 10-setter, Env A by 10-setter',
  ];

  test('its answers and what it set, by its name with and without the index', async () => {
    assert.deepEqual(await told('--plugin', 'setter'), ofSetter);
    assert.deepEqual(await told('--plugin', '10-setter'), ofSetter);
  });

  test('what it did not answer, evicted, and that it left', async () => {
    assert.deepEqual(await told('--plugin', 'late'), [
      'NRI plugin registered: 20-late: StartContainer',
      'StartContainer: OK',
      '  done: CallPlugins: 20-late unanswered: no word',
      'StopContainer: OK (evicted by 20-late: too much)',
      '  container stopping: signal 15, evicted by 20-late: too much',
      'NRI plugin closed: 20-late@1: it left',
    ]);
  });

  test('that it would not be told what there is', async () => {
    assert.deepEqual(await told('--plugin', 'unwilling'), [
      'NRI plugin registered: 30-unwilling: StopContainer',
      'failed: SynchronizePlugin: NRI plugin "30-unwilling" refused Synchronize: I do not want to',
    ]);
  });

  test('with --events all of these calls, and in JSON the records', async () => {
    const all = await told('--plugin', 'setter', '--events');
    assert.ok(all.includes('  container created: '), all.join('\n'));
    assert.ok(!all.some((row) => row.startsWith('StartContainer')));
    const { stdout } = await scribe(['history', '--root', root.dir, '--json', '--plugin', 'setter']);
    assert.deepEqual(
      jsonLines<{ type: string }>(stdout).map(({ type }) => type),
      ['nri.plugin.registered', 'call.received', 'effect.ended', 'container.adjusted', 'call.completed'],
    );
  });

  test('of a plugin that never was nothing is told', async () => {
    const { exitStatus, stderr } = await scribe(['history', '--root', root.dir, '--plugin', 'nobody']);
    assert.deepEqual([exitStatus, stderr], [0, 'scribe: Nothing was recorded that fits.\n']);
  });
});
