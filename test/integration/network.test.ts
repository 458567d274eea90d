/**
 * The pod network beyond attaching: STATUS, GC and CHECK as the daemon asks for them, pods whose plugin is missing or does not
 * take what it is configured with, and those whose plugin is there too early.
 * The plugins are the real ones; as those of some distributions know neither STATUS nor GC, a script before the bridge
 * plugin speaks these two.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { bridgeConfList, cniBinDir } from '../../scripts/lib/cni.ts';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { type Daemon, startDaemon } from '../support/daemon.ts';
import { eventually, ownPids, podConfig } from '../support/pods.ts';
import { runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const timeout = 120_000;
const patienceMs = 30_000;
const network = `net-${randomBytes(4).toString('hex')}`;
const UNMADE_PODS_MAX = 100;
const strangersAddress = '10.213.200.1';

/** Speaks version 1.1.0 for a bridge plugin that does not: its own STATUS and GC, and the rest by the real one. */
const wrapper = (dir: string, bridge: string): string => `#!/bin/sh
echo "$CNI_COMMAND $CNI_ARGS" >> ${dir}/begun
request=$(cat)
echo "$CNI_COMMAND $CNI_ARGS" >> ${dir}/asked
case $CNI_COMMAND in
STATUS)
  [ ! -e ${dir}/not-ready ] || { echo '{"cniVersion":"1.1.0","code":50,"msg":"no room for pods"}'; exit 1; }
  exit 0 ;;
GC)
  for lease in ${dir}/addresses/${network}/[0-9]*; do
    owner=$(head -n 1 "$lease" | tr -d '\\r')
    case "$request" in *"$owner"*) ;; *) rm "$lease" ;; esac
  done
  exit 0 ;;
esac
answer=$(printf %s "$request" | sed 's/"cniVersion":"1.1.0"/"cniVersion":"1.0.0"/g' | ${bridge})
status=$?
printf %s "$answer" | sed 's/"cniVersion": "1.0.0"/"cniVersion": "1.1.0"/'
exit $status
`;

describe('the pod network', () => {
  const owner = cleanupAfterAll();
  let dir: string;
  let daemon: Daemon;

  const confList = (change: (plugin: Record<string, unknown>) => object = (plugin) => plugin): string => {
    const options = { name: network, bridge: network.slice(0, 12), subnet: '10.213.0.0/16', ipMasq: false };
    const written = bridgeConfList({ ...options, dataDir: join(dir, 'addresses') });
    const { plugins, ...list } = JSON.parse(written) as { plugins: Record<string, unknown>[] };
    const [bridge = {}] = plugins;
    return JSON.stringify({ ...list, cniVersion: '1.1.0', plugins: [change({ ...bridge, type: 'bridge-of-test' })] });
  };
  const leases = async (): Promise<string[]> =>
    (await readdir(join(dir, 'addresses', network))).filter((name) => /^\d/.test(name));

  before(async () => {
    dir = await tempDir(owner);
    const binDir = join(dir, 'bin');
    await mkdir(binDir);
    await writeFile(join(binDir, 'bridge-of-test'), wrapper(dir, join(await cniBinDir(), 'bridge')));
    await chmod(join(binDir, 'bridge-of-test'), 0o755);
    await mkdir(join(dir, 'addresses', network), { recursive: true });
    daemon = await startDaemon(owner, {
      confLists: { '10-test.conflist': confList() },
      args: ['--cni-bin-dir', binDir],
    });
  });

  const networkReady = async () => {
    const { status } = await daemon.cri.runtime.status({});
    return status?.conditions.find(({ type }) => type === 'NetworkReady');
  };

  test("NetworkReady is what the plugins' STATUS says", { timeout }, async () => {
    assert.equal((await networkReady())?.status, true);
    await writeFile(join(dir, 'not-ready'), '');
    const told = await eventually(
      'the plugin to be not ready',
      async () => {
        const condition = await networkReady();
        return condition?.status === false && condition;
      },
      patienceMs,
    );
    assert.equal(told.reason, 'NetworkPluginNotReady');
    assert.match(told.message, /STATUS.*bridge-of-test failed: no room for pods \(code 50\)/);
    await rm(join(dir, 'not-ready'));
    await eventually('the plugin to be ready', async () => (await networkReady())?.status === true, patienceMs);
  });

  test('an address that no pod owns is collected after a start, and a lost one of a pod is told', {
    timeout,
  }, async () => {
    const { runtime } = daemon.cri;
    const { podSandboxId } = await runtime.runPodSandbox({ config: podConfig(daemon, 'kept') });
    const { status } = await runtime.podSandboxStatus({ podSandboxId });
    const ip = status?.network?.ip ?? '';
    await writeFile(join(dir, 'addresses', network, strangersAddress), `${'f'.repeat(64)}\r\neth0`);
    const netns = join(daemon.dirs.state, 'netns', podSandboxId);
    await runOk(daemon.netns.inside(['nsenter', `--net=${netns}`, 'ip', 'address', 'flush', 'dev', 'eth0']));
    await daemon.kill();
    await daemon.start();
    await eventually('the collection', async () => !(await leases()).includes(strangersAddress), patienceMs);
    assert.deepEqual(
      (await leases()).filter((name) => name !== strangersAddress),
      [ip],
    );
    const lost = /not as it was made: CNI CHECK of pod [^ ]*kept/;
    await eventually('the check', () => Promise.resolve(lost.test(daemon.log())), patienceMs);
    await runtime.stopPodSandbox({ podSandboxId });
    await runtime.removePodSandbox({ podSandboxId });
    assert.deepEqual(await leases(), []);
  });

  test('a plugin is there before the namespaces of its pod, and is asked nothing when they cannot be made', {
    timeout,
  }, async () => {
    const { runtime } = daemon.cri;
    const addsIn = async (file: string): Promise<string[]> =>
      (await readFile(join(dir, file), 'utf8')).split('\n').filter((line) => /^ADD .*=unmade-/.test(line));
    const linux = { ...ownPids.linux, sysctls: { 'net.ipv4.ip_forward': 'nonsense' } };
    // One may be killed before its first line.
    for (let pods = 1; (await addsIn('begun')).length === 0; pods += 1) {
      assert.ok(pods <= UNMADE_PODS_MAX, `of ${UNMADE_PODS_MAX} pods that were not made none had a plugin begin`);
      const config = podConfig(daemon, `unmade-${pods}`, { linux });
      await assert.rejects(runtime.runPodSandbox({ config }), /ip_forward/);
    }
    assert.deepEqual(await addsIn('asked'), []);
    assert.deepEqual((await runtime.listPodSandbox()).items, []);
    assert.deepEqual(await leases(), []);
  });

  const withIpam = (plugin: Record<string, unknown>, change: object): object => ({
    ...plugin,
    ipam: { ...(plugin['ipam'] as object), ...change },
  });
  const broken: readonly (readonly [
    what: string,
    told: RegExp,
    change: (plugin: Record<string, unknown>) => object,
  ])[] = [
    ['plugin was missing', /not-there/, (plugin) => ({ ...plugin, type: 'not-there' })],
    ['IPAM plugin was missing', /not-there/, (plugin) => withIpam(plugin, { type: 'not-there' })],
    [
      'subnet was mistyped',
      /invalid CIDR address/,
      (plugin) => withIpam(plugin, { ranges: [[{ subnet: '10.213.0.0/33' }]] }),
    ],
  ];
  for (const [what, told, change] of broken)
    test(`a pod whose ${what} can be removed once the network works again`, { timeout }, async () => {
      const { runtime } = daemon.cri;
      const path = join(daemon.cniConfDir, '10-test.conflist');
      const inForce = async (text: string): Promise<void> => {
        await writeFile(path, text);
        const { plugins } = JSON.parse(text) as { plugins: unknown };
        await eventually(
          'the configuration to be read',
          async () => {
            const { info } = await runtime.status({ verbose: true });
            const now = JSON.parse(info['network'] ?? '{}') as { confList?: { plugins: unknown } };
            return isDeepStrictEqual(now.confList?.plugins, plugins);
          },
          patienceMs,
        );
      };
      await inForce(confList(change));
      const config = podConfig(daemon, `without-${what.length}`);
      await assert.rejects(runtime.runPodSandbox({ config }), (error) => {
        assert.equal(codeOf(error), GrpcCode.UNKNOWN);
        assert.match(String(error), told);
        return true;
      });
      const { items } = await runtime.listPodSandbox();
      const [left] = items;
      assert.ok(left !== undefined && items.length === 1, 'it is listed while something is owed');
      await assert.rejects(runtime.stopPodSandbox({ podSandboxId: left.id }), told);
      await inForce(confList());
      await runtime.stopPodSandbox({ podSandboxId: left.id });
      await runtime.removePodSandbox({ podSandboxId: left.id });
      assert.deepEqual((await runtime.listPodSandbox()).items, []);
      assert.deepEqual(await leases(), []);
    });
});
