/** `scribe history` of what options choose by namespace and label: pods, their containers, and calls that made nothing. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { FailureError } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { idOf } from '../engine/rig.ts';
import { image, rowsOf } from './story.ts';
import { jsonLines, type Node, recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';

/** Two pods of one name. */
const tellOfTwo = async (): Promise<Node> => {
  const node = await startNode();
  for (const namespace of ['default', 'shop']) {
    const metadata = { name: 'web', namespace, uid: `${namespace}-web` };
    await node.ask({ method: 'RunPodSandbox', config: { metadata }, runtimeHandler: '' });
  }
  return node;
};

describe('a history by namespace and label', () => {
  const owner: Owner = cleanupAfterAll();
  let root: Root;
  let firstOfShop = 0;

  before(async () => {
    const node = await startNode();
    const pod = async (namespace: string, labels: Readonly<Record<string, string>>): Promise<string> => {
      const metadata = { name: 'web', namespace, uid: `${namespace}-web` };
      return idOf(await node.ask({ method: 'RunPodSandbox', config: { metadata, labels }, runtimeHandler: '' }));
    };
    const container = async (podSandboxId: string, name: string, labels = {}, from = image): Promise<void> => {
      const config = { metadata: { name }, image: { image: from }, labels };
      await node.ask({ method: 'CreateContainer', podSandboxId, config });
    };
    await node.ask({ method: 'PullImage', image, credentials: null });
    await container(await pod('default', { app: 'web', tier: 'front' }), 'nginx', { role: 'proxy' });
    firstOfShop = recordsOf(node).length + 1;
    const shop = await pod('shop', { app: 'web' });
    await container(shop, 'cart', { role: 'cart', 'app.kubernetes.io/name': 'shop-cart' });
    await container(shop, 'none', { role: 'none' }, 'nowhere.test/none:1');
    root = await rootWith(owner, recordsOf(node));
  });

  test('a label with dots in its name is a field that why and diff name in one way', async () => {
    const named = 'config.labels["app.kubernetes.io/name"]';
    const ask = async (field: string) =>
      scribe(['why', '--last-change', `container/cart.${field}`, '--root', root.dir]);
    const { exitStatus, stdout, stderr } = await ask(named);
    assert.equal(exitStatus, 0, stderr);
    assert.match(
      stdout,
      /^Record \d+ \(container\.requested\) last changed config\.labels\["app\.kubernetes\.io\/name"\] of/,
    );
    assert.match(stdout, /after +"shop-cart"/);
    const plain = await ask('config.labels.app.kubernetes.io/name');
    assert.match(plain.stderr, /it never had one/);
    const broken = await ask('config.labels["app');
    assert.equal(broken.exitStatus, 2);
    assert.match(broken.stderr, /names no field\. A name with dots stands in brackets and quotes/);
  });

  const told = async (...words: readonly string[]): Promise<string[]> => {
    const { exitStatus, stdout, stderr } = await scribe(['history', '--root', root.dir, ...words]);
    assert.equal(exitStatus, 0, stderr);
    return rowsOf(stdout).map(({ WHAT = '', OBJECT = '' }) => `${WHAT} ${OBJECT.replace(/ [0-9a-f]{13}/g, '')}`);
  };
  const inDefault = ['RunPodSandbox default/web', 'CreateContainer default/web nginx'];
  const cart = 'CreateContainer shop/web cart';
  const none = 'CreateContainer shop/web none';
  const inShop = ['RunPodSandbox shop/web', cart, none];

  const cases: readonly (readonly [words: readonly string[], rows: readonly string[]])[] = [
    [['--namespace', 'default'], inDefault],
    [['--namespace', 'shop'], inShop],
    [['--namespace', 'shop', '--container', 'cart'], [cart]],
    [['--namespace', 'shop', '--failed'], [none]],
    [
      ['--label', 'app=web'],
      [...inDefault, ...inShop],
    ],
    [['--label', 'tier'], inDefault],
    [['--label', '!tier'], inShop],
    [
      ['--label', 'app=web', '--label', 'role'],
      ['CreateContainer default/web nginx', cart, none],
    ],
    [['--label', 'role=cart'], [cart]],
    // The pod has no such label, and what is asked of it belongs to it.
    [['--label', 'role!=cart', '--namespace', 'shop'], inShop],
    [
      ['--label', 'role', '--label', 'role!=cart'],
      ['CreateContainer default/web nginx', none],
    ],
    [['--pod', 'web', '--label', 'tier=front'], inDefault],
  ];
  for (const [words, rows] of cases) test(words.join(' '), async () => assert.deepEqual(await told(...words), rows));

  test('labels and namespaces are known from before the range', async () => {
    const since = ['--since', String(firstOfShop + 1)];
    assert.deepEqual(await told(...since, '--namespace', 'shop'), [cart, none]);
    assert.deepEqual(await told(...since, '--label', '!tier', '--label', 'app'), [cart, none]);
  });

  test('of what nothing bears nothing is shown, and standard error says what was asked for', async () => {
    const nobody = await scribe([
      'history',
      '--root',
      root.dir,
      '--namespace',
      'none',
      '--label',
      'a=b',
      '--label',
      'c',
    ]);
    assert.deepEqual([nobody.exitStatus, rowsOf(nobody.stdout)], [0, []]);
    assert.equal(nobody.stderr, 'scribe: The journal knows of no pod in namespace none with label a=b, c.\n');
  });

  const nearly: readonly (readonly [words: readonly string[], said: string])[] = [
    [['--pod', 'Web-7d4'], 'The journal knows of no pod Web-7d4.'],
    [['--pod', 'prod/we'], 'The journal knows of no pod prod/we.'],
    [
      ['--pod', 'prod/web'],
      'The journal knows of no pod prod/web. Pods with that in their names: shop/web, default/web.',
    ],
    [['--container', 'CAR'], 'The journal knows of no container CAR. Containers with that in their names: cart.'],
    [['--container', 'cart', '--pod', 'default/web'], 'The journal knows of no container cart in pod default/web.'],
    [['--image', 'app'], 'The journal knows of no image app. Images with that in their names: registry.test/app:1.'],
    [
      ['--image', 'none.test/app:9'],
      'The journal knows of no image none.test/app:9. Images with that in their names: registry.test/app:1.',
    ],
  ];
  for (const [words, said] of nearly)
    test(`${words.join(' ')}: what is called nearly so is named`, async () => {
      const { exitStatus, stderr } = await scribe(['history', '--root', root.dir, ...words]);
      assert.deepEqual([exitStatus, stderr], [0, `scribe: ${said}\n`]);
    });

  test('of an image that no pull brought, the references that pulls asked for', async () => {
    const failing = await startNode({
      perform: {
        PullImage: async () => {
          throw new FailureError('RegistryFailed', 'nobody is there');
        },
      },
    });
    for (const asked of ['nginx:1.99', 'nginx:1.99', 'quay.test/ingress-nginx:1'])
      await failing.ask({ method: 'PullImage', image: asked, credentials: null });
    const { dir } = await rootWith(owner, recordsOf(failing));
    const said = ' Pulls asked for: quay.test/ingress-nginx:1, docker.io/library/nginx:1.99.';
    const history = await scribe(['history', '--image', 'nginx', '--root', dir]);
    assert.equal(history.stderr, `scribe: The journal knows of no image nginx.${said}\n`);
    for (const thing of ['nginx', 'image:nginx:2']) {
      const why = await scribe(['why', thing, '--root', dir]);
      assert.ok(why.stderr.includes(`.${said} A thing is`), why.stderr);
    }
    const pod = await scribe(['history', '--pod', 'nginx', '--root', dir]);
    assert.equal(pod.stderr, 'scribe: The journal knows of no pod nginx.\n');
  });

  test('at, diff, report and export name what is called nearly so where they find nothing', async () => {
    const { stdout } = await scribe(['sql', 'SELECT max(seq) AS head FROM records', '--json', '--root', root.dir]);
    const { head } = JSON.parse(stdout) as { head: number };
    const asked: readonly (readonly [words: readonly string[], said: string])[] = [
      [['at', String(head), 'get', 'pods'], 'There were no such pods.'],
      [['diff', '1', String(head)], 'Nothing of that changed.'],
      [['report', 'execs'], 'Nothing was recorded that fits.'],
      [['export'], 'Nothing was recorded that fits.'],
    ];
    for (const [words, said] of asked) {
      const near = await scribe([...words, '--pod', 'prod/web', '--root', root.dir]);
      assert.ok(near.stderr.endsWith(`${said} Pods with that in their names: shop/web, default/web.\n`), near.stderr);
      // Two letters are in many names.
      const none = await scribe([...words, '--pod', 'prod/we', '--root', root.dir]);
      assert.ok(none.stderr.endsWith(`${said}\n`), none.stderr);
    }
  });

  test('why names what is called nearly so', async () => {
    const { exitStatus, stderr } = await scribe(['why', 'image:app:7', '--root', root.dir]);
    assert.equal(exitStatus, 1);
    assert.match(stderr, /up to record \d+\. Images with that in their names: registry\.test\/app:1\. A thing is/);
  });

  test('what the ids of two begin with is refused by every command, and both are named', async () => {
    const records = recordsOf(await tellOfTwo());
    const [one = '', two = ''] = records.filter(({ type }) => type === 'sandbox.requested').map(({ stream }) => stream);
    const [oneId, twoId] = [one.slice('sandbox/'.length), two.slice('sandbox/'.length)];
    const start = 'abcdef';
    const alike = (text: string): string =>
      text.replaceAll(oneId, start + oneId.slice(start.length)).replaceAll(twoId, start + twoId.slice(start.length));
    const alikes = await rootWith(
      owner,
      records.map((record) => ({ ...record, stream: alike(record.stream), body: alike(record.body) })),
    );
    const asked = ['--pod', start, '--root', alikes.dir];
    for (const words of [['history'], ['report', 'execs'], ['at', 'now', 'get', 'pods'], ['export']]) {
      const { exitStatus, stdout, stderr } = await scribe([...words, ...asked]);
      assert.deepEqual([exitStatus, stdout], [1, ''], words.join(' '));
      const both = [one, two].map(alike).toSorted().join(', ');
      assert.equal(stderr, `scribe: --pod "${start}" could be any of these: ${both}. Give more of the id.\n`);
    }
    const why = await scribe(['why', 'web', '--root', alikes.dir]);
    assert.match(why.stderr, /^scribe: "web" could be any of these: pod:shop\/web .*, pod:default\/web .*\. Name one/);
  });

  test('an export that nothing fits says so, and is none the worse for it', async () => {
    const nothing = await scribe(['export', '--root', root.dir, '--namespace', 'none']);
    assert.deepEqual(nothing, { exitStatus: 0, stdout: '', stderr: 'scribe: Nothing was recorded that fits.\n' });
  });

  test('an export chooses in the same words', async () => {
    const exported = await scribe(['export', '--root', root.dir, '--namespace', 'shop', '--label', 'role=cart']);
    const types = jsonLines<{ type: string }>(exported.stdout).map(({ type }) => type);
    assert.ok(types.includes('container.created'), exported.stderr);
    assert.ok(!types.some((type) => type.startsWith('sandbox.') || type.startsWith('image.')));
  });
});
