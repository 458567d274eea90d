/** Validators on real pods: what they are told of what others want, and that there is nothing which one does not agree to. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { openEffectsOn } from '../../src/domain/deciding/open-effects.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { sandboxStream } from '../../src/domain/model/records.ts';
import { startScripted, type Told, toldIn } from '../adapters/nri/scripted-plugin.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { callsAfter, headOf, recordsOf, stateOf } from '../support/journal.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, podConfig, removePod } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

const HOOK = 'ValidateContainerAdjustment';
const [SECRET, PLUGINS] = ['only-for-the-container', 'only-for-the-container-too'];

describe('validators of NRI', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let dir: string;
  let socket: string;
  let podSandboxId: string;

  const create = async (name: string): Promise<string> => {
    const config = containerConfig(name, busyboxName, ['sleep', '1000'], {
      envs: [{ key: 'OWN', value: Buffer.from(SECRET) }],
    });
    const sandboxConfig = podConfig(node.daemon, 'judged');
    return (await node.daemon.cri.runtime.createContainer({ podSandboxId, config, sandboxConfig })).containerId;
  };

  before(async () => {
    dir = await tempDir(owner);
    socket = join(dir, 'nri.sock');
    node = await startNode(owner, {
      config: `[nri]\nenable = true\nsocket = "${socket}"\nplugin_dir = "${dir}/plugins"\nrequest_timeout = "500ms"\nstartup_wait = "60s"\n[nri.default_validator]\nenable = true\nreject_oci_hook_adjustment = true\n`,
    });
    await startScripted(
      owner,
      socket,
      {
        log: join(dir, 'changing'),
        events: ['CreateContainer'],
        acts: [
          { hook: 'CreateContainer', container: 'hooked', adjust: { hooks: { prestart: [{ path: '/hook' }] } } },
          { hook: 'CreateContainer', adjust: { env: [{ key: 'PLUGIN', value: PLUGINS }] } },
        ],
      },
      { index: '10', name: 'changing' },
    );
    await startScripted(
      owner,
      socket,
      {
        log: join(dir, 'strict'),
        events: [HOOK],
        acts: [
          { hook: HOOK, container: 'refused', veto: 'no such thing here' },
          { hook: HOOK, container: 'hanging', hang: true },
        ],
      },
      { index: '90', name: 'strict' },
    );
    const isSynchronized = (told: readonly Told[]): boolean => told.some(({ hook }) => hook === 'Synchronize');
    for (const plugin of ['changing', 'strict']) await toldIn(owner, join(dir, plugin), isSynchronized);
    ({ podSandboxId } = await node.daemon.cri.runtime.runPodSandbox({ config: podConfig(node.daemon, 'judged') }));
  });

  test('are told the container as it was, what others want of it with its values, who set it, and who was there', async () => {
    const containerId = await create('allowed');
    const told = await toldIn(owner, join(dir, 'strict'), (all) => all.some(({ hook }) => hook === HOOK));
    const request = told.find(({ hook }) => hook === HOOK)?.['request'] as Record<string, unknown> & {
      readonly container: { readonly env: readonly string[] };
      readonly pod: { readonly id: string };
    };
    assert.ok(request.container.env.includes(`OWN=${SECRET}`));
    assert.ok(!request.container.env.some((entry) => entry.startsWith('PLUGIN=')));
    assert.equal(request.pod.id, podSandboxId);
    assert.deepEqual(request['adjust'], { env: [{ key: 'PLUGIN', value: PLUGINS }] });
    // 6 is Env in the protocol's enum of fields.
    assert.deepEqual(request['owners'], {
      owners: { [containerId]: { compound: { 6: { owners: { PLUGIN: '10-changing' } } } } },
    });
    assert.deepEqual(request['plugins'], [
      { name: 'changing', index: '10' },
      { name: 'strict', index: '90' },
    ]);
    const records = JSON.stringify(await recordsOf(node.daemon), (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    for (const value of [SECRET, PLUGINS]) assert.ok(!records.includes(value), `${value} is in the journal`);
    assert.match(records, /ValidateContainerAdjustment/);
  });

  test('one that rejects, and one that does not answer in time, fail the creation, and leave nothing of it', async () => {
    await assert.rejects(
      create('refused'),
      withCode(GrpcCode.FAILED_PRECONDITION, /NRI plugin "90-strict" rejects container .*: no such thing here/),
    );
    await assert.rejects(
      create('hanging'),
      withCode(GrpcCode.UNAVAILABLE, /NRI plugin "90-strict" has to agree to container .*did not answer/),
    );
    const { containers } = await node.daemon.cri.runtime.listContainers({ filter: { podSandboxId } });
    assert.deepEqual(
      containers.map(({ metadata }) => metadata?.name),
      ['allowed'],
    );
    // Files were made while they were asked.
    const { root, state } = node.daemon.dirs;
    for (const places of [join(root, 'containers'), join(state, 'bundles')])
      assert.deepEqual(
        (await readdir(places)).filter((name) => name !== podSandboxId),
        containers.map(({ id }) => id),
      );
  });

  test('what was wanted of others beside a container that one rejects is not done, and is once it agrees', async (t) => {
    const { daemon } = node;
    const containerId = await create('other');
    const since = headOf(daemon);
    const shares = (value: string) => ({ containerId, linux: { resources: { cpu: { shares: { value } } } } });
    const evict = [{ containerId, reason: 'room for what is not made' }];
    await startScripted(
      t,
      socket,
      {
        log: join(dir, 'moving'),
        events: ['CreateContainer'],
        acts: [
          { hook: 'CreateContainer', container: 'refused', update: [shares('77')], evict },
          { hook: 'CreateContainer', container: 'agreed', update: [shares('88')] },
        ],
      },
      { index: '20', name: 'moving' },
    );
    await toldIn(t, join(dir, 'moving'), (told) => told.some(({ hook }) => hook === 'Synchronize'));
    await assert.rejects(create('refused'), withCode(GrpcCode.FAILED_PRECONDITION));
    await create('agreed');
    const ofPlugins = async () =>
      (await callsAfter(daemon, since)).flatMap(({ request, completed }) =>
        request.method === 'UpdateContainerResources' || request.method === 'StopContainer'
          ? [{ request, completed }]
          : [],
      );
    const done = await eventually('what was wanted is done', async () => {
      const calls = await ofPlugins();
      return calls.length > 0 && calls.every(({ completed }) => completed !== null) && calls;
    });
    assert.deepEqual(
      done.map(({ request }) => [request.method, 'resources' in request ? request.resources : null]),
      [['UpdateContainerResources', { cpuShares: '88' }]],
    );
  });

  test("scribe's own rejects what its configuration does not allow", async () => {
    await assert.rejects(
      create('hooked'),
      withCode(GrpcCode.FAILED_PRECONDITION, /rejects container "hooked" .*plugin "10-changing" changed OCI hooks/),
    );
    await removePod(node.daemon, podSandboxId);
  });

  test('after a start, a pod and its container wait for a plugin that they require, and are made when it comes', async (t) => {
    const { daemon } = node;
    await daemon.kill();
    await daemon.start();
    const { runtime } = daemon.cri;
    const config = podConfig(daemon, 'waiting', { annotations: { 'required-plugins.noderesource.dev': '[late]' } });
    const pod = runtime.runPodSandbox({ config });
    await eventually('the pod waits for nothing else', async () => {
      const state = stateOf(daemon);
      const waiting = [...state.sandboxes.values()].filter(({ phase }) => phase === 'creating');
      return waiting.some(({ id }) => openEffectsOn(state, sandboxStream(id)).length === 0);
    });
    await startScripted(
      t,
      socket,
      { log: join(dir, 'late'), events: ['RunPodSandbox'] },
      { index: '30', name: 'late' },
    );
    const own = await pod;
    const told = await toldIn(t, join(dir, 'late'), (all) => all.some(({ hook }) => hook === 'RunPodSandbox'));
    assert.deepEqual(
      told.map(({ hook }) => hook),
      ['Configure', 'Synchronize', 'RunPodSandbox'],
    );
    const container = containerConfig('main', busyboxName, ['sleep', '1000']);
    await runtime.createContainer({ podSandboxId: own.podSandboxId, config: container, sandboxConfig: config });
    await removePod(daemon, own.podSandboxId);
  });
});
