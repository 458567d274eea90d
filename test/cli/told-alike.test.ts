/**
 * What a call was about, told alike by history, report, export and sql: calls that joined others, that made nothing, that restore
 * pods, and that only read.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { containerStream } from '../../src/domain/model/records.ts';
import { openQueries } from '../../src/journal/queries.ts';
import { exitOf, idOf } from '../engine/rig.ts';
import { CHECKPOINT_PATH } from '../simulation/checkpoint.ts';
import { IMAGE } from '../simulation/images.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { rowsOf, tell } from './story.ts';
import { jsonLines, type Node, recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';

const image = IMAGE.repoTags[0] ?? '';

interface Told {
  readonly seq: number;
  readonly type: string;
  readonly call: number | null;
  readonly object: {
    readonly kind: string;
    readonly id: string;
    readonly name?: string;
    readonly namespace?: string;
    readonly pod?: { readonly namespace: string; readonly name: string } | null;
  } | null;
}

interface Row {
  readonly record: number;
  readonly method: string;
  readonly namespace: string | null;
  readonly pod: string | null;
  readonly container: string | null;
}

const podOf = (name: string, app: string) => ({
  metadata: { name, namespace: 'shop', uid: `shop-${name}` },
  labels: { app },
});
const containerOf = (name: string, from: string, app: string) => ({
  metadata: { name },
  image: { image: from },
  labels: { app },
});
const restore = (name: string, app: string, from: string): CallDraft => ({
  method: 'RestorePod',
  checkpointPath: CHECKPOINT_PATH,
  config: podOf(name, app),
  runtimeHandler: '',
  containerConfigs: ['c0', 'c1'].map((one) => containerOf(one, from, `${app}-${one}`)),
});

describe('a call is told of alike', () => {
  const owner: Owner = cleanupAfterAll();
  let root: Root;
  let head = 0;
  const ids = { web: '', restored: '' };

  before(async () => {
    const node = await startNode();
    await node.ask({ method: 'PullImage', image, credentials: null });
    const run: CallDraft = { method: 'RunPodSandbox', config: podOf('web', 'web'), runtimeHandler: '' };
    ids.web = idOf((await Promise.all([node.ask(run), node.ask(run)]))[1]);
    ids.restored = idOf(await node.ask(restore('restored', 'old', image)));
    await node.ask(restore('restored', 'old', image));
    await node.ask(restore('unlucky', 'lost', 'nowhere.test/none:1'));
    await node.ask({ method: 'LoadImages' });
    const config = containerOf('none', 'nowhere.test/none:1', 'unmade');
    await node.ask({ method: 'CreateContainer', podSandboxId: ids.web, config });
    // As kubelet asks for one that has gone meanwhile.
    const gone = { image: `sha256:${'9'.repeat(64)}`, userSpecifiedImage: 'nowhere.test/gone:1' };
    const asked = { ...containerOf('gone', '', 'unmade'), image: gone };
    await node.ask({ method: 'CreateContainer', podSandboxId: ids.web, config: asked });
    const [containerId = ''] = [...node.engine.state.containers.keys()];
    const read = { rpc: 'ContainerStatus', request: { containerId }, durationNs: '5' };
    await node.ask({ method: 'Read', about: containerStream(containerId), ...read });
    await node.ask({ method: 'Read', about: `sandbox/${ids.web}`, ...read, rpc: 'PodSandboxStatus' });
    root = await rootWith(owner, recordsOf(node));
    head = recordsOf(node).length;
  });

  const told = async (command: string, ...words: readonly string[]): Promise<Told[]> => {
    const shape = command === 'export' ? [] : ['--json'];
    const { exitStatus, stdout, stderr } = await scribe([command, '--root', root.dir, ...shape, ...words]);
    assert.equal(exitStatus, 0, stderr);
    return jsonLines<Told>(stdout);
  };
  const rows = async (...words: readonly string[]): Promise<Row[]> =>
    jsonLines<Row>((await scribe(['report', 'slowest', '--root', root.dir, '--json', '-n', '99', ...words])).stdout);
  const places = ({ object }: Told): readonly (string | null)[] => {
    if (object?.kind === 'container')
      return [object.pod?.namespace ?? null, object.pod?.name ?? null, object.name ?? null];
    return object?.kind === 'pod' ? [object.namespace ?? null, object.name ?? null, null] : [null, null, null];
  };

  test('by the same names in each command', async () => {
    const received = (await told('history', '--reads')).filter(({ type }) => type === 'call.received');
    const expected = received.map((record) => [record.seq, ...places(record)]);
    assert.deepEqual(
      expected.map(([, ...names]) => names),
      [
        [null, null, null],
        ...Array.from({ length: 2 }, () => ['shop', 'web', null]),
        ...Array.from({ length: 2 }, () => ['shop', 'restored', null]),
        ['shop', 'unlucky', null],
        [null, null, null],
        ['shop', 'web', 'none'],
        ['shop', 'web', 'gone'],
        ['shop', 'restored', 'c0'],
        ['shop', 'web', null],
      ],
    );
    const counted = (await rows()).sort((one, other) => one.record - other.record);
    assert.deepEqual(
      counted.map(({ record, namespace, pod, container }) => [record, namespace, pod, container]),
      expected,
    );
    assert.deepEqual(
      counted.slice(-2).map(({ method }) => method),
      ['ContainerStatus', 'PodSandboxStatus'],
    );
    const queries = openQueries(root.journalPath);
    const asked = [...queries.ask('SELECT seq, namespace, pod, container, pod_id FROM calls ORDER BY seq').rows];
    queries.close();
    assert.deepEqual(
      asked.map(([seq, ...names]) => [Number(seq), ...names.slice(0, 3)]),
      expected,
    );
    assert.deepEqual(
      [...asked.slice(1, 3), asked.at(-1)].map((row) => row?.[4]),
      [ids.web, ids.web, ids.web],
    );
    assert.deepEqual(
      asked.slice(3, 5).map((row) => row[4]),
      [ids.restored, ids.restored],
    );
    const table = rowsOf((await scribe(['history', '--root', root.dir, '--method', 'RestorePod'])).stdout);
    assert.match(table[0]?.['OBJECT'] ?? '', /^shop\/restored \w{13}, shop\/restored c0 \w{13}/);
    assert.equal(table[2]?.['OBJECT'], 'shop/unlucky');
  });

  test('by what was done on its behalf until it ended, and not after', async () => {
    const { records, nginx } = await tell();
    const pull = records.find(({ body }) => body.includes('"PullImage"')) ?? assert.fail();
    const last = records.at(-1) ?? assert.fail();
    const late = { type: 'effects.requested', stream: containerStream(nginx), call: pull.seq, cause: last.seq };
    const { dir } = await rootWith(owner, [
      ...records,
      { ...last, ...late, seq: last.seq + 1, body: '{"effects":[]}' },
    ]);
    const counted = await scribe(['report', 'slowest', '--root', dir, '--json', '--container', nginx]);
    const methods = jsonLines<Row>(counted.stdout).map(({ method }) => method);
    assert.ok(methods.includes('CreateContainer') && !methods.includes('PullImage'), methods.join(' '));
  });

  test('by the id of what it was answered with, where it joined another', async () => {
    const exported = (await told('export')).filter(({ type }) => type === 'call.completed');
    const [, ...answered] = exported.slice(0, 5);
    const answers = [ids.web, ids.web, ids.restored, ids.restored];
    assert.deepEqual(
      answered.map(({ object }) => object?.id),
      answers,
    );
    const history = (await told('history')).filter(({ type }) => type === 'call.received');
    assert.deepEqual(
      history.slice(1, 5).map(({ object }) => object?.id),
      answers,
    );
  });

  test('by whatever chooses it, in each command and in each part of a range', async () => {
    for (const [words, methods] of [
      [['--pod', 'shop/unlucky'], ['RestorePod']],
      [['--label', 'app=lost'], ['RestorePod']],
      [['--label', 'app=lost-c1'], ['RestorePod']],
      [
        ['--container', 'c0'],
        ['RestorePod', 'RestorePod', 'RestorePod'],
      ],
      [
        ['--label', 'app=unmade'],
        ['CreateContainer', 'CreateContainer'],
      ],
      [
        ['--pod', 'restored'],
        ['RestorePod', 'RestorePod'],
      ],
    ] as const) {
      const whole = await told('history', ...words);
      const calls = whole.filter(({ type }) => type === 'call.received').map(({ seq }) => seq);
      assert.equal(calls.length, methods.length, words.join(' '));
      const backwards = (await told('history', '--reverse', ...words)).filter(({ type }) => type === 'call.received');
      assert.deepEqual(backwards.map(({ seq }) => seq).reverse(), calls, words.join(' '));
      const counted = (await rows(...words)).filter(({ method }) => !/Status$/.test(method));
      assert.deepEqual(
        counted.map(({ record }) => record).sort((one, other) => one - other),
        calls,
        words.join(' '),
      );
      for (const seq of calls) {
        const cut = await told('history', ...words, '--since', String(seq), '--until', String(seq));
        assert.deepEqual([...new Set(cut.map(({ call }) => call))], [seq], words.join(' '));
        const ended = whole.find(({ type, call }) => type === 'call.completed' && call === seq);
        const after = await told('export', ...words, '--since', String(seq + 1), '--until', String(head));
        assert.ok(
          after.some((record) => record.seq === ended?.seq),
          `the end of call ${seq}: ${words.join(' ')}`,
        );
      }
    }
    for (const words of [
      ['--label', 'app=web'],
      ['--image', IMAGE.id],
      ['--image', image],
      ['--image', 'nowhere.test/none:1'],
      ['--image', 'nowhere.test/gone:1'],
    ]) {
      const calls = (await told('history', ...words)).filter(({ type }) => type === 'call.received');
      assert.ok(calls.length > 0, words.join(' '));
      const counted = (await rows(...words)).filter(({ method }) => !/Status$/.test(method));
      assert.deepEqual(
        counted.map(({ record }) => record).sort((one, other) => one - other),
        calls.map(({ seq }) => seq),
        words.join(' '),
      );
    }
    const lost = await told('history', '--container', 'c0');
    assert.equal(new Set(lost.map(({ call }) => call)).size, 3);
    assert.ok((await told('history', '--image', 'nowhere.test/none:1')).length === 4);
  });

  test('why knows what was to be restored, and what became of a pod that was asked for again', async (t) => {
    const why = async (dir: string, thing: string): Promise<string> => {
      const { exitStatus, stdout, stderr } = await scribe(['why', '--root', dir, thing]);
      assert.equal(exitStatus, 0, stderr);
      return stdout;
    };
    for (const thing of ['shop/unlucky', 'pod:unlucky', 'shop/unlucky/c1'])
      assert.match(
        await why(root.dir, thing),
        /^RestorePod of pod shop\/unlucky by .* failed after .* NOT_FOUND/,
        thing,
      );

    const node: Node = await startNode({
      perform: {
        KillTask: async ({ podSandboxId, containerId }) => {
          setImmediate(() => void node.engine.observe(exitOf(podSandboxId, containerId, 137, 11)));
          return { alreadyGone: false };
        },
      },
    });
    const run: CallDraft = { method: 'RunPodSandbox', config: podOf('gone', 'web'), runtimeHandler: '' };
    const podSandboxId = idOf(await node.ask(run));
    await node.ask(run);
    await node.ask({ method: 'RemovePodSandbox', podSandboxId });
    const { dir } = await rootWith(t, recordsOf(node));
    assert.match(await why(dir, 'shop/gone'), /^Pod shop\/gone \S+ was removed/);
  });
});
