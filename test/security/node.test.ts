/**
 * Classes of vulnerabilities that only show on a node: a daemon, a real shim and runc, and containers that try. Each test is
 * named after the advisories that its class is known by.
 */
import assert from 'node:assert/strict';
import { access, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { busyboxImage } from '../../scripts/lib/image.ts';
import { type ContainerConfig, type DeepPartial, NamespaceMode } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { criTool } from '../support/cri-tools.ts';
import { withCode } from '../support/failures.ts';
import { processesOf } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod, runPod, statusOf } from '../support/pods.ts';
import { run, runOk, startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const MiB = 1024 * 1024;

describe('a node', { timeout: 300_000 }, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let pod: { readonly podSandboxId: string; readonly containerId: string };

  before(async () => {
    node = await startNode(owner);
    pod = await runPod(node.daemon, 'plain', busyboxName, ['sleep', '1000'], { pod: ownPids });
  });

  const exec = async (containerId: string, ...cmd: readonly string[]) => {
    const { stdout, stderr, exitCode } = await node.daemon.cri.runtime.execSync({
      containerId,
      cmd: [...cmd],
      timeout: '30',
    });
    return { stdout: stdout.toString(), stderr: stderr.toString(), exitCode };
  };
  /** Starts a container in the pod; rejects with the daemon's refusal. */
  const addContainer = async (name: string, config: DeepPartial<ContainerConfig>): Promise<string> => {
    const { runtime } = node.daemon.cri;
    const made = await runtime.createContainer({
      podSandboxId: pod.podSandboxId,
      config: containerConfig(name, config.image?.image ?? busyboxName, ['sleep', '1000'], config),
      sandboxConfig: podConfig(node.daemon, 'plain', ownPids),
    });
    await runtime.startContainer({ containerId: made.containerId });
    return made.containerId;
  };

  test('CVE-2022-31030, CVE-2022-1708: output without end is cut, and the daemon keeps its memory', async () => {
    const heldKiB = async (): Promise<number> =>
      Number(/^VmRSS:\s+(\d+)/m.exec(await readFile(`/proc/${node.daemon.pid()}/status`, 'utf8'))?.[1]);
    const held = await heldKiB();
    for (let round = 0; round < 3; round += 1) {
      const cmd = ['sh', '-c', 'head -c 100000000 /dev/zero'];
      const { stdout } = await node.daemon.cri.runtime.execSync({ containerId: pod.containerId, cmd, timeout: '30' });
      assert.ok(stdout.length <= 17 * MiB);
      assert.match(stdout.subarray(-200).toString(), /output is cut here, after \d+ bytes.* limits\.exec_output_max/);
    }
    assert.ok((await heldKiB()) - held < 300 * 1024, 'three times 100 MB were not kept');
    assert.equal((await exec(pod.containerId, 'echo', 'alive')).stdout, 'alive\n');
  });

  test('CVE-2025-64329, CVE-2022-23471: clients and commands that fail leave nothing in daemon, shim or log keeper', async () => {
    const { daemon } = node;
    const open = async (): Promise<number> => {
      const pids = [daemon.pid(), ...(await processesOf(daemon.dirs)).map(({ pid }) => pid)];
      const counts = await Promise.all(
        [...new Set(pids)].map(async (pid) => (await readdir(`/proc/${pid}/fd`).catch(() => [])).length),
      );
      return counts.reduce((sum, count) => sum + count, 0);
    };
    const crictl = (...words: readonly string[]): string[] =>
      daemon.netns.inside([criTool('crictl'), '-r', `unix://${daemon.socket}`, ...words]);
    const churn = async (times: number): Promise<void> => {
      for (let round = 0; round < times; round += 1) {
        const attached = await startProcess(owner, crictl('attach', '-i', pod.containerId));
        await run(crictl('exec', '-it', pod.containerId, '/no/such/program'));
        assert.notEqual((await exec(pod.containerId, '/no/such/program').catch(() => ({ exitCode: 127 }))).exitCode, 0);
        attached.kill('SIGKILL');
        await attached.ended;
      }
    };
    // What is there once stays: threads, caches and connections.
    await churn(2);
    const opened = await open();
    await churn(12);
    await eventually('what was open before', async () => (await open()) <= opened + 6, 30_000);
    // The container's own, and the three of this command.
    const { stdout } = await exec(pod.containerId, 'sh', '-c', 'ls /proc | grep -c "^[0-9]"');
    assert.ok(Number(stdout) >= 1 && Number(stdout) <= 4, stdout);
  });

  test('CVE-2020-15257: a container with the network of the node reaches no socket of a shim', async () => {
    const linux = { securityContext: { namespaceOptions: { network: NamespaceMode.NODE } } };
    const other = await runPod(node.daemon, 'host-network', busyboxName, ['sleep', '1000'], {
      pod: { linux },
      container: { linux },
    });
    const abstract = (await exec(other.containerId, 'cat', '/proc/net/unix')).stdout
      .split('\n')
      .filter((line) => /@.*(shim|containerd|scribe)/.test(line));
    assert.deepEqual(abstract, []);
    const { state } = node.daemon.dirs;
    const entries = await readdir(state, { recursive: true, withFileTypes: true });
    const sockets = entries.filter((entry) => entry.isSocket()).map(({ parentPath, name }) => join(parentPath, name));
    assert.ok(sockets.includes(node.daemon.socket));
    for (const path of sockets) assert.equal((await stat(path)).mode & 0o002, 0, path);
    await removePod(node.daemon, other.podSandboxId);
  });

  test('CVE-2022-0811: a kernel parameter of a pod changes nothing of the node, whatever its value says', async () => {
    const patternOf = (): Promise<string> => readFile('/proc/sys/kernel/core_pattern', 'utf8');
    const pattern = await patternOf();
    const { runtime } = node.daemon.cri;
    for (const sysctls of [
      { 'net.core.somaxconn': '1+kernel.core_pattern=|/bin/sh' },
      { 'kernel.core_pattern': '|/bin/sh' },
      { 'net.ipv4.no_such': '1' },
      { 'vm.swappiness': '1' },
    ])
      for (const overrides of [{}, ownPids])
        await assert.rejects(
          runtime.runPodSandbox({
            config: podConfig(node.daemon, 'sysctl', { ...overrides, linux: { ...overrides.linux, sysctls } }),
          }),
          withCode(GrpcCode.INVALID_ARGUMENT, /linux\.sysctls/),
          JSON.stringify(sysctls),
        );
    assert.equal(await patternOf(), pattern);
  });

  test('CVE-2022-4318, CVE-2026-15809: an environment that forges lines writes into no file', async () => {
    const forged = '/root\nforged::0:0::/:/bin/sh';
    const containerId = await addContainer('home', {
      envs: [
        { key: 'HOME', value: Buffer.from(forged) },
        { key: 'USER', value: Buffer.from('forged') },
      ],
      linux: { securityContext: { runAsUser: { value: '4242' } } },
    });
    const { stdout } = await exec(containerId, 'cat', '/etc/passwd', '/etc/group', '/etc/hosts', '/etc/resolv.conf');
    assert.match(stdout, /^root:x:0:0/);
    assert.doesNotMatch(stdout, /forged/);
    assert.equal((await exec(containerId, 'sh', '-c', 'echo "$HOME"')).stdout, `${forged}\n`);
  });

  test('CVE-2024-21626: no descriptor of daemon, shim or runtime is open in a container, by its working directory or otherwise', async () => {
    for (const fd of [3, 5, 7, 8, 9]) {
      const workingDir = `/proc/self/fd/${fd}`;
      const containerId = await addContainer(`fd-${fd}`, { workingDir }).catch(() => null);
      if (containerId === null) continue;
      const { stdout } = await exec(containerId, 'sh', '-c', 'cat ../../../../../../etc/passwd; ls -a /proc/1/cwd/');
      assert.match(stdout, /^root:x:0:0:root:\/root:\/bin\/sh\nnobody/, workingDir);
    }
    const { stdout } = await exec(pod.containerId, 'sh', '-c', 'ls -l /proc/1/fd /proc/self/fd');
    const targets = [...stdout.matchAll(/ -> (.*)$/gm)].map(([, target = '']) => target);
    assert.ok(targets.length > 0);
    assert.deepEqual(
      targets.filter((target) => !/^(pipe:|\/dev\/null|\/proc\/\d+\/fd|\/dev\/pts)/.test(target)),
      [],
    );
  });

  test('CVE-2024-5154, CVE-2022-23648: files and volumes are mounted inside, wherever links of the image lead', async (t) => {
    const outside = await tempDir(t);
    const above = `${'../'.repeat(20)}${outside.slice(1)}`;
    const image = await busyboxImage({ Volumes: { '/volume': {}, [`/${above}/volume`]: {} } }, [
      [
        { name: 'etc/hosts', type: 'symlink', linkname: join(outside, 'hosts') },
        { name: 'etc/resolv.conf', type: 'symlink', linkname: `../${above}/resolv.conf` },
        { name: 'etc/mtab', type: 'symlink', linkname: join(outside, 'mtab') },
        { name: 'volume', type: 'symlink', linkname: outside },
        { name: 'mounted', type: 'symlink', linkname: outside },
      ],
    ]);
    await node.registry.push('links', 'latest', image);
    const name = 'registry.example/links:latest';
    await node.daemon.cri.image.pullImage({ image: { image: name } });
    const source = await tempDir(t);
    await writeFile(join(source, 'file'), 'of the node');
    const mounts = [{ hostPath: source, containerPath: '/mounted' }];
    const started = await addContainer('links', { image: { image: name }, mounts }).catch(() => null);
    if (started !== null)
      await exec(started, 'sh', '-c', 'echo x >> /etc/hosts; echo x > /volume/x; echo x > /etc/mtab');
    assert.deepEqual(await readdir(outside), []);
    assert.deepEqual(await readdir(source), ['file']);
  });

  test('prototype pollution: keys like __proto__ are kept, filtered by and told, over a restart too', async () => {
    const { daemon } = node;
    const labels = Object.fromEntries([
      ['__proto__', 'one'],
      ['constructor', 'two'],
      ['toString', 'three'],
    ]);
    const other = await runPod(daemon, 'labelled', busyboxName, ['sleep', '1000'], {
      pod: { ...ownPids, labels, annotations: labels },
      container: { labels, annotations: labels },
    });
    const check = async (): Promise<void> => {
      const { runtime } = daemon.cri;
      const status = await statusOf(daemon, other.containerId);
      const podStatus = (await runtime.podSandboxStatus({ podSandboxId: other.podSandboxId })).status;
      for (const found of [status.labels, status.annotations, podStatus?.labels, podStatus?.annotations])
        assert.deepEqual(new Map(Object.entries(found ?? {})), new Map(Object.entries(labels)));
      const filtered = async (value: string): Promise<readonly string[]> => {
        const labelSelector = Object.fromEntries([['__proto__', value]]);
        return (await runtime.listContainers({ filter: { labelSelector } })).containers.map(({ id }) => id);
      };
      assert.deepEqual(await filtered('one'), [other.containerId]);
      assert.deepEqual(await filtered('two'), []);
    };
    await check();
    await daemon.kill();
    await daemon.start();
    await check();
    assert.equal(({} as Record<string, unknown>)['one'], undefined);
    await removePod(daemon, other.podSandboxId);
  });

  test('CVE-2025-0750: a log is written beneath the directory of its pod, whatever has been put there', async (t) => {
    const dir = await tempDir(t);
    const [logDirectory, elsewhere] = [join(dir, 'pod'), join(dir, 'elsewhere')];
    await mkdir(logDirectory);
    await mkdir(elsewhere);
    await symlink(elsewhere, join(logDirectory, 'main'));
    const other = await runPod(node.daemon, 'logged', busyboxName, ['sh', '-c', 'echo line; exec sleep 1000'], {
      pod: { ...ownPids, logDirectory },
      container: { logPath: 'main/0.log' },
    }).catch(() => null);
    if (other !== null) {
      await exec(other.containerId, 'true');
      await node.daemon.cri.runtime.reopenContainerLog({ containerId: other.containerId }).catch(() => undefined);
      await removePod(node.daemon, other.podSandboxId);
    }
    assert.deepEqual(await readdir(elsewhere), []);
  });

  test('CVE-2024-25621: the directories of a pod are for nobody else', async () => {
    const { state } = node.daemon.dirs;
    for (const path of [join(state, 'bundles', pod.containerId), join(state, 'sandboxes', pod.podSandboxId)])
      assert.equal((await stat(path)).mode & 0o7777, 0o700, path);
    await access(join(state, 'bundles', pod.containerId, 'rootfs/bin/sh'));
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--', 'ls'];
    const { stderr } = await run([...nobody, join(state, 'bundles', pod.containerId, 'rootfs')]);
    assert.match(stderr, /Permission denied/);
    await runOk(['ls', join(state, 'bundles', pod.containerId, 'rootfs')]);
  });
});
