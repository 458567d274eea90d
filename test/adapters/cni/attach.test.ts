/**
 * Attaching and detaching with the reference plugins (bridge, host-local, portmap) in namespaces of the test's own.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { attach, bridgeChain, detach, failureOf, leasedIps, makeNode, type Node, podNetwork } from './support.ts';

const vethsOnHost = async (node: Node): Promise<string[]> => {
  const links = JSON.parse(await node.onHost('ip', '-json', 'link', 'show', 'type', 'veth')) as { ifname: string }[];
  return links.map((link) => link.ifname);
};

const leftOnHost = async (node: Node): Promise<{ leases: string[]; veths: string[]; rules: string[] }> => {
  const rules = (await node.onHost('iptables-save', '-t', 'nat')).split('\n').filter((line) => line.includes('10.77.'));
  return { leases: await leasedIps(node), veths: await vethsOnHost(node), rules };
};

const NOTHING = { leases: [], veths: [], rules: [] };

/** Answers every connection to `port` with "hello" from inside a namespace; resolves once it listens. */
const listenIn = async (t: TestContext, netnsPath: string, port: number): Promise<void> => {
  const script = `require('node:net').createServer((s) => s.end('hello')).listen(${port}, () => console.log('up'))`;
  const server = spawn('nsenter', [`--net=${netnsPath}`, process.execPath, '-e', script]);
  t.after(() => server.kill('SIGKILL'));
  await once(server.stdout, 'data', { signal: AbortSignal.timeout(10_000) });
};

const READ_ALL = `require('node:net').connect(Number(process.argv[2]), process.argv[1]).pipe(process.stdout)`;

describe('attaching pods with the reference plugins', { timeout: 60_000 }, () => {
  it('gives a pod an address that the host reaches, maps its ports, and takes everything back', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const netnsPath = await node.makePodNetns();
    const network = podNetwork(bridgeChain(node, ['10.77.0.0/24']), netnsPath, {
      portMappings: [
        { hostPort: 18080, containerPort: 8080 },
        { hostPort: 0, containerPort: 9090 },
      ],
    });

    const { ips, result } = await attach(adapter, network);
    assert.deepEqual(ips, await leasedIps(node));
    const [ip] = ips;
    assert.ok(ip !== undefined && ip.startsWith('10.77.0.'), `${ip} is of the range`);
    await listenIn(t, netnsPath, 8080);
    assert.equal(await node.onHost(process.execPath, '-e', READ_ALL, ip, '8080'), 'hello');
    assert.equal(await node.onHost(process.execPath, '-e', READ_ALL, '10.77.0.1', '18080'), 'hello');
    await detach(adapter, network, result);
    assert.deepEqual(await leftOnHost(node), NOTHING);
    await detach(adapter, network, result);
    assert.deepEqual(await leftOnHost(node), NOTHING, 'a second DEL changes nothing');
  });

  it('limits what a pod may receive and send, and undoes that', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const { plugins, ...list } = bridgeChain(node, ['10.77.9.0/24']);
    const confList = { ...list, plugins: [...plugins, { type: 'bandwidth', capabilities: { bandwidth: true } }] };
    const network = podNetwork(confList, await node.makePodNetns(), {
      bandwidth: { ingressRate: '8000000', egressRate: '16000000' },
    });
    const { result } = await attach(adapter, network);
    const rules = await node.onHost('tc', 'qdisc', 'show');
    assert.match(rules, /^qdisc tbf .*rate 8Mbit/m);
    assert.match(rules, /^qdisc tbf .*rate 16Mbit/m);
    await detach(adapter, network, result);
    assert.doesNotMatch(await node.onHost('tc', 'qdisc', 'show'), /tbf/);
    assert.deepEqual(await leftOnHost(node), NOTHING);
  });

  it('finds that mapped ports stand while they do, of one family of addresses or both, and tells when they are gone', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const rulesOfPod = async (command: string): Promise<string[]> =>
      (await node.onHost(command, '-t', 'nat', '-S')).split('\n').filter((line) => /^-A CNI-DN-.*--dport/.test(line));
    const ranges = [['10.77.10.0/24'], ['fd00:77:a::/64'], ['10.77.10.0/24', 'fd00:77:a::/64']];
    for (const [index, range] of ranges.entries()) {
      const network = podNetwork(bridgeChain(node, range), await node.makePodNetns(), {
        portMappings: [{ hostPort: 18090 + index, containerPort: 8080 }],
      });
      const { result } = await attach(adapter, network);
      assert.equal(await adapter.check(network, result), true, range.join());
      const rules = await rulesOfPod('iptables');
      for (const rule of rules) await node.onHost('iptables', '-t', 'nat', '-D', ...rule.split(' ').slice(1));
      if (rules.length > 0)
        assert.match(
          (await failureOf(adapter.check(network, result))).message,
          /CHECK of pod .* plugin portmap failed/,
        );
      await detach(adapter, network, result);
    }
  });

  it('lists both families of a dual-stack pod, the preferred one first', async (t) => {
    const node = await makeNode(t);
    const confList = bridgeChain(node, ['fd00:77::/64', '10.77.1.0/24']);
    const families: boolean[][] = [];
    for (const ipPreference of ['ipv4', 'ipv6', 'cni'] as const) {
      const adapter = node.adapter({ ipPreference });
      await adapter.start();
      const network = podNetwork(confList, await node.makePodNetns());
      const { ips, result } = await attach(adapter, network);
      families.push(ips.map(isIPv6));
      await detach(adapter, network, result);
    }
    assert.deepEqual(families, [
      [false, true],
      [true, false],
      [true, false],
    ]);
    assert.deepEqual(await leasedIps(node), []);
  });

  it('detaches a pod whose network namespace is gone', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const netnsPath = await node.makePodNetns();
    const network = podNetwork(bridgeChain(node, ['10.77.2.0/24']), netnsPath);
    const { result } = await attach(adapter, network);
    await node.removePodNetns(netnsPath);
    await detach(adapter, network, result);
    assert.deepEqual(await leasedIps(node), []);
  });

  it('fails CHECK once the pod has lost its interface', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const netnsPath = await node.makePodNetns();
    const network = podNetwork(bridgeChain(node, ['10.77.3.0/24']), netnsPath);
    const { result } = await attach(adapter, network);
    assert.equal(await adapter.check(network, result), true, 'CHECK was asked and found nothing wrong');
    await node.onHost('nsenter', `--net=${netnsPath}`, 'ip', 'link', 'del', 'eth0');
    const failure = await failureOf(adapter.check(network, result));
    assert.match(
      failure.message,
      /^CNI CHECK of pod shop\/web-0 \([0-9a-f]{13}\) on network testnet failed: plugin bridge /,
    );
    await detach(adapter, network, result);
    assert.deepEqual(await leasedIps(node), []);
  });

  it('says which plugin, network and pod when addresses run out', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    // Of the four addresses one is the gateway's and one is left.
    const confList = bridgeChain(node, ['10.77.4.0/30']);
    const first = podNetwork(confList, await node.makePodNetns());
    const second = podNetwork(confList, await node.makePodNetns(), { name: 'web-1' });
    const { result } = await attach(adapter, first);
    const failure = await failureOf(attach(adapter, second));
    assert.equal(failure.reason, 'CniFailed');
    assert.match(
      failure.message,
      /pod shop\/web-1 .* on network testnet failed: plugin bridge failed: .*no IP addresses available/,
    );
    await detach(adapter, second, null);
    await detach(adapter, first, result);
    assert.deepEqual(await leftOnHost(node), NOTHING);
  });

  it('C6: DEL after an ADD that failed half-way gives the address back', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    await node.addPlugin(
      'broken',
      '[ "$CNI_COMMAND" = ADD ] && { echo \'{"code":100,"msg":"no luck"}\'; exit 1; }; exit 0',
    );
    const confList = bridgeChain(node, ['10.77.5.0/24']);
    const network = podNetwork(
      { ...confList, plugins: [...confList.plugins, { type: 'broken' }] },
      await node.makePodNetns(),
      {
        portMappings: [{ hostPort: 18081, containerPort: 8081 }],
      },
    );
    const failure = await failureOf(attach(adapter, network));
    assert.match(failure.message, /plugin broken failed: no luck \(code 100\)\.$/);
    assert.equal((await leasedIps(node)).length, 1, 'the half-run ADD holds an address');
    await detach(adapter, network, null);
    assert.deepEqual(await leftOnHost(node), NOTHING);
  });

  it('C6: an ADD performed again after a crash first undoes what the first left', async (t) => {
    const node = await makeNode(t);
    const network = podNetwork(bridgeChain(node, ['10.77.6.0/24']), await node.makePodNetns());
    const before = node.adapter();
    await before.start();
    await attach(before, network);
    const after = node.adapter();
    await after.start();
    const { ips, result } = await attach(after, network);
    assert.deepEqual(await leasedIps(node), ips, 'one address is held, the one that was answered');
    await detach(after, network, result);
    assert.deepEqual(await leftOnHost(node), NOTHING);
  });
});
