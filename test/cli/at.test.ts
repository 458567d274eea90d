/** `scribe at` and `scribe diff` on a journal that the real engine wrote: the node as it was, and what changed. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { idOf } from '../engine/rig.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { image, rowsOf, seqOf, startNs, type Story, tell } from './story.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { jsonLines, recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';

interface Listed {
  readonly kind: string;
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly exit: { readonly exitStatus: number } | null;
}

interface Pulled {
  readonly image: { readonly repoDigests: readonly string[] };
}

interface Change {
  readonly change: string;
  readonly kind: string;
  readonly id: string;
  readonly fields: readonly { readonly field: string; readonly before: unknown; readonly after: unknown }[];
}

describe('at', () => {
  const owner: Owner = cleanupAfterAll();
  let story: Story;
  let root: Root;

  before(async () => {
    story = await tell();
    root = await rootWith(owner, story.records);
  });

  const get = async (moment: string, ...words: readonly string[]): Promise<Listed[]> => {
    const { exitStatus, stdout, stderr } = await scribe(['at', moment, 'get', ...words, '--json', '--root', root.dir]);
    assert.equal(exitStatus, 0, stderr);
    return jsonLines<Listed>(stdout);
  };
  const statesOf = (listed: readonly Listed[]): string[] => listed.map(({ name, state }) => `${name} ${state}`);

  test('a container is what it was just before and just after each of its records', async () => {
    const started = seqOf(story, 'container.started', story.nginx);
    assert.deepEqual(statesOf(await get(String(started - 1), 'containers')), ['nginx CONTAINER_CREATED']);
    assert.deepEqual(statesOf(await get(String(started), 'containers')), ['nginx CONTAINER_RUNNING']);
    const exited = await get(
      String(seqOf(story, 'container.exited', story.nginx)),
      'container',
      '--pod',
      'default/web',
    );
    assert.deepEqual(
      exited.map(({ id, exit }) => [id, exit?.exitStatus]),
      [[story.nginx, 137]],
    );
    assert.deepEqual(
      await get(String(seqOf(story, 'container.removed', story.nginx)), 'containers', '--pod', story.web),
      [],
    );
  });

  test('a time means all that was recorded by then', async () => {
    const atSecond = (second: number): string => `@${startNs / 1_000_000_000n + BigInt(second)}`;
    assert.deepEqual(await get(atSecond(1), 'pods'), []);
    assert.deepEqual(statesOf(await get(atSecond(3), 'pods')), ['web SANDBOX_READY']);
    const early = await scribe(['at', '@1', 'get', 'pods', '--root', root.dir]);
    assert.equal(early.exitStatus, 1);
    assert.match(early.stderr, /Nothing was recorded by then/);
  });

  test('now is the node as it is, also where its clock went ahead of this one', async (t) => {
    const centuriesNs = 200n * 365n * 86_400_000_000_000n;
    const records = story.records.map((record) => ({ ...record, atNs: record.atNs + centuriesNs }));
    const { dir } = await rootWith(t, records);
    const { exitStatus, stdout, stderr } = await scribe(['at', 'now', 'get', 'pods', '--root', dir]);
    assert.equal(exitStatus, 0, stderr);
    assert.match(stderr, new RegExp(`, after record ${records.length}\\.\n`));
    assert.equal(rowsOf(stdout).length, 1);
    const history = await scribe(['history', '--until', 'now', '--json', '--root', dir]);
    assert.ok(jsonLines(history.stdout).length > 20, history.stderr);
  });

  test('tables for people: pods, containers and images, and which moment it is', async () => {
    const last = String(story.records.length);
    const { stdout, stderr } = await scribe(['at', last, 'get', 'pods', '--utc', '--root', root.dir]);
    assert.match(stderr, /^As of 20\d\d-.*Z, after record \d+\.\n/);
    assert.deepEqual(
      rowsOf(stdout).map(({ POD, STATE }) => `${POD} ${STATE}`),
      ['test/web SANDBOX_NOTREADY'],
    );
    const images = await scribe(['at', last, 'get', 'images', '--root', root.dir]);
    assert.equal(rowsOf(images.stdout)[0]?.['IMAGE'], image);
  });

  test('a socket is not made where none can be, and no directory is made for it', async () => {
    const noPlace = join(root.dir, 'no-such');
    for (const [path, said] of [
      [join(noPlace, 'at.sock'), `There is no directory ${noPlace}: make it, or name another path.`],
      [root.journalPath, `${root.journalPath} is there, and is no socket: name another path.`],
      [
        `/tmp/${'s'.repeat(103)}`,
        `/tmp/${'s'.repeat(103)} has 108 bytes, and the path of a socket can have at most 107: name a shorter one.`,
      ],
    ] as const) {
      const { exitStatus, stderr } = await scribe(['at', '5', '--listen', path, '--root', root.dir]);
      assert.deepEqual([exitStatus, stderr], [1, `scribe: ${said}\n`]);
    }
    assert.ok(!existsSync(noPlace));
  });

  test('what cannot be meant is refused with the remedy', async () => {
    for (const [words, said] of [
      [['at', 'now', 'get', 'pobs'], /did you mean pods\?/],
      [['at', 'now', 'show', 'pods'], /"show" is not known: say "get" and one of pods, containers, images/],
      [['at', 'then', 'get', 'pods'], /MOMENT then: that is no time/],
      [['at', 'now', 'pods'], /"get" is missing before "pods"/],
      [['at', 'get', 'pods'], /MOMENT comes before "get": scribe at now get pods\./],
      [['at', 'get', 'pods', '2h'], /MOMENT comes before "get": scribe at 2h get pods\./],
      [['at', 'now'], /What to show is missing: say "get" and one of pods, containers, images/],
      [['at', 'now', 'get', 'pods', '--listen', '/tmp/x.sock'], /"get" and --listen: give one of them/],
      [['at', 'now', '--listen', '/tmp/x.sock', '--namespace', 'a'], /serves all .* does not go with --namespace\./],
      [['at', 'now', '--listen', '/tmp/x.sock', '--json'], /serves all of the node: it does not go with --json\./],
    ] as const) {
      const { exitStatus, stderr } = await scribe([...words, '--root', root.dir]);
      assert.equal(exitStatus, 2);
      assert.match(stderr, said);
    }
    const beyond = await scribe(['at', '999999', 'get', 'pods', '--root', root.dir]);
    assert.equal(beyond.exitStatus, 1);
    assert.match(beyond.stderr, /There is no record 999999: the journal ends with record \d+\./);
  });

  const changes = async (from: number, to: number, ...choices: readonly string[]): Promise<Change[]> => {
    const words = ['diff', String(from), String(to), ...choices, '--json', '--root', root.dir];
    const { exitStatus, stdout, stderr } = await scribe(words);
    assert.equal(exitStatus, 0, stderr);
    return jsonLines<Change>(stdout);
  };

  test('a time zone that is not known is refused by each that shows local times, unless in UTC', async () => {
    const zone = process.env['TZ'];
    process.env['TZ'] = 'Europa/Berlin';
    try {
      for (const words of [
        ['at', '9', 'get', 'pods'],
        ['diff', '1', '9'],
        ['history'],
        ['journal', 'info'],
        ['report'],
        ['why', '--at', '9', 'web'],
      ]) {
        const { exitStatus, stdout, stderr } = await scribe([...words, '--root', root.dir]);
        assert.deepEqual([words[0], exitStatus, stdout], [words[0], 2, '']);
        assert.match(stderr, /TZ=Europa\/Berlin: that time zone is not known; did you mean TZ=Europe\/Berlin\?/);
        assert.equal((await scribe([...words, '--utc', '--root', root.dir])).exitStatus, 0, words[0]);
      }
      const { exitStatus } = await scribe(['export', '--since', '03:12', '--root', root.dir]);
      assert.equal(exitStatus, 2);
    } finally {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
    }
  });

  test('diff: what came, what went, and fields by name', async () => {
    const exited = seqOf(story, 'container.exited', story.nginx);
    const [change, ...more] = await changes(exited - 1, exited);
    assert.deepEqual([change?.change, change?.kind, change?.id, more], ['changed', 'container', story.nginx, []]);
    const kind = change?.fields.find(({ field }) => field === 'phase.kind');
    assert.deepEqual([kind?.before, kind?.after], ['running', 'exited']);

    const requested = seqOf(story, 'sandbox.requested', story.web);
    const removed = seqOf(story, 'sandbox.removed', story.web);
    const pods = (found: readonly Change[]): string[] =>
      found.filter(({ kind: sort }) => sort === 'sandbox').map((one) => `${one.change} ${one.id}`);
    assert.deepEqual(pods(await changes(requested - 1, requested)), [`came ${story.web}`]);
    assert.deepEqual(pods(await changes(removed - 1, removed)), [`went ${story.web}`]);
  });

  test('diff: only of what is chosen, as it is at either moment', async () => {
    const last = story.records.length;
    const ofPods = async (...choices: readonly string[]): Promise<string[]> =>
      (await changes(1, last, ...choices)).map(({ change, kind, id }) => `${change} ${kind} ${id}`);
    const lost = (await get(String(last), 'containers')).map(({ id }) => `came container ${id}`);
    assert.deepEqual(await ofPods('--pod', 'test/web'), [`came sandbox ${story.other}`, ...lost]);
    assert.deepEqual(await ofPods('--namespace', 'test'), await ofPods('--pod', story.other));
    assert.deepEqual(await ofPods('--container', 'nginx'), lost);
    assert.deepEqual(
      (await changes(1, last, '--image', image)).map(({ kind }) => kind),
      ['container', 'image'],
    );
    // All of it is gone at the end: what it was before chooses it.
    const removed = await changes(seqOf(story, 'container.exited', story.nginx), last, '--namespace', 'default');
    assert.deepEqual(
      removed.map(({ change, id }) => [change, id]),
      [
        ['went', story.web],
        ['went', story.nginx],
      ],
    );
    assert.deepEqual(await ofPods('--label', '!none', '--pod', 'test/web'), await ofPods('--pod', 'test/web'));
    const none = await scribe(['diff', '1', String(last), '--label', 'app', '--root', root.dir]);
    assert.deepEqual([none.exitStatus, none.stdout], [0, '']);
    assert.match(none.stderr, /\nNothing of that changed\.\n$/);
    const both = await scribe(['diff', '1', '2', '--image', image, '--pod', 'web', '--root', root.dir]);
    assert.equal(both.exitStatus, 2);
    assert.match(both.stderr, /--image goes with none of --pod/);
  });

  test('a container that kubelet asked for by the id of its image is chosen by the name, as its image is', async (t) => {
    const node = await startNode();
    const metadata = { name: 'web', namespace: 'default', uid: 'u' };
    const podSandboxId = idOf(await node.ask({ method: 'RunPodSandbox', config: { metadata }, runtimeHandler: '' }));
    await node.ask({ method: 'PullImage', image, credentials: null });
    const pulled = recordsOf(node).find(({ type }) => type === 'image.pulled');
    const imageId = pulled?.stream.replace('image/', '') ?? '';
    const config = { metadata: { name: 'app' }, image: { image: imageId, userSpecifiedImage: image } };
    const containerId = idOf(await node.ask({ method: 'CreateContainer', podSandboxId, config }));
    await node.ask({ method: 'StartContainer', containerId });
    await node.ask({ method: 'ExecSync', containerId, cmd: ['true'], timeoutSeconds: '1' });
    const records = recordsOf(node);
    const { dir } = await rootWith(t, records);
    const said = async (...words: readonly string[]): Promise<unknown[]> =>
      jsonLines((await scribe([...words, '--root', dir, '--json'])).stdout);
    const last = String(records.length);
    const [digest = ''] = (JSON.parse(pulled?.body ?? '') as Pulled).image.repoDigests;
    assert.match(digest, /@sha256:/);
    for (const [chosen, count] of [
      [image, 1],
      [imageId, 1],
      [digest, 1],
      ['registry.test/app:2', 0],
    ] as const) {
      assert.equal((await said('report', 'execs', '--image', chosen)).length, count, chosen);
      assert.equal((await said('at', last, 'get', 'containers', '--image', chosen)).length, count, chosen);
      const calls = await said('history', '--image', chosen, '--exec');
      assert.equal(calls.filter((record) => (record as JournalRecord).type === 'call.completed').length, count, chosen);
      const pulls = await said('report', 'pulls', '--image', chosen);
      assert.equal(pulls.length, count, chosen);
      const exported = await scribe(['export', '--root', dir, '--image', chosen]);
      assert.equal(exported.stdout.match(/"type":"container.started"/g)?.length ?? 0, count, chosen);
      // The image and the container.
      assert.equal((await said('diff', '1', last, '--image', chosen)).length, 2 * count, chosen);
    }
    const inViews =
      "SELECT (SELECT image FROM containers) AS container, image FROM calls WHERE method = 'CreateContainer'";
    assert.deepEqual(await said('sql', inViews), [{ container: image, image }]);
  });

  test('diff: the later moment first is refused, and the other way round is said', async () => {
    for (const [first, second] of [
      ['10', '5'],
      ['now', '5'],
    ] as const) {
      const { exitStatus, stdout, stderr } = await scribe(['diff', first, second, '--root', root.dir]);
      assert.deepEqual([exitStatus, stdout], [2, ''], first);
      assert.match(
        stderr,
        new RegExp(`^scribe: ${first} is later than ${second}: .* scribe diff ${second} ${first}\\.$`, 'm'),
      );
    }
  });

  test('diff: the same moment twice differs in nothing, and a table names each field', async () => {
    const same = await scribe(['diff', '10', '10', '--root', root.dir]);
    assert.match(same.stderr, /Nothing changed\./);
    const exited = seqOf(story, 'container.exited', story.nginx);
    const { stdout } = await scribe(['diff', String(exited - 1), String(exited), '--root', root.dir]);
    const [row] = rowsOf(stdout);
    assert.equal(row?.['OBJECT'], `default/web nginx ${story.nginx.slice(0, 13)}`);
    assert.match(stdout, /phase\.kind +running +exited/);
  });
});
