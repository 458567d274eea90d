/** The simulated node, as daemon.started records it. */
import type { DaemonFacts } from '../../src/domain/model/daemon-facts.ts';
import { DECISION_RULES } from '../../src/domain/model/rules.ts';

export const FACTS: DaemonFacts = {
  rules: DECISION_RULES,
  version: '0.0.0-simulated',
  rootDir: '/root-dir',
  stateDir: '/state-dir',
  node: {
    bootId: 'boot',
    kernelRelease: '6.18.0',
    architecture: 'amd64',
    cgroup: {
      version: 1,
      controllers: { memory: '/sys/fs/cgroup/memory', cpu: '/sys/fs/cgroup/cpu' },
      swapAccounting: false,
    },
    capabilities: ['CAP_CHOWN', 'CAP_KILL'],
    canRaiseLimits: false,
    ownOomScoreAdj: 0,
    seccomp: true,
    apparmor: false,
    selinux: false,
    hugepageSizes: [],
    hostname: 'node',
    cpuCount: 2,
  },
  handlers: [
    {
      name: 'runc',
      runtimeType: 'io.containerd.runc.v2',
      binaryName: 'runc',
      systemdCgroup: false,
      sandboxer: 'none',
      userNamespaces: true,
    },
    {
      name: 'own',
      runtimeType: 'io.example.sandbox.v1',
      binaryName: 'runc',
      systemdCgroup: false,
      sandboxer: 'shim',
    },
  ],
  defaultHandler: 'runc',
  settings: {
    cgroupDriver: 'cgroupfs',
    restrictOomScoreAdj: true,
    enableUnprivilegedPorts: true,
    enableUnprivilegedIcmp: true,
  },
  sandboxImage: null,
  pauseRootfs: '/state-dir/pause',
};

export const CONF_LIST = { cniVersion: '1.0.0', name: 'sim', plugins: [{ type: 'bridge' }] };

const SELINUX = { process: 'system_u:system_r:container_t:s0', file: 'system_u:object_r:container_file_t:s0' };

/** Every fourth node has an image for its pause tasks, every third one SELinux; on every seventh pods share shims. */
export const factsOf = (seed: number, image: string | null): DaemonFacts => ({
  ...FACTS,
  ...(seed % 7 === 0 ? { handlers: FACTS.handlers.map((handler) => ({ ...handler, podsPerShim: 3 })) } : {}),
  ...(seed % 4 === 0 ? { sandboxImage: image } : {}),
  ...(seed % 3 === 0 ? { node: { ...FACTS.node, selinux: true }, selinux: SELINUX } : {}),
});
