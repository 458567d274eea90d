/**
 * NRI plugins on real pods: what they are asked, what they change, refuse, update and evict, and what the journal and
 * `scribe nri` say of it; and that a kill -9 of the daemon takes nothing of that away.
 */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { ContainerState } from '../../src/wire/cri/api.ts';
import { CreateContainerRequest, CreateContainerResponse, Event } from '../../src/wire/nri/api.ts';
import { connectDouble } from '../adapters/nri/plugin-double.ts';
import { type Script, startScripted, type Told, toldIn } from '../adapters/nri/scripted-plugin.ts';
import { type CgroupLimit, limitInForce } from '../support/cgroup-limits.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { callsAfter, headOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, inParallel, podConfig, removePod, runPod, statusOf } from '../support/pods.ts';
import type { BackgroundProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const sleeper = ['sleep', '1000'];
const MIB = 1024 * 1024;

const hooksIn = (told: readonly Told[]): readonly string[] =>
  told.map(({ hook }) => hook).filter((hook) => hook !== 'Configure' && hook !== 'Synchronize');

/** Ids of the containers that it was told of, in whichever way. */
const containersIn = (told: readonly Told[]): ReadonlySet<string> =>
  new Set(
    told.flatMap(({ container, containers = [] }) =>
      [container, ...(containers as unknown[])].flatMap((one) => (one as { id?: string } | undefined)?.id ?? []),
    ),
  );

interface Plugin {
  readonly process: BackgroundProcess;
  readonly told: (isThere: (told: readonly Told[]) => boolean) => Promise<readonly Told[]>;
}

describe('NRI plugins', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let dir: string;
  let socket: string;

  before(async () => {
    dir = await tempDir(owner);
    socket = join(dir, 'nri.sock');
    await mkdir(join(dir, 'plugins'));
    node = await startNode(owner, {
      config: `[nri]\nenable = true\nsocket = "${socket}"\nplugin_dir = "${dir}/plugins"\nconfig_dir = "${dir}/conf"\n`,
    });
  });

  /** Resolves when it was synchronized. */
  const connect = async (
    ends: Owner,
    name: string,
    script: Omit<Script, 'log'>,
    { index = '50', reconnects = false } = {},
  ): Promise<Plugin> => {
    const log = join(dir, name);
    const process = await startScripted(ends, socket, { log, ...script }, { index, name, reconnects });
    const told: Plugin['told'] = (isThere) => toldIn(ends, log, isThere);
    await told((all) => all.some(({ hook }) => hook === 'Synchronize'));
    return { process, told };
  };

  const shellIn = async (containerId: string, command: string): Promise<string> => {
    const cmd = ['sh', '-c', command];
    const { stdout } = await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' });
    return stdout.toString().trim();
  };
  const inForce = async (containerId: string, limit: CgroupLimit, expected?: string): Promise<string> =>
    limitInForce(join(node.daemon.dirs.cgroupParent, containerId), limit, expected);

  test('a plugin is asked at every place in the life of a pod, and what it changes is in the container', async (t) => {
    const { told } = await connect(t, 'asked', {
      acts: [{ hook: 'CreateContainer', adjust: { env: [{ key: 'PLUGIN', value: 'was here' }] } }],
    });
    const { daemon } = node;
    const { podSandboxId, containerId } = await runPod(daemon, 'nri', busyboxName, sleeper);
    assert.equal(await shellIn(containerId, 'echo $PLUGIN'), 'was here');
    const listed = await daemon.scribe('nri', '--socket', daemon.socket, '--json');
    const { name, state, owned, latencies } = JSON.parse(listed.stdout) as Record<string, unknown>;
    assert.deepEqual([name, state], ['asked', 'active']);
    assert.deepEqual(owned, [
      { containerId, containerName: 'main', podNamespace: 'default', podName: 'nri', fields: ['Env PLUGIN'] },
    ]);
    assert.ok((latencies as { hook: string }[]).some(({ hook }) => hook === 'CreateContainer'));
    await removePod(daemon, podSandboxId);
    assert.deepEqual(hooksIn(await told((all) => hooksIn(all).includes('RemovePodSandbox'))), [
      'RunPodSandbox',
      'CreateContainer',
      'ValidateContainerAdjustment',
      'PostCreateContainer',
      'StartContainer',
      'PostStartContainer',
      'StopContainer',
      'StopPodSandbox',
      'RemoveContainer',
      'RemovePodSandbox',
    ]);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('limits that a plugin wants beyond the words of CRI are in force, past changes of a client and a restart', async (t) => {
    const { daemon } = node;
    const { podSandboxId, containerId } = await runPod(daemon, 'limited', busyboxName, sleeper);
    const limits = async () => [await inForce(containerId, 'pids'), await inForce(containerId, 'memoryReservation')];
    const wanted = ['55', String(64 * 1024 * 1024)];
    const resources = { pids: { limit: 55 }, memory: { reservation: { value: wanted[1] } }, rdtClass: { value: '' } };
    await connect(
      t,
      'limits',
      {
        events: ['RemovePodSandbox'],
        acts: [{ hook: 'Synchronize', update: [{ containerId, linux: { resources } }] }],
      },
      { index: '70' },
    );
    await eventually('the limits are in force', async () => (await limits())[0] === '55');
    assert.deepEqual(await limits(), wanted);
    await daemon.cri.runtime.updateContainerResources({ containerId, linux: { cpuShares: '300' } });
    await daemon.kill();
    await daemon.start();
    await daemon.cri.runtime.updateContainerResources({ containerId, linux: { memoryLimitInBytes: '100000000' } });
    assert.deepEqual(await limits(), wanted);
    assert.equal(await inForce(containerId, 'cpuShares', '300'), '300');
    await removePod(daemon, podSandboxId);
  });

  test('a veto fails the start, with the words of the plugin', async (t) => {
    await connect(t, 'strict', { acts: [{ hook: 'StartContainer', veto: 'not on this node' }] }, { index: '60' });
    await assert.rejects(
      runPod(node.daemon, 'vetoed', busyboxName, sleeper),
      withCode(GrpcCode.FAILED_PRECONDITION, /"60-strict" refused StartContainer .*not on this node/),
    );
  });

  test('updates that nobody asked for are put in force, those that fail come back, and evictions tell their reason', async (t) => {
    const { daemon } = node;
    const { containerId } = await runPod(daemon, 'updated', busyboxName, sleeper, {}, t);
    const doomed = await runPod(daemon, 'doomed', busyboxName, sleeper, {}, t);
    const since = headOf(daemon);
    const cpus = (value: string) => ({ resources: { cpu: { cpus: value } } });
    const { told } = await connect(t, 'asker', {
      acts: [
        {
          hook: 'Synchronize',
          ask: {
            update: [
              {
                containerId,
                linux: {
                  resources: { cpu: { shares: { value: '300' } }, memory: { limit: { value: String(64 * MIB) } } },
                },
              },
              { containerId: 'nobody-knows-it', linux: cpus('0') },
              { containerId: doomed.containerId, linux: cpus('4095') },
              { containerId: doomed.containerId, linux: cpus('4094'), ignoreFailure: true },
            ],
            evict: [
              { containerId: doomed.containerId, reason: 'its cores are wanted' },
              { containerId: 'nobody-knows-it', reason: 'whatever' },
            ],
          },
        },
      ],
    });
    const answered = await told((all) => all.some(({ hook }) => hook === 'UpdateContainers'));
    const { failed, error } = answered.find(({ hook }) => hook === 'UpdateContainers') ?? { hook: '' };
    assert.equal(error, undefined);
    assert.deepEqual(
      (failed as { containerId: string; linux: unknown }[]).map((one) => [one.containerId, one.linux]),
      [[doomed.containerId, cpus('4095')]],
    );
    assert.equal(await inForce(containerId, 'cpuShares', '300'), '300');
    assert.equal(await inForce(containerId, 'memoryLimitInBytes'), String(64 * MIB));
    assert.equal((await statusOf(daemon, containerId)).resources?.linux?.cpuShares, '300');

    const evicted = await statusOf(daemon, doomed.containerId);
    assert.equal(evicted.state, ContainerState.CONTAINER_EXITED);
    assert.equal(evicted.exitCode, 137);
    assert.equal(evicted.message, 'It was evicted by the NRI plugin 50-asker: its cores are wanted');
    const evictions = (await callsAfter(daemon, since)).flatMap(({ request }) =>
      request.method === 'StopContainer' && request.containerId === doomed.containerId ? [request.evicted] : [],
    );
    assert.deepEqual(evictions, [{ plugin: '50-asker', reason: 'its cores are wanted' }]);
    const history = await daemon.scribe('history', '--root', daemon.dirs.root, '--pod', 'doomed');
    assert.match(history.stdout, /evicted by 50-asker: its cores are wanted/);
    assert.equal((await statusOf(daemon, containerId)).state, ContainerState.CONTAINER_RUNNING);
  });

  test('a plugin that is asked about one container may change another and evict a third', async (t) => {
    const { daemon } = node;
    const changed = await runPod(daemon, 'changed', busyboxName, sleeper, {}, t);
    const third = await runPod(daemon, 'third', busyboxName, sleeper, {}, t);
    await connect(t, 'mover', {
      acts: [
        {
          hook: 'CreateContainer',
          container: 'main',
          times: 1,
          update: [{ containerId: changed.containerId, linux: { resources: { cpu: { shares: { value: '77' } } } } }],
          evict: [{ containerId: third.containerId, reason: 'room for a newer one' }],
        },
      ],
    });
    await runPod(daemon, 'newer', busyboxName, sleeper, {}, t);
    await eventually(
      'the update is in force',
      async () => (await inForce(changed.containerId, 'cpuShares', '77')) === '77',
    );
    const { message } = await eventually('the third has ended', async () => {
      const status = await statusOf(daemon, third.containerId);
      return status.state === ContainerState.CONTAINER_EXITED && status;
    });
    assert.match(message, /evicted by the NRI plugin 50-mover: room for a newer one/);
  });

  test('a container that a plugin evicts as it is made can not be started, also after a kill of the daemon', async (t) => {
    const { daemon } = node;
    const double = await connectDouble(t, socket, {
      name: 'second-thoughts',
      events: 1 << (Event.CREATE_CONTAINER - 1),
      handlers: {
        CreateContainer: async (payload) => {
          const containerId = CreateContainerRequest.decode(payload).container?.id ?? '';
          const evict = [{ containerId, reason: 'no room for it' }];
          return CreateContainerResponse.encode({ adjust: undefined, update: [], evict }).finish();
        },
      },
    });
    await double.register();
    await eventually('it is asked', async () => double.calls.includes('Synchronize'));
    const { runtime } = daemon.cri;
    const sandboxConfig = podConfig(daemon, 'unwanted');
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    const config = containerConfig('main', busyboxName, sleeper);
    const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    const refusal = withCode(GrpcCode.FAILED_PRECONDITION, /"10-second-thoughts" evicted it .*no room for it/);
    await assert.rejects(runtime.startContainer({ containerId }), refusal);
    await daemon.kill();
    await daemon.start();
    await assert.rejects(runtime.startContainer({ containerId }), refusal);
    const { stdout } = await daemon.scribe('why', '--root', daemon.dirs.root, containerId);
    assert.match(stdout, /was evicted .* by NRI plugin 10-second-thoughts \(no room for it\) before it was started/);
    await removePod(daemon, podSandboxId);
    assert.equal((await runtime.listContainers({ filter: { id: containerId } })).containers.length, 0);
  });

  test('a plugin that is connected when the daemon is killed comes back, and nothing that it set is lost', async (t) => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const plugin = await connect(
      t,
      'faithful',
      {
        acts: [
          {
            hook: 'CreateContainer',
            adjust: {
              env: [{ key: 'PLUGIN', value: 'was here' }],
              rlimits: [{ type: 'RLIMIT_MEMLOCK', hard: '65536', soft: '32768' }],
              linux: { resources: { memory: { limit: { value: String(96 * MIB) } }, pids: { limit: '55' } } },
            },
          },
        ],
      },
      { reconnects: true },
    );
    const running = await runPod(daemon, 'before', busyboxName, sleeper, {}, t);
    const { podSandboxId } = running;
    const { containerId: waiting } = await runtime.createContainer({
      podSandboxId,
      config: containerConfig('waiting', busyboxName, sleeper),
      sandboxConfig: podConfig(daemon, 'before'),
    });
    const isInForce = async (containerId: string): Promise<void> => {
      assert.equal(await shellIn(containerId, 'echo $PLUGIN; ulimit -Sl; ulimit -Hl'), 'was here\n32\n64');
      assert.equal(await inForce(containerId, 'memoryLimitInBytes'), String(96 * MIB));
      assert.equal(await inForce(containerId, 'pids'), '55');
    };
    await daemon.kill();
    await daemon.start();
    // As many as may while nobody knows whether the plugin is back.
    const made = await inParallel(2, ['a', 'b', 'c', 'd'], async (name) =>
      runPod(daemon, name, busyboxName, sleeper, {}, t),
    );
    const told = await plugin.told((all) => all.filter(({ hook }) => hook === 'Synchronize').length === 2);
    const again = told.findLastIndex(({ hook }) => hook === 'Configure');
    const ids = [running.containerId, waiting, ...made.map(({ containerId }) => containerId)];
    await plugin.told((all) => {
      const known = containersIn(all.slice(again));
      return ids.every((id) => known.has(id));
    });
    await isInForce(running.containerId);
    await runtime.updateContainerResources({ containerId: running.containerId, linux: { cpuShares: '300' } });
    assert.equal(await inForce(running.containerId, 'cpuShares', '300'), '300');
    await isInForce(running.containerId);
    await runtime.startContainer({ containerId: waiting });
    await isInForce(waiting);
    await runtime.updateContainerResources({ containerId: waiting, linux: { cpuQuota: '50000', cpuPeriod: '100000' } });
    await isInForce(waiting);
    const listed = await daemon.scribe('nri', '--socket', daemon.socket);
    assert.match(listed.stdout, /^50-faithful +active +connected/m);
    assert.match(listed.stdout, /^50-faithful +default\/before\/main +.*Env PLUGIN/m);
  });
});
