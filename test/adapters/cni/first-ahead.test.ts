/**
 * The first plugin of an ADD, which is started before the pod's namespace is there and waits for its request: that it is
 * the one that attaches the pod, and that nothing is left of it when it is never asked, whoever ends first.
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { CniConfList, PodNetwork } from '../../../src/domain/model/cni.ts';
import { readProcessStat } from '../../../src/platform/linux/processes.ts';
import { eventually } from '../../support/pods.ts';
import { runOk, startProcess } from '../../support/process.ts';
import type { StandInOptions, StandInReport } from './first-stand-in.ts';
import {
  bridgeChain,
  context,
  detach,
  failureOf,
  leasedIps,
  makeNode,
  type Node,
  PLUGIN_DIR,
  podNetwork,
  record,
  succeed,
} from './support.ts';

const timeout = 60_000;
const standIn = join(import.meta.dirname, 'first-stand-in.ts');
const portMappings = [{ hostPort: 18081, containerPort: 80 }];

const list = (type: string): CniConfList => ({ cniVersion: '1.0.0', name: 'testnet', plugins: [{ type }] });

const isGone = async (pid: number): Promise<boolean> => ((await readProcessStat(pid))?.state ?? 'Z') === 'Z';
const endOf = (pid: number) => eventually(`the end of plugin ${pid}`, () => isGone(pid), 5_000);

/** An adapter, what it started, and how it gets ready to attach a pod. */
const startAdapter = async (node: Node) => {
  const started: { readonly plugin: string; readonly pid: number }[] = [];
  const adapter = node.adapter({
    spawner: {
      run: ({ onStarted, ...request }) =>
        node.spawner.run({
          ...request,
          onStarted: (pid) => {
            started.push({ plugin: request.command, pid });
            onStarted?.(pid);
          },
        }),
    },
  });
  await adapter.start();
  const getReady = (network: PodNetwork) => {
    const effect = { kind: 'AttachNetwork', podSandboxId: network.podSandboxId, network } as const;
    const ready = adapter.effects.AttachNetwork.getReady?.(effect, new AbortController().signal);
    assert.ok(ready);
    return ready;
  };
  const firstPid = () => eventually('the first plugin', () => Promise.resolve(started[0]?.pid), 5_000);
  return { adapter, started, getReady, firstPid };
};

/** Where the node's first namespace of a pod will be. */
const laterNetns = (node: Node): string => node.hostNetns.replace(/host$/, '1');

/** Nobody has acted: no address is taken, no bridge made. */
const assertUntouched = async (node: Node): Promise<void> => {
  assert.deepEqual(await leasedIps(node), []);
  assert.doesNotMatch(await node.onHost('ip', '-brief', 'link'), /cnitest0|veth/);
  assert.doesNotMatch(await node.onHost('iptables', '-t', 'nat', '-S'), /CNI/);
};

describe('the first plugin of an ADD', { timeout }, () => {
  it('waits while the namespace is not there, and attaches the pod when it is', async (t) => {
    const node = await makeNode(t);
    const { adapter, started, getReady, firstPid } = await startAdapter(node);
    const netns = laterNetns(node);
    const network = podNetwork(bridgeChain(node, ['10.77.10.0/24']), netns, { portMappings });
    const ready = getReady(network);
    const pid = await firstPid();
    await assertUntouched(node);
    assert.equal(await node.makePodNetns(), netns);
    assert.equal(await isGone(pid), false, 'it waits');
    const { ips, result } = await ready.perform(context());
    assert.deepEqual(await leasedIps(node), ips);
    assert.match(await runOk(['nsenter', `--net=${netns}`, 'ip', '-brief', 'addr']), new RegExp(`eth0.* ${ips[0]}/24`));
    assert.deepEqual(
      started.map(({ plugin }) => plugin),
      ['bridge', 'portmap'],
      'each is started once',
    );
    await detach(adapter, network, result);
    assert.deepEqual(await leasedIps(node), []);
  });

  it('is killed without having acted when the pod will have no namespace', async (t) => {
    const node = await makeNode(t);
    const { getReady, firstPid } = await startAdapter(node);
    const ready = getReady(podNetwork(bridgeChain(node, ['10.77.11.0/24']), join(node.dir, 'never'), { portMappings }));
    const pid = await firstPid();
    ready.drop();
    await endOf(pid);
    await assertUntouched(node);
    assert.deepEqual(await readdir(join(node.dir, 'state', 'cni')), []);
  });

  it('is killed without having acted when what was to be the namespace is none', async (t) => {
    const node = await makeNode(t);
    const { getReady, firstPid } = await startAdapter(node);
    const ready = getReady(podNetwork(bridgeChain(node, ['10.77.12.0/24']), join(node.dir, 'never'), { portMappings }));
    const pid = await firstPid();
    assert.match((await failureOf(ready.perform(context()))).message, /never is no network namespace/);
    await endOf(pid);
    await assertUntouched(node);
  });

  it('is the one that was asked for, whatever is configured meanwhile', async (t) => {
    const node = await makeNode(t);
    const { getReady, firstPid } = await startAdapter(node);
    for (const type of ['before', 'after']) await node.addPlugin(type, `${record}${succeed}`);
    const ready = getReady(podNetwork(list('before'), await node.makePodNetns()));
    await firstPid();
    await mkdir(join(node.dir, 'net.d'), { recursive: true });
    await writeFile(join(node.dir, 'net.d', '10.conflist'), JSON.stringify({ ...list('after'), name: 'other' }));
    await ready.perform(context());
    assert.deepEqual(
      (await node.calls()).map(({ plugin, request }) => [plugin, request['name']]),
      [['before', 'testnet']],
    );
  });

  it('is undone and run again when it ended before it was asked', async (t) => {
    const node = await makeNode(t);
    const { getReady, firstPid } = await startAdapter(node);
    await node.addPlugin('hasty', `[ -e "$CNI_NETNS" ] || exit 1\n${record}${succeed}`);
    const ready = getReady(podNetwork(list('hasty'), laterNetns(node)));
    const pid = await firstPid();
    await endOf(pid);
    await node.makePodNetns();
    await eventually('the news of its end', () => Promise.resolve(node.runs.length === 1), 5_000);
    assert.deepEqual((await ready.perform(context())).ips, ['10.1.2.3']);
    assert.deepEqual(
      (await node.calls()).map(({ command }) => command),
      ['DEL', 'ADD'],
    );
  });

  it('fails as ever when it is not installed', async (t) => {
    const node = await makeNode(t);
    const { getReady } = await startAdapter(node);
    const ready = getReady(podNetwork(list('absent'), await node.makePodNetns()));
    const { message } = await failureOf(ready.perform(context()));
    assert.match(message, /^CNI ADD of pod shop\/web-0 .* failed: plugin absent is no executable in /);
  });
});

describe('the first plugin of an ADD whose daemon is killed', { timeout }, () => {
  const startStandIn = async (t: TestContext, node: Node) => {
    const network = podNetwork(bridgeChain(node, ['10.77.13.0/24']), await node.makePodNetns(), { portMappings });
    const options: StandInOptions = { dir: node.dir, binDir: PLUGIN_DIR, network };
    const inHost = ['nsenter', `--net=${node.hostNetns}`];
    const daemon = await startProcess(t, [...inHost, process.execPath, standIn, JSON.stringify(options)]);
    const [line] = await daemon.until(/\{.*\}/);
    const report = JSON.parse(line) as StandInReport;
    assert.equal(await isGone(report.pluginPid), false, 'it waits');
    return { daemon, ...report };
  };

  it('C6: is killed by the spawner, and has not acted', async (t) => {
    const node = await makeNode(t);
    const { daemon, spawnerPid, pluginPid } = await startStandIn(t, node);
    daemon.kill('SIGKILL');
    await endOf(pluginPid);
    await endOf(spawnerPid);
    await assertUntouched(node);
  });

  it('C6: ends by itself when its spawner is killed as well, and has not acted', async (t) => {
    const node = await makeNode(t);
    const { daemon, spawnerPid, pluginPid } = await startStandIn(t, node);
    // It would kill the plugin when it sees its spawner end.
    daemon.kill('SIGSTOP');
    process.kill(spawnerPid, 'SIGKILL');
    await endOf(pluginPid);
    daemon.kill('SIGKILL');
    await assertUntouched(node);
  });
});
