/**
 * What plugins are told: environment, request, runtimeConfig and prevResult, for ADD, DEL, CHECK, GC and STATUS, as
 * the CNI specification says. The plugins are scripts that write down what they get.
 */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { CniConfList } from '../../../src/domain/model/cni.ts';
import { attach, detach, failureOf, makeNode, type Node, podNetwork, record, succeed } from './support.ts';

const withVersion = (cniVersion: string, ...plugins: CniConfList['plugins']): CniConfList => ({
  cniVersion,
  name: 'testnet',
  plugins,
});

const writeConf = async (node: Node, conf: object): Promise<void> => {
  await mkdir(join(node.dir, 'net.d'), { recursive: true });
  await writeFile(join(node.dir, 'net.d', '10-test.conflist'), JSON.stringify(conf));
};

const PREV_RESULT = {
  cniVersion: '1.0.0',
  interfaces: [{ name: 'eth0', sandbox: 'x' }],
  ips: [{ address: '10.1.2.3/24', interface: 0 }],
};

describe('what plugins are told', { timeout: 60_000 }, () => {
  it('names pod, namespace and interface in the environment and inherits nothing else', async (t) => {
    const node = await makeNode(t);
    process.env.SCRIBE_TEST_SECRET = 'hidden';
    t.after(() => delete process.env.SCRIBE_TEST_SECRET);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('one', `${record}${succeed}`);
    const network = podNetwork(withVersion('1.0.0', { type: 'one' }), await node.makePodNetns());
    await attach(adapter, network);
    const [call] = await node.calls();
    // The shell that runs the script sets some of its own.
    const { PATH: path, PWD: _pwd, SHLVL: _shlvl, OLDPWD: _oldpwd, _, ...env } = call?.env ?? {};
    assert.equal(path, process.env.PATH);
    assert.deepEqual(env, {
      CNI_COMMAND: 'ADD',
      CNI_CONTAINERID: network.podSandboxId,
      CNI_NETNS: network.netnsPath,
      CNI_IFNAME: 'eth0',
      CNI_ARGS:
        'IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;' +
        `K8S_POD_INFRA_CONTAINER_ID=${network.podSandboxId};K8S_POD_UID=${network.uid}`,
      CNI_PATH: `${node.binDir}:${process.env.CNI_PLUGIN_DIR ?? '/usr/lib/cni'}`,
      GOMAXPROCS: process.env.GOMAXPROCS ?? '1',
    });
  });

  it('passes configuration through, with runtimeConfig by capability and prevResult along the chain', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('one', `${record}${succeed}`);
    await node.addPlugin('two', `${record}${succeed}`);
    const capabilities = {
      portMappings: true,
      bandwidth: true,
      dns: true,
      ips: true,
      cgroupPath: true,
      'io.kubernetes.cri.pod-annotations': true,
    };
    const confList = withVersion(
      '1.0.0',
      { type: 'one', keep: { a: [1, null] }, 'cni.dev/attachments': 1, capabilities: { portMappings: false } },
      { type: 'two', name: 'own name', cniVersion: '0.1.0', capabilities },
    );
    const network = podNetwork(confList, await node.makePodNetns(), {
      portMappings: [
        { hostPort: 8443, containerPort: 443, hostIp: '192.0.2.1' },
        { hostPort: 53, containerPort: 53, protocol: 1 },
        { hostPort: 99, containerPort: 99, protocol: 2, hostIp: '' },
        { hostPort: 0, containerPort: 7 },
        { containerPort: 8 },
      ],
      bandwidth: { ingressRate: '1000000', ingressBurst: '4294967295' },
      dns: { servers: ['10.0.0.10'], searches: ['svc.local'], options: ['ndots:5'] },
      cgroupPath: '/kubepods/pod1',
      podAnnotations: { 'k8s.example/a': 'b' },
    });
    const { ips, result } = await attach(adapter, network);
    assert.deepEqual(ips, ['10.1.2.3']);
    assert.deepEqual(result, PREV_RESULT);
    await detach(adapter, network, result);

    const [addOne, addTwo, delTwo, delOne] = await node.calls();
    const one = { cniVersion: '1.0.0', name: 'testnet', type: 'one', keep: { a: [1, null] } };
    const two = {
      cniVersion: '1.0.0',
      name: 'testnet',
      type: 'two',
      runtimeConfig: {
        portMappings: [
          { hostPort: 8443, containerPort: 443, protocol: 'tcp', hostIP: '192.0.2.1' },
          { hostPort: 53, containerPort: 53, protocol: 'udp' },
          { hostPort: 99, containerPort: 99, protocol: 'sctp' },
        ],
        bandwidth: { ingressRate: 1000000, ingressBurst: 4294967295 },
        dns: { servers: ['10.0.0.10'], searches: ['svc.local'], options: ['ndots:5'] },
        cgroupPath: '/kubepods/pod1',
        'io.kubernetes.cri.pod-annotations': { 'k8s.example/a': 'b' },
      },
    };
    assert.deepEqual(addOne?.request, one);
    assert.deepEqual(addTwo?.request, { ...two, prevResult: PREV_RESULT });
    assert.deepEqual([delTwo?.command, delTwo?.request], ['DEL', { ...two, prevResult: PREV_RESULT }]);
    assert.deepEqual([delOne?.command, delOne?.request], ['DEL', { ...one, prevResult: PREV_RESULT }]);
    const identity = ({ CNI_CONTAINERID, CNI_NETNS, CNI_IFNAME, CNI_ARGS }: Readonly<Record<string, string>>) => ({
      CNI_CONTAINERID,
      CNI_NETNS,
      CNI_IFNAME,
      CNI_ARGS,
    });
    assert.deepEqual(identity(delTwo?.env ?? {}), identity(addOne.env), 'DEL is told the same as ADD');
  });

  it('gives DEL an empty namespace when it is gone, and no prevResult before 0.4.0', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('one', `${record}${succeed}`);
    const network = podNetwork(withVersion('0.3.1', { type: 'one' }), join(node.dir, 'gone'));
    await detach(adapter, network, PREV_RESULT);
    const [call] = await node.calls();
    assert.equal(call?.env.CNI_NETNS, '');
    assert.deepEqual(call.request, { type: 'one', cniVersion: '0.3.1', name: 'testnet' });
  });

  it('asks CHECK only where version and configuration allow it', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin('one', `${record}${succeed}`);
    const netnsPath = await node.makePodNetns();
    const plugin = { type: 'one' };
    const ask = (confList: CniConfList) => adapter.check(podNetwork(confList, netnsPath), PREV_RESULT);
    assert.equal(await ask(withVersion('0.3.1', plugin)), false);
    assert.equal(await ask({ ...withVersion('1.0.0', plugin), disableCheck: true }), false);
    assert.deepEqual(await node.calls(), []);
    assert.equal(await ask(withVersion('0.4.0', plugin)), true);
    const [call] = await node.calls();
    assert.equal(call?.command, 'CHECK');
    assert.deepEqual(call.request.prevResult, PREV_RESULT);
  });

  it('collects garbage past failures, with the valid attachments, and only while nothing else runs', async (t) => {
    const node = await makeNode(t);
    const slowAdd = '[ "$CNI_COMMAND" = ADD ] && sleep 0.3\n';
    await node.addPlugin(
      'one',
      `${slowAdd}${record}[ "$CNI_COMMAND" = GC ] && { echo '{"msg":"stuck"}'; exit 1; }\n${succeed}`,
    );
    await node.addPlugin('two', `${record}${succeed}`);
    await writeConf(node, { ...withVersion('1.1.0', { type: 'one', 'cni.dev/x': 1 }, { type: 'two' }) });
    const adapter = node.adapter();
    await adapter.start();
    const network = podNetwork(withVersion('1.1.0', { type: 'one' }), await node.makePodNetns());
    const valid = [{ containerID: network.podSandboxId, ifname: 'eth0' }];
    const attached = attach(adapter, network);
    const collected = failureOf(adapter.gc(() => valid));
    const detached = detach(adapter, network, null);
    await attached;
    const failure = await collected;
    await detached;
    assert.match(failure.message, /^CNI GC on network testnet failed: plugin one failed: stuck\.$/);
    const calls = await node.calls();
    assert.deepEqual(
      calls.map((call) => `${call.command} ${call.plugin}`),
      ['ADD one', 'GC one', 'GC two', 'DEL one'],
    );
    assert.deepEqual(calls[1]?.request, {
      type: 'one',
      cniVersion: '1.1.0',
      name: 'testnet',
      'cni.dev/valid-attachments': valid,
      'cni.dev/attachments': valid,
    });
    assert.equal(calls[1].env.CNI_CONTAINERID, undefined);
  });

  it('leaves GC and STATUS alone before 1.1.0, and GC where it is disabled', async (t) => {
    const node = await makeNode(t);
    await node.addPlugin('one', `${record}${succeed}`);
    await writeConf(node, withVersion('1.0.0', { type: 'one' }));
    const older = node.adapter();
    await older.start();
    await older.gc(() => []);
    assert.deepEqual(await older.status(), { networkName: 'testnet', problem: null });
    await writeConf(node, { ...withVersion('1.1.0', { type: 'one' }), disableGC: true });
    const disabled = node.adapter();
    await disabled.start();
    await disabled.gc(() => []);
    assert.deepEqual(await node.calls(), []);
  });

  it('takes a plugin that knows neither GC nor STATUS as one that has nothing to say', async (t) => {
    const node = await makeNode(t);
    await node.addPlugin('old', `echo "{\\"code\\":4,\\"msg\\":\\"unknown CNI_COMMAND: $CNI_COMMAND\\"}"; exit 1`);
    await writeConf(node, withVersion('1.1.0', { type: 'old' }));
    const adapter = node.adapter();
    await adapter.start();
    await adapter.gc(() => []);
    assert.deepEqual(await adapter.status(), { networkName: 'testnet', problem: null });
  });

  it('says why the network takes no pods: no configuration, or a plugin that is not ready', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const none = await adapter.status();
    assert.equal(none.networkName, null);
    assert.match(none.problem ?? '', /no CNI network configuration in .*net\.d: the directory does not exist/);
    await node.addPlugin('one', `${record}echo '{"code":50,"msg":"no agent"}'; exit 1`);
    await writeConf(node, withVersion('1.1.0', { type: 'one' }));
    const configured = node.adapter();
    await configured.start();
    assert.deepEqual(await configured.status(), {
      networkName: 'testnet',
      problem: 'CNI STATUS on network testnet failed: plugin one failed: no agent (code 50).',
    });
  });
});
