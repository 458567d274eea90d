/**
 * What the configuration says to one runtime handler and not to another, on the real parts: networks of its own, and the
 * OCI spec that its containers are made from.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { bridgeConfList } from '../../scripts/lib/cni.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { goProgram } from '../support/go-program.ts';
import { stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod, statusOf } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('a runtime handler with a shim of another name', () => {
  const owner = cleanupAfterAll();

  test('runs its pods with what that name says in PATH, and tells it its options', async () => {
    const dir = await tempDir(owner);
    await symlink(await goProgram('containerd-shim-sandbox'), join(dir, 'containerd-shim-other-one-v7'));
    const type = 'runtime_type = "io.example.other-one.v7"';
    const config = `[runtime.handlers.other]\n${type}\n[runtime.handlers.told]\n${type}\noptions = { ConfigPath = "/x" }\n`;
    const env = { PATH: `${dir}:${process.env['PATH'] ?? ''}` };
    const { daemon } = await startNode(owner, { config, env });
    const { runtime } = daemon.cri;
    const sandboxConfig = podConfig(daemon, 'other', ownPids);
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig, runtimeHandler: 'other' });
    const main = containerConfig('main', busyboxName, ['sleep', '1000']);
    const { containerId } = await runtime.createContainer({ podSandboxId, config: main, sandboxConfig });
    await runtime.startContainer({ containerId });
    const shim = stateOf(daemon).sandboxes.get(podSandboxId)?.shim?.pid ?? 0;
    assert.match(await readFile(`/proc/${shim}/cmdline`, 'utf8'), /containerd-shim-(other-one-v7|sandbox)/);
    const { stdout } = await runtime.execSync({ containerId, cmd: ['hostname'], timeout: '10' });
    assert.equal(stdout.toString(), 'other\n');
    await daemon.kill();
    await daemon.start();
    await runtime.stopContainer({ containerId, timeout: '0' });
    assert.equal((await statusOf(daemon, containerId)).exitCode, 137);
    await removePod(daemon, podSandboxId);
    // This shim knows runc's options only, and says what else it was told.
    await assert.rejects(
      runtime.runPodSandbox({ config: podConfig(daemon, 'told'), runtimeHandler: 'told' }),
      /runtimeoptions\.v1\.Options/,
    );
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });
});

describe('the base spec of a runtime handler', () => {
  const owner = cleanupAfterAll();

  test('is what its containers begin with, also after the handler is gone from the configuration', async () => {
    const path = join(await tempDir(owner), 'base.json');
    const base = {
      process: { rlimits: [{ type: 'RLIMIT_MSGQUEUE', soft: 123, hard: 456 }], env: ['BASE=given'] },
      mounts: [{ destination: '/scratch', type: 'tmpfs', source: 'tmpfs', options: ['size=1m'] }],
      linux: { resources: { pids: { limit: 77 } } },
    };
    await writeFile(path, JSON.stringify(base));
    const config = `[runtime.handlers.based]\nbase_runtime_spec = "${path}"\n`;
    const { daemon } = await startNode(owner, { config });
    const { runtime } = daemon.cri;
    const sandboxConfig = podConfig(daemon, 'based', ownPids);
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig, runtimeHandler: 'based' });
    const limits = "awk '/msgqueue/ { print $4, $5 }' /proc/self/limits";
    const script = `${limits}; echo $BASE; grep -c " /scratch tmpfs" /proc/mounts; cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null`;
    const look = async (name: string): Promise<string> => {
      const main = containerConfig(name, busyboxName, ['sleep', '1000']);
      const { containerId } = await runtime.createContainer({ podSandboxId, config: main, sandboxConfig });
      await runtime.startContainer({ containerId });
      const cmd = ['sh', '-c', script];
      return (await runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString();
    };
    assert.equal(await look('one'), '123 456\ngiven\n1\n77\n');
    await daemon.stop();
    await daemon.configure('');
    await rm(path);
    await daemon.start();
    assert.equal(await look('two'), '123 456\ngiven\n1\n77\n');
    await removePod(daemon, podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });
});

describe('the network of a runtime handler', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let dir: string;
  let otherDir: string;

  const network = (name: string, subnet: string): string =>
    bridgeConfList({ name, bridge: `sc-${name}`, subnet, dataDir: join(dir, 'addresses'), ipMasq: false });
  const handlers = (text: string): string =>
    `[runtime.handlers.other]\ncni_conf_dir = "${otherDir}"\n[runtime.handlers.named]\n${text}`;

  before(async () => {
    dir = await tempDir(owner);
    otherDir = join(dir, 'other.d');
    await mkdir(otherDir);
    await writeFile(join(otherDir, '10-a.conflist'), network('first', '10.214.0.0/16'));
    await writeFile(join(otherDir, '20-b.conflist'), network('second', '10.215.0.0/16'));
    node = await startNode(owner, { config: handlers(`cni_conf_dir = "${otherDir}"\ncni_network = "second"`) });
  });

  const run = async (name: string, runtimeHandler: string) => {
    const config = podConfig(node.daemon, name, ownPids);
    return (await node.daemon.cri.runtime.runPodSandbox({ config, runtimeHandler })).podSandboxId;
  };
  const addressOf = async (podSandboxId: string): Promise<string> =>
    (await node.daemon.cri.runtime.podSandboxStatus({ podSandboxId })).status?.network?.ip ?? '';
  const firstAddress = async (name: string, runtimeHandler: string): Promise<string> => {
    const podSandboxId = await run(name, runtimeHandler);
    const address = await addressOf(podSandboxId);
    await removePod(node.daemon, podSandboxId);
    return address;
  };

  test('is that of its directory, or the named one of it, and nobody else gets it', async () => {
    assert.match(await firstAddress('main', ''), /^10\.213\./);
    assert.match(await firstAddress('other', 'other'), /^10\.214\./);
    assert.match(await firstAddress('named', 'named'), /^10\.215\./);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });

  test('follows its directory, and pods leave the network they were attached to', async () => {
    const before = await run('stays', 'other');
    await writeFile(join(otherDir, '05-new.conflist'), network('newer', '10.216.0.0/16'));
    await eventually('the new network', async () => (await firstAddress('tries', 'other')).startsWith('10.216.'));
    assert.match(await addressOf(before), /^10\.214\./);
    await node.daemon.kill();
    await node.daemon.start();
    assert.match(await firstAddress('after', 'other'), /^10\.216\./);
    assert.match(await firstAddress('main', ''), /^10\.213\./);
    await removePod(node.daemon, before);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });

  test('refuses pods where there is none, with the reason, and counts no longer when it is another', async () => {
    const { daemon } = node;
    await daemon.stop();
    await daemon.configure(handlers('cni_network = "missing"'));
    await daemon.start();
    await assert.rejects(
      run('lost', 'named'),
      withCode(
        GrpcCode.FAILED_PRECONDITION,
        /no valid configuration of CNI network missing in .*10-bridge\.conflist is of network/,
      ),
    );
    const { status } = await daemon.cri.runtime.status({});
    assert.equal(status?.conditions.find(({ type }) => type === 'NetworkReady')?.status, true);
    assert.match(
      (await daemon.scribe('history', '--root', daemon.dirs.root)).stdout,
      /no network .*handler named: no valid/,
    );
  });
});
