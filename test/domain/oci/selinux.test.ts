/** SELinux labels: what pods and containers get, what is refused, and which volumes are labelled. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type ContainerConfig,
  NamespaceMode,
  type PodSandboxConfig,
  type SELinuxOption,
} from '../../../src/domain/model/cri.ts';
import type { ContainerFacts } from '../../../src/domain/model/container-facts.ts';
import { containerSpec } from '../../../src/domain/oci/container-spec.ts';
import { labelledMount, levelOf, pathsToRelabel, podLabels } from '../../../src/domain/oci/selinux.ts';
import type { SelinuxContexts } from '../../../src/domain/model/selinux.ts';
import { validateContainerConfig, validatePodSandboxConfig } from '../../../src/domain/oci/validate.ts';
import {
  buildContainer,
  buildSandbox,
  containerConfig,
  containerInput,
  failureIn,
  nodeV2,
  podConfig,
  privilegedPod,
  rootFacts,
  settings,
  withContext,
} from './support.ts';

const contexts: SelinuxContexts = {
  process: 'system_u:system_r:container_t:s0',
  file: 'system_u:object_r:container_file_t:s0',
};
const node = { ...nodeV2, selinux: true };
const id = (start: number): string => start.toString(16).padStart(12, '0') + '0'.repeat(52);

const podWith = (selinuxOptions?: SELinuxOption, namespaceOptions = {}): PodSandboxConfig => ({
  ...podConfig,
  linux: { securityContext: { namespaceOptions, ...(selinuxOptions && { selinuxOptions }) } },
});
const labels = (config: PodSandboxConfig = podConfig, taken: readonly string[] = [], podSandboxId = id(0)) =>
  podLabels(contexts, podSandboxId, config, new Set(taken), false);

describe('labels of a pod', () => {
  it('have the contexts of the policy and two categories of its own', () => {
    assert.deepEqual(labels(), {
      process: 'system_u:system_r:container_t:s0:c0,c1',
      mount: 'system_u:object_r:container_file_t:s0:c0,c1',
    });
    assert.equal(levelOf(labels()), 's0:c0,c1');
  });

  it('pass over what other pods have', () => {
    const taken: string[] = [];
    for (let pods = 0; pods < 3000; pods += 1) {
      const level = levelOf(labels(podConfig, taken));
      const [first = 0, second = 0] = [...level.matchAll(/c(\d+)/g)].map(([, category]) => Number(category));
      assert.ok(first < second && second < 1024, level);
      taken.push(level);
    }
    assert.equal(new Set(taken).size, 3000);
    const last = 1024 * 1023 - 1;
    assert.match(levelOf(labels(podConfig, [], id(last))), /^s0:c\d+,c\d+$/);
    assert.notEqual(levelOf(labels(podConfig, [levelOf(labels(podConfig, [], id(last)))], id(last))), 's0');
  });

  it('follow what is asked for; files have the user and the level alone', () => {
    const asked = { user: 'u', role: 'r', type: 't', level: 's0:c5,c6' };
    assert.deepEqual(labels(podWith(asked)), {
      process: 'u:r:t:s0:c5,c6',
      mount: 'u:object_r:container_file_t:s0:c5,c6',
    });
  });

  it('are given to no process of a pod with processes or IPC of the node', () => {
    for (const name of ['pid', 'ipc']) {
      const { process, mount } = labels(podWith(undefined, { [name]: NamespaceMode.NODE }));
      assert.deepEqual([process, mount], [null, 'system_u:object_r:container_file_t:s0:c0,c1']);
    }
  });

  it('have no level where the policy has none, and a type for machines', () => {
    const flat = { process: 'u:r:t', file: 'u:object_r:f' };
    assert.deepEqual(podLabels(flat, id(0), podWith({ level: 's0:c1' }), new Set(), false), {
      process: 'u:r:t',
      mount: 'u:object_r:f',
    });
    assert.match(podLabels(contexts, id(0), podConfig, new Set(), true).process ?? '', /:container_kvm_t:/);
    assert.match(podLabels(contexts, id(0), podWith({ type: 'mine' }), new Set(), true).process ?? '', /:mine:/);
  });
});

describe('labels in specs', () => {
  const selinux = labels();
  const of = (config: ContainerConfig, sandboxConfig = podConfig) => {
    const { process, linux } = buildContainer(config, { node, selinux, sandboxConfig });
    return [process.selinuxLabel, linux.mountLabel];
  };

  it("are the pod's, but for what the container says itself", () => {
    assert.deepEqual(of({}), [selinux.process, selinux.mount]);
    assert.deepEqual(of(withContext({ selinuxOptions: { type: 'other_t' } })), [
      'system_u:system_r:other_t:s0:c0,c1',
      selinux.mount,
    ]);
    assert.deepEqual(of(withContext({ selinuxOptions: { level: 's0:c9' } })), [
      'system_u:system_r:container_t:s0:c9',
      'system_u:object_r:container_file_t:s0:c9',
    ]);
    const { process, linux } = buildSandbox(podConfig, { node, selinux });
    assert.deepEqual([process.selinuxLabel, linux.mountLabel], [selinux.process, selinux.mount]);
  });

  it('are those of files alone for privileged tasks', () => {
    assert.deepEqual(of(withContext({ privileged: true }), privilegedPod), [undefined, selinux.mount]);
    assert.equal(buildSandbox(privilegedPod, { node, selinux }).process.selinuxLabel, undefined);
  });

  it('are in no spec of a pod without labels', () => {
    const { process, linux } = buildContainer({}, { node });
    assert.deepEqual([process.selinuxLabel, linux.mountLabel], [undefined, undefined]);
  });

  it('that are asked for and not given are refused, and mean nothing without SELinux', () => {
    const asking = withContext({ selinuxOptions: { level: 's0:c1,c2' } });
    assert.equal(failureIn(containerSpec(containerInput(asking, { node }))).reason, 'HostLacks');
    assert.ok(buildContainer(asking));
    const pod = podWith({ type: 'container_t' });
    assert.equal(validatePodSandboxConfig(pod, { node, settings })?.reason, 'HostLacks');
    assert.equal(validatePodSandboxConfig(pod, { node, settings, selinux: contexts }), null);
    assert.equal(validatePodSandboxConfig(pod, { node: nodeV2, settings }), null);
    assert.equal(validatePodSandboxConfig(podWith({ type: '' }), { node, settings }), null);
  });

  it('are checked before anything is made of them', () => {
    const refused = (selinuxOptions: SELinuxOption): string | undefined => {
      const config = { ...containerConfig, ...withContext({ selinuxOptions }) };
      const failure = validateContainerConfig(config, podConfig);
      const ofPod = validatePodSandboxConfig(podWith(selinuxOptions), { node: nodeV2, settings });
      assert.deepEqual(failure, ofPod);
      return failure?.reason;
    };
    const good = 's0 s15 s0-s0 s0:c1 s0:c1,c2 s0:c0.c1023 s0-s0:c0.c1023 s0:c1-s0:c1,c5 s0:c1.c3,c7';
    for (const level of good.split(' ')) assert.equal(refused({ level }), undefined, level);
    const bad = 'c1 s s0: s0:c1024 s0:c5.c2 s0,c1 s0:c1;c2 s0-s0-s0 s0:c1,,c2 S0 s0:c1" s0-';
    for (const level of [...bad.split(' '), 's0\n', ' s0']) assert.equal(refused({ level }), 'InvalidField', level);
    for (const name of ['user', 'role', 'type']) {
      assert.equal(refused({ [name]: 'container_t' }), undefined);
      for (const text of ['a:b', 'a b', 'a"', 'x'.repeat(129)])
        assert.equal(refused({ [name]: text }), 'InvalidField', text);
    }
  });
});

describe('volumes', () => {
  const selinux = labels();
  const mounts = [
    { hostPath: '/pods/a', containerPath: '/a', selinuxRelabel: true },
    { hostPath: '/pods/b', containerPath: '/b' },
  ];
  const fact = (hostPath: string, realPath = hostPath): ContainerFacts['mounts'][number] => ({
    hostPath,
    realPath,
    isDirectory: true,
    propagation: 'private',
    flags: [],
  });
  const facts = (...found: ContainerFacts['mounts']): ContainerFacts => ({ ...rootFacts, mounts: found });

  it('are labelled where that is asked for, at the place that links lead to', () => {
    const found = facts(fact('/pods/a', '/real/a'), fact('/pods/b'));
    assert.deepEqual(pathsToRelabel(selinux, { mounts }, found), ['/real/a']);
    assert.deepEqual(pathsToRelabel(undefined, { mounts }, found), []);
    const privileged = { mounts, ...withContext({ privileged: true }) };
    assert.deepEqual(pathsToRelabel(selinux, privileged, found), []);
    assert.deepEqual(pathsToRelabel({ ...selinux, process: null }, { mounts }, found), []);
  });

  it("that are the node's own are never labelled", () => {
    for (const path of ['/', '/etc', '/usr', '/var/lib']) {
      const input = containerInput({ mounts }, { node, selinux, facts: facts(fact('/pods/a', path), fact('/pods/b')) });
      const { reason, message } = failureIn(containerSpec(input));
      assert.deepEqual([reason, message.includes('mounts.selinux_relabel')], ['InvalidField', true], path);
    }
  });

  it('mounted for the container have its label, quoted', () => {
    const overlay = { type: 'overlay', source: 'overlay', options: ['lowerdir=/l'] };
    assert.deepEqual(labelledMount(overlay, 'a:b:c:s0:c1,c2').options, ['lowerdir=/l', 'context="a:b:c:s0:c1,c2"']);
    assert.equal(labelledMount(overlay, undefined), overlay);
    const bind = { ...overlay, type: 'bind' };
    assert.equal(labelledMount(bind, 'a:b:c:s0'), bind);
  });
});
