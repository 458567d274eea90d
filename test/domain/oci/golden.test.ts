/**
 * Whole specs against files: what a change alters in any of them shows in its diff. To accept a change, run this file
 * with UPDATE_GOLDEN=1, then npm run format, and read the difference before committing it.
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { MountPropagation, NamespaceMode, ProfileType } from '../../../src/domain/model/cri.ts';
import type { DeviceFact, MountFact } from '../../../src/domain/model/container-facts.ts';
import type { OciSpec } from '../../../src/domain/model/oci.ts';
import {
  buildContainer,
  buildSandbox,
  imageConfig,
  nodeV1,
  podConfig,
  privilegedPod,
  rootFacts,
  settings,
} from './support.ts';

const goldenDir = join(import.meta.dirname, 'golden');
const updating = process.env['UPDATE_GOLDEN'] === '1';

const mountFact = (hostPath: string, propagation: MountFact['propagation'] = 'shared'): MountFact => ({
  hostPath,
  realPath: `/real${hostPath}`,
  isDirectory: true,
  propagation,
  flags: [],
});

const deviceFact = (hostPath: string, path: string, minor: number): DeviceFact => ({
  ...{ hostPath, path, type: 'c', major: 116, minor, fileMode: 0o660, uid: 0, gid: 29 },
});

const { NODE, CONTAINER, TARGET } = NamespaceMode;

/** One entry per file of golden/. */
const matrix: Readonly<Record<string, () => OciSpec>> = {
  'sandbox-plain': () => buildSandbox(),
  'sandbox-on-the-node': () =>
    buildSandbox(
      { ...podConfig, linux: { securityContext: { namespaceOptions: { network: NODE, pid: NODE, ipc: NODE } } } },
      { netnsPath: null, node: nodeV1 },
    ),
  'sandbox-user-and-sysctls': () =>
    buildSandbox(
      {
        ...podConfig,
        linux: {
          cgroupParent: '/kubepods.slice/kubepods-pod1.slice',
          sysctls: { 'net.ipv4.ip_forward': '1', 'net.ipv4.ping_group_range': '5 10' },
          resources: { cpuQuota: '100000', cpuPeriod: '100000', cpuShares: '1024', memoryLimitInBytes: '1048576' },
          securityContext: { runAsUser: { value: '1000' }, runAsGroup: { value: '1001' }, supplementalGroups: ['7'] },
        },
      },
      {
        settings: {
          ...settings,
          cgroupDriver: 'systemd',
          restrictOomScoreAdj: true,
          enableUnprivilegedIcmp: true,
          enableUnprivilegedPorts: true,
        },
      },
    ),
  'container-plain': () => buildContainer(),
  'container-node-v1': () =>
    buildContainer(
      {
        linux: {
          resources: { memoryLimitInBytes: '1048576', cpuShares: '2', cpusetCpus: '0', oomScoreAdj: '-997' },
        },
      },
      { node: nodeV1, settings: { ...settings, cgroupDriver: 'systemd' }, sandboxConfig: { ...podConfig, linux: {} } },
    ),
  'container-seccomp-default': () =>
    buildContainer({
      linux: {
        securityContext: {
          seccomp: { profileType: ProfileType.RuntimeDefault },
          noNewPrivs: true,
          capabilities: { addCapabilities: ['SYS_TIME'], dropCapabilities: ['ALL'] },
        },
      },
    }),
  'container-everything': () =>
    buildContainer(
      {
        command: ['/bin/run'],
        args: ['--it'],
        workingDir: '/srv',
        tty: true,
        envs: [{ key: 'MODE', token: 'token-mode' }, { key: 'EMPTY' }],
        mounts: [
          { containerPath: '/deep/below', hostPath: '/a', propagation: MountPropagation.PROPAGATION_HOST_TO_CONTAINER },
          { containerPath: '/deep', hostPath: '/b', readonly: true, mountOptions: ['noexec'] },
          { containerPath: '/etc/hosts', hostPath: '/c' },
          { containerPath: '/dev/shm', hostPath: '/d', propagation: MountPropagation.PROPAGATION_BIDIRECTIONAL },
        ],
        devices: [{ hostPath: '/dev/snd', containerPath: '/dev/sound', permissions: 'rw' }],
        linux: {
          resources: {
            cpuPeriod: '100000',
            cpuQuota: '150000',
            cpuShares: '1536',
            cpusetCpus: '0-3',
            cpusetMems: '0',
            memoryLimitInBytes: '268435456',
            memorySwapLimitInBytes: '536870912',
            oomScoreAdj: '900',
            hugepageLimits: [
              { pageSize: '2MB', limit: '4194304' },
              { pageSize: '1GB', limit: '0' },
              { pageSize: '16GB', limit: '0' },
            ],
            unified: { 'memory.high': '241591910' },
          },
          securityContext: {
            readonlyRootfs: true,
            namespaceOptions: { pid: TARGET, targetId: 'c'.repeat(64) },
            maskedPaths: ['/proc/kcore'],
            readonlyPaths: ['/proc/sys'],
          },
        },
      },
      {
        targetPid: 777,
        imageConfig: { ...imageConfig, volumes: ['/data', '/deep', 'relative/'] },
        imageVolumes: [{ imagePath: '/data', hostPath: '/root/containers/b/volumes/0' }],
        facts: {
          user: { uid: 1000, gid: 1001, additionalGids: [1001, 2000] },
          devices: [deviceFact('/dev/snd', '/dev/snd/pcm0', 16), deviceFact('/dev/snd', '/dev/snd/by-path/seq', 1)],
          mounts: ['/a', '/b', '/c', '/d'].map((path) => mountFact(path)),
        },
      },
    ),
  'container-privileged': () =>
    buildContainer(
      {
        linux: {
          securityContext: {
            privileged: true,
            namespaceOptions: { pid: CONTAINER },
            seccomp: { profileType: ProfileType.RuntimeDefault },
            maskedPaths: ['/proc/kcore'],
            capabilities: { dropCapabilities: ['ALL'] },
          },
        },
      },
      {
        sandboxConfig: privilegedPod,
        node: nodeV1,
        facts: {
          ...rootFacts,
          devices: [deviceFact('/dev', '/dev/snd/pcm0', 16), deviceFact('/dev', '/dev/kvm', 232)],
        },
      },
    ),
};

const filesOf = async (): Promise<string[]> =>
  (await readdir(goldenDir)).map((name) => name.replace(/\.json$/, '')).sort();

describe('golden specs', () => {
  for (const [name, build] of Object.entries(matrix)) {
    it(`${name} is as its file says`, async () => {
      const path = join(goldenDir, `${name}.json`);
      const text = JSON.stringify(build(), null, 2);
      if (updating) {
        await mkdir(goldenDir, { recursive: true });
        await writeFile(path, text);
      }
      assert.deepEqual(JSON.parse(text), JSON.parse(await readFile(path, 'utf8')));
    });
  }

  it('has no file without a spec', async () => {
    assert.deepEqual(await filesOf(), Object.keys(matrix).sort());
  });
});
