/**
 * Classes of vulnerabilities that come with what a client says of a pod: annotations, paths, parameters, capabilities. Each
 * test is named after the advisories that its class is known by.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ContainerConfig } from '../../src/domain/model/cri.ts';
import type { ContainerFacts } from '../../src/domain/model/container-facts.ts';
import { pathsToRelabel } from '../../src/domain/oci/selinux.ts';
import { validateContainerConfig, validatePodSandboxConfig } from '../../src/domain/oci/validate.ts';
import {
  buildContainer,
  buildSandbox,
  containerInput,
  imageConfig,
  nodeV2,
  podConfig,
  rootFacts,
  settings,
  withContext,
} from '../domain/oci/support.ts';

const SELINUX = { process: 'u:r:container_t:s0:c1,c2', mount: 'u:object_r:container_file_t:s0:c1,c2' };

const facts = (...paths: readonly string[]): ContainerFacts => ({
  ...rootFacts,
  mounts: paths.map((path) => ({
    hostPath: path,
    realPath: path,
    isDirectory: false,
    propagation: 'private',
    flags: [],
  })),
});

describe('what a client says of a pod', () => {
  it('CVE-2021-43816: no path of the node is labelled for a container unless its mount asks for it', () => {
    const mounts = [
      { containerPath: '/etc/hosts', hostPath: '/etc/shadow' },
      { containerPath: '/data', hostPath: '/pods/data', selinuxRelabel: true },
    ];
    const found = facts('/etc/shadow', '/pods/data');
    assert.deepEqual(pathsToRelabel(SELINUX, { mounts }, found), ['/pods/data']);
    const ofNode = { mounts: [{ containerPath: '/etc', hostPath: '/etc', selinuxRelabel: true }] };
    assert.throws(() => pathsToRelabel(SELINUX, ofNode, facts('/etc')), /selinux_relabel/);
  });

  it("CVE-2021-21334: a container's environment is its own, however many are made of one image", () => {
    const frozen = Object.freeze({ ...imageConfig, env: Object.freeze([...(imageConfig.env ?? [])]) });
    const of = (key: string): ContainerConfig => ({ envs: [{ key, token: `secret:${key}` }] });
    const specs = ['ONE', 'TWO', 'THREE'].map((key) => buildContainer(of(key), { imageConfig: frozen }));
    for (const [index, { process }] of specs.entries()) {
      const named = process.env.flatMap((entry) => (typeof entry === 'string' ? [] : [entry.name]));
      assert.deepEqual(named, [['ONE', 'TWO', 'THREE'][index]]);
    }
    assert.deepEqual(frozen, imageConfig);
  });

  it('GHSA-7ww5-4wqc-m92c: the energy counters of the processor are masked, whether or not a kubelet knows of them', () => {
    const powercap = '/sys/devices/virtual/powercap';
    const masked = (maskedPaths: readonly string[]): readonly string[] =>
      buildContainer(withContext({ maskedPaths })).linux.maskedPaths ?? [];
    assert.deepEqual(masked(['/proc/kcore']), ['/proc/kcore', powercap]);
    assert.deepEqual(masked([powercap, '/proc/kcore']), [powercap, '/proc/kcore']);
    assert.deepEqual(masked([]), []);
  });

  it('CVE-2022-24769, CVE-2022-27652: no capability is inheritable unless an ambient one is asked for', () => {
    for (const context of [{}, { capabilities: { addCapabilities: ['ALL'] } }, { runAsUser: { value: '1000' } }]) {
      const { capabilities } = buildContainer(withContext(context)).process;
      assert.deepEqual(capabilities.inheritable, []);
      assert.deepEqual(capabilities.ambient, []);
    }
  });

  it('CVE-2022-0811: a kernel parameter is a name and a value, and no other can follow in either', () => {
    const of = (name: string, value: string) =>
      validatePodSandboxConfig({ ...podConfig, linux: { sysctls: { [name]: value } } }, { node: nodeV2, settings });
    const forged = '1+kernel.core_pattern=|/bin/sh';
    for (const name of [
      `net.core.somaxconn=${forged}`,
      'net.core.x+kernel.core_pattern',
      'net/../../../etc/x',
      'kernel',
    ])
      assert.match(of(name, '1')?.message ?? '', /linux\.sysctls/, name);
    for (const value of ['1\nkernel.core_pattern=|/bin/sh', '1\0', 'x'.repeat(2000)])
      assert.match(of('net.core.somaxconn', value)?.message ?? '', /linux\.sysctls/, value.slice(0, 20));
    // A plus is as good as any other character of a value, since no command line is made of it.
    const { sysctl } = buildSandbox({ ...podConfig, linux: { sysctls: { 'net.core.somaxconn': forged } } }).linux;
    assert.deepEqual(sysctl, { 'net.core.somaxconn': forged });
  });

  it('CVE-2024-3154: annotations that are properties of systemd units or orders to runtimes never pass', () => {
    const wide = { ...settings, podAnnotations: ['*', '*/*'], containerAnnotations: ['*', '*/*'] };
    const orders = {
      'org.systemd.property.ExecStopPost': 'x',
      'org.systemd.property.After': "['x.service']",
      'run.oci.hooks.stdout': '/etc/cron.d/x',
    };
    const pod = { ...podConfig, annotations: orders };
    const told = [
      buildSandbox(pod, { settings: wide }).annotations,
      buildContainer({ annotations: orders }, { sandboxConfig: pod, settings: wide }).annotations,
    ];
    for (const annotations of told)
      assert.deepEqual(
        Object.keys(annotations ?? {}).filter((key) => key in orders),
        [],
      );
  });

  it('CVE-2023-6476: no annotation of a pod or container passes that the runtime handler does not list', () => {
    const annotations = { 'io.kubernetes.cri-o.UnifiedCgroup.main': 'memory.max=max', 'vendor.example/x': 'y' };
    const pod = { ...podConfig, annotations };
    const none = buildContainer({ annotations }, { sandboxConfig: pod });
    const listed = buildContainer(
      { annotations },
      { sandboxConfig: pod, settings: { ...settings, containerAnnotations: ['vendor.example/*'] } },
    );
    for (const key of Object.keys(annotations)) assert.ok(!Object.hasOwn(none.annotations ?? {}, key), key);
    assert.equal(listed.annotations?.['vendor.example/x'], 'y');
    assert.ok(!Object.hasOwn(listed.annotations, 'io.kubernetes.cri-o.UnifiedCgroup.main'));
    assert.deepEqual(listed.linux.resources.unified, none.linux.resources.unified);
  });

  it('CVE-2025-0750: a log path leads nowhere but beneath the directory of its pod', () => {
    for (const logPath of ['../0.log', 'a/../../0.log', '/etc/cron.d/x', '..', 'a\n/0.log', 'a\0'])
      assert.match(
        validateContainerConfig({ ...containerInput().config, logPath }, podConfig)?.message ?? '',
        /log_path/,
      );
    for (const logDirectory of ['relative', '/var/log/../../etc', '/var/log/..'])
      assert.match(
        validatePodSandboxConfig({ ...podConfig, logDirectory }, { node: nodeV2, settings })?.message ?? '',
        /log_directory/,
      );
  });
});
