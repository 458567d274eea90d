/** What the runtime handler of a pod changes in its specs: annotations that are handed on, devices of the privileged. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PrivilegedDevices } from '../../../src/domain/model/runtime-handler.ts';
import { containerQuestions } from '../../../src/domain/oci/container-spec.ts';
import { configWithoutOrders } from '../../../src/domain/oci/annotations.ts';
import {
  buildContainer,
  buildSandbox,
  imageConfig,
  nodeV2,
  podConfig,
  privilegedPod,
  rootFacts,
  settings,
  withContext,
} from './support.ts';

const annotations = { 'vendor.example/mode': 'fast', 'other.example/key': 'x' };
const sandboxConfig = { ...podConfig, annotations };

describe('annotations', () => {
  it('of a pod go to the pod and its containers where a pattern matches', () => {
    const patterns = { ...settings, podAnnotations: ['vendor.example/*'] };
    for (const spec of [
      buildSandbox(sandboxConfig, { settings: patterns }),
      buildContainer({}, { sandboxConfig, settings: patterns }),
    ]) {
      assert.equal(spec.annotations?.['vendor.example/mode'], 'fast');
      assert.equal(spec.annotations['other.example/key'], undefined);
    }
    assert.equal(buildSandbox(sandboxConfig).annotations?.['vendor.example/mode'], undefined);
  });

  it('of a container go to it alone, by patterns of their own, and win over the pod', () => {
    const own = { 'vendor.example/mode': 'slow' };
    const containerPatterns = { ...settings, containerAnnotations: ['vendor.*/mode'] };
    assert.equal(
      buildContainer({ annotations: own }, { sandboxConfig, settings: containerPatterns }).annotations?.[
        'vendor.example/mode'
      ],
      'slow',
    );
    const both = { ...containerPatterns, podAnnotations: ['*/*'] };
    const spec = buildContainer({ annotations: own }, { sandboxConfig, settings: both });
    assert.equal(spec.annotations?.['vendor.example/mode'], 'slow');
    assert.equal(spec.annotations['other.example/key'], 'x');
  });

  it('never say anything in place of scribe', () => {
    const forged = { 'io.kubernetes.cri.sandbox-id': 'other', 'io.kubernetes.cri.container-type': 'sandbox' };
    const patterns = { ...settings, podAnnotations: ['*'], containerAnnotations: ['*'] };
    const spec = buildContainer(
      { annotations: forged },
      { sandboxConfig: { ...podConfig, annotations: forged }, settings: patterns },
    );
    assert.equal(spec.annotations?.['io.kubernetes.cri.container-type'], 'container');
    assert.notEqual(spec.annotations['io.kubernetes.cri.sandbox-id'], 'other');
  });
});

describe('annotations that are orders to an OCI runtime', () => {
  const orders = {
    'org.systemd.property.ExecStopPost': "[('/bin/sh', ['sh'], true)]",
    'run.oci.hooks.stdout': '/etc/cron.d/x',
    'run.oci.hooks.stderr': '/etc/cron.d/x',
    'run.oci.seccomp.plugins': '/tmp/x.so',
    'run.oci.systemd.subgroup': '../x',
    'org.criu.config': '/tmp/criu.conf',
    'io.containerd.runc.v2.group': 'another-pod',
    'io.kubernetes.cri.container-type': 'sandbox',
    'io.kubernetes.cri.another': 'x',
  };
  const patterns = { ...settings, podAnnotations: ['*', '*/*'], containerAnnotations: ['*', '*/*'] };
  const others = { 'run.oci.handler': 'wasm', 'vendor.example/org.systemd.property.': 'x' };

  it('never pass, whatever the patterns allow', () => {
    const pod = { ...podConfig, annotations: { ...orders, ...others } };
    const plain = buildContainer({}, { sandboxConfig: podConfig, settings: patterns }).annotations;
    const told = buildContainer(
      { annotations: { ...orders, ...others } },
      { sandboxConfig: pod, settings: patterns },
    ).annotations;
    assert.deepEqual(told, { ...others, ...plain });
    const plainPod = buildSandbox(podConfig, { settings: patterns }).annotations;
    assert.deepEqual(buildSandbox(pod, { settings: patterns }).annotations, { ...others, ...plainPod });
  });

  it('are not told to a shim that holds the pod itself', () => {
    const pod = { ...podConfig, annotations: { ...orders, ...others } };
    assert.deepEqual(configWithoutOrders(pod), { ...podConfig, annotations: others });
    assert.equal(configWithoutOrders(podConfig), podConfig);
  });

  it('are what an admin may give all containers of a handler', () => {
    const base = { annotations: { 'run.oci.hooks.stdout': '/var/log/hooks' } };
    const spec = buildContainer({ annotations: orders }, { settings: { ...patterns, baseSpec: base } });
    assert.equal(spec.annotations?.['run.oci.hooks.stdout'], '/var/log/hooks');
    assert.equal(spec.annotations['org.criu.config'], undefined);
  });
});

describe('devices of a privileged container', () => {
  const privileged = withContext({ privileged: true });
  const node = {
    hostPath: '/dev',
    path: '/dev/kvm',
    type: 'c',
    major: 10,
    minor: 232,
    fileMode: 0o600,
    uid: 0,
    gid: 0,
  } as const;
  const devicesFor = (privilegedDevices?: PrivilegedDevices) =>
    buildContainer(privileged, {
      sandboxConfig: privilegedPod,
      facts: { user: rootFacts.user, devices: [node], mounts: [] },
      settings: { ...settings, ...(privilegedDevices === undefined ? {} : { privilegedDevices }) },
    }).linux;

  it('are those of the node, those allowed, or those asked for', () => {
    const allowsAll = { allow: true, access: 'rwm' };
    const given = devicesFor();
    assert.deepEqual(
      given.devices?.map(({ path }) => path),
      ['/dev/kvm'],
    );
    assert.deepEqual(given.resources.devices, [allowsAll]);
    const allowed = devicesFor('allowed');
    assert.equal(allowed.devices, undefined);
    assert.deepEqual(allowed.resources.devices, [allowsAll]);
    const asked = devicesFor('asked');
    assert.equal(asked.devices, undefined);
    assert.deepEqual(asked.resources.devices?.[0], { allow: false, access: 'rwm' });
    assert.ok(!asked.resources.devices.some(({ allow, type }) => allow && type === undefined));
  });

  it('are not looked for where they are not given', () => {
    const questioned = { config: privileged, imageConfig, chainIds: [], sandboxConfig: privilegedPod, node: nodeV2 };
    assert.equal(containerQuestions(questioned).allDevices, true);
    assert.equal(containerQuestions({ ...questioned, privilegedDevices: 'asked' }).allDevices, false);
  });
});
