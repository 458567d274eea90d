/** Containers in classes of block I/O and RDT, on the real OCI runtime and cgroups. */
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { readHostFacts } from '../../src/platform/linux/host-facts.ts';
import { deviceNumber, makeNode, NodeType } from '../../src/platform/linux/syscalls.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { busyboxName, startNode } from '../support/node.ts';
import { containerConfig, podConfig, removePod, runPod } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

/** "major:minor" of a whole disk of this machine. */
const anyDisk = async (): Promise<string> => {
  const [name] = await readdir('/sys/block');
  assert.ok(name, 'this machine has no block device to limit');
  return (await readFile(`/sys/block/${name}/dev`, 'utf8')).trim();
};

describe('classes', () => {
  const owner = cleanupAfterAll();

  test('of block I/O are in force in the cgroup; unknown ones, and those of RDT without resctrl, are refused', async () => {
    const dir = await tempDir(owner);
    const disk = await anyDisk();
    const [major = 0, minor = 0] = disk.split(':').map(Number);
    await makeNode(join(dir, 'disk0'), NodeType.blockDevice | 0o600, deviceNumber(major, minor));
    const parameters = `{Devices: ["${dir}/disk*"], ThrottleReadBps: 3Mi, ThrottleWriteIOPS: 2k}`;
    await writeFile(join(dir, 'classes.yaml'), `Classes:\n  slow:\n    - ${parameters}\n`, { mode: 0o644 });
    const config = `[runtime]\nblockio_config_file = "${dir}/classes.yaml"\n`;
    const { daemon } = await startNode(owner, { config });

    const { podSandboxId, containerId } = await runPod(daemon, 'slow', busyboxName, ['sleep', '1000'], {
      pod: { annotations: { 'blockio.resources.beta.kubernetes.io/container.main': 'slow' } },
    });
    const { cgroup, resctrl } = await readHostFacts();
    if (cgroup.version === 1) {
      const files = ['read_bps_device', 'write_iops_device'].map(
        (file) => `/sys/fs/cgroup/blkio${daemon.dirs.cgroupParent}/${containerId}/blkio.throttle.${file}`,
      );
      const limits = await Promise.all(files.map((file) => readFile(file, 'utf8')));
      assert.deepEqual(limits, [`${disk} 3145728\n`, `${disk} 2000\n`]);
    } else {
      const limits = await readFile(`/sys/fs/cgroup${daemon.dirs.cgroupParent}/${containerId}/io.max`, 'utf8');
      assert.equal(limits, `${disk} rbps=3145728 wbps=max riops=max wiops=2000\n`);
    }

    const sandboxConfig = podConfig(daemon, 'refused');
    const refusing = await daemon.cri.runtime.runPodSandbox({ config: sandboxConfig });
    const create = (annotations: Readonly<Record<string, string>>): Promise<unknown> =>
      daemon.cri.runtime.createContainer({
        podSandboxId: refusing.podSandboxId,
        config: containerConfig('main', busyboxName, ['true'], { annotations: { ...annotations } }),
        sandboxConfig,
      });
    const cases: [Readonly<Record<string, string>>, RegExp][] = [
      [{ 'io.kubernetes.cri.blockio-class': 'fast' }, /the class "fast" of block I\/O is not in .*classes\.yaml/],
    ];
    if (!resctrl)
      cases.push([{ 'io.kubernetes.cri.rdt-class': 'gold' }, /the class "gold" of RDT, which is not enabled/]);
    for (const [annotations, message] of cases)
      await assert.rejects(create(annotations), withCode(GrpcCode.FAILED_PRECONDITION, message));

    // Limits that are changed before the start stand beside the class in the spec.
    const { containerId: waiting } = await daemon.cri.runtime.createContainer({
      podSandboxId: refusing.podSandboxId,
      config: containerConfig('main', busyboxName, ['true'], {
        annotations: { 'io.kubernetes.cri.blockio-class': 'slow' },
      }),
      sandboxConfig,
    });
    const linux = { memoryLimitInBytes: String(64 * 1024 * 1024) };
    await daemon.cri.runtime.updateContainerResources({ containerId: waiting, linux });
    const spec = JSON.parse(await readFile(join(daemon.dirs.state, 'bundles', waiting, 'config.json'), 'utf8')) as {
      readonly linux: {
        readonly resources: { readonly blockIO?: unknown; readonly memory?: { readonly limit: number } };
      };
    };
    assert.equal(spec.linux.resources.memory?.limit, 64 * 1024 * 1024);
    assert.deepEqual(spec.linux.resources.blockIO, {
      throttleReadBpsDevice: [{ major, minor, rate: 3_145_728 }],
      throttleWriteIOPSDevice: [{ major, minor, rate: 2_000 }],
    });
    await removePod(daemon, podSandboxId);
    await removePod(daemon, refusing.podSandboxId);
  });
});
