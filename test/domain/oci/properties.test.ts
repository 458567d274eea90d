/**
 * What holds for any config at all: nothing throws but refusals, the same input gives the same spec, nobody gets more
 * than the daemon or the pod has, no secret becomes text, and no path climbs.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ContainerConfig, PodSandboxConfig } from '../../../src/domain/model/cri.ts';
import type { ContainerFacts } from '../../../src/domain/model/container-facts.ts';
import { containerQuestions, containerSpec } from '../../../src/domain/oci/container-spec.ts';
import { cleanPath, hasParentPart, pathDepth } from '../../../src/domain/oci/paths.ts';
import { podSandboxSpec } from '../../../src/domain/oci/pod-sandbox-spec.ts';
import { cgroupsPath } from '../../../src/domain/oci/resources.ts';
import { validateContainerConfig, validatePodSandboxConfig } from '../../../src/domain/oci/validate.ts';
import { anyPaths, containerConfigs, imageConfigs, podConfigs, TOKEN } from './arbitrary-configs.ts';
import { containerInput, nodeV1, nodeV2, POD_ID, podConfig, privilegedPod, sandboxInput, settings } from './support.ts';

const nodes = fc.constantFrom(nodeV1, nodeV2);
const hasHostNetwork = (config: PodSandboxConfig): boolean =>
  config.linux?.securityContext?.namespaceOptions?.network === 2;

const factsFor = (config: ContainerConfig): ContainerFacts => ({
  user: { uid: 5, gid: 6, additionalGids: [6] },
  devices: (config.devices ?? []).map(({ hostPath = '' }) => ({
    ...{ hostPath, path: hostPath, type: 'c', major: 1, minor: 2, fileMode: 0o600, uid: 0, gid: 0 },
  })),
  mounts: (config.mounts ?? []).map(({ hostPath = '' }) => ({
    ...{ hostPath, realPath: cleanPath(hostPath), isDirectory: true, propagation: 'shared', flags: [] },
  })),
  seccompProfile: { defaultAction: 'SCMP_ACT_ALLOW' },
});

/** One line for whoever reads the log; what came from outside is escaped in it. */
const assertReadable = (message: string): void => {
  assert.match(message, /^[^\x00-\x1f]+$/);
};

const DEFAULT_MOUNTS = 6;

describe('any config', { timeout: 60_000 }, () => {
  it('of a pod is refused with a readable reason, or builds', () => {
    const seen = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(podConfigs, nodes, (config, node) => {
        const failure = validatePodSandboxConfig(config, { node, settings });
        if (failure !== null) {
          seen.refused += 1;
          return assertReadable(failure.message);
        }
        seen.accepted += 1;
        const result = podSandboxSpec(sandboxInput(config, { node, netnsPath: hasHostNetwork(config) ? null : '/n' }));
        assert.ok(result.ok, 'what was validated must build');
        assert.deepEqual(JSON.parse(JSON.stringify(result.value)), result.value);
        assert.deepEqual(result.value.process.capabilities.bounding, []);
        assert.doesNotMatch(result.value.hostname ?? '', /[\s/]/);
        assert.equal(
          result.value.linux.namespaces.some(({ type }) => type === 'network'),
          !hasHostNetwork(config),
        );
      }),
      { numRuns: 3000 },
    );
    assert.ok(seen.accepted > 300 && seen.refused > 300, JSON.stringify(seen));
  });

  it('of a container is refused, or builds what hands on no more than the daemon and the pod have', () => {
    const seen = { accepted: 0, invalid: 0, impossible: 0 };
    const pods = fc.constantFrom(podConfig, privilegedPod);
    fc.assert(
      fc.property(containerConfigs, imageConfigs, nodes, pods, (config, imageConfig, node, sandboxConfig) => {
        const failure = validateContainerConfig(config, sandboxConfig);
        if (failure !== null) {
          seen.invalid += 1;
          return assertReadable(failure.message);
        }
        const questions = containerQuestions({ config, imageConfig, sandboxConfig, chainIds: [], node });
        assert.deepEqual(JSON.parse(JSON.stringify(questions)), questions);
        const facts = factsFor(config);
        const input = containerInput(config, { imageConfig, node, sandboxConfig, facts, targetPid: 9 });
        const result = containerSpec(input);
        assert.deepEqual(containerSpec(input), result, 'the same input gives the same spec');
        if (!result.ok) {
          seen.impossible += 1;
          return assertReadable(result.failure.message);
        }
        seen.accepted += 1;
        const { process, linux, mounts } = result.value;
        assert.deepEqual(JSON.parse(JSON.stringify(result.value)), result.value);
        assert.ok(process.capabilities.bounding.every((name) => node.capabilities.includes(name)));
        assert.deepEqual([process.capabilities.inheritable, process.capabilities.ambient], [[], []]);
        const usesAnyDevice = linux.resources.devices?.some(({ allow, type }) => allow && type === undefined) ?? false;
        assert.ok(!usesAnyDevice || sandboxConfig === privilegedPod);
        assert.ok(process.env.every((entry) => typeof entry !== 'string' || !entry.includes(TOKEN)));
        assert.deepEqual(linux.namespaces.filter(({ type }) => type === 'network' || type === 'mount').length, 2);
        assert.ok(linux.cgroupsPath.startsWith('/kubepods/pod3f6f3f7c/'));
        for (const { destination } of mounts) assert.equal(cleanPath(destination), destination);
        const supplied = mounts.slice(-(mounts.length - DEFAULT_MOUNTS)).filter(({ type }) => type === 'bind');
        const depths = supplied.map(({ destination }) => pathDepth(destination));
        assert.deepEqual(
          depths,
          depths.toSorted((a, b) => a - b),
        );
      }),
      { numRuns: 5000 },
    );
    assert.ok(seen.accepted > 300 && seen.invalid > 300 && seen.impossible > 100, JSON.stringify(seen));
  });
});

describe('C13: replay is exact', () => {
  it('the same records give the same spec, byte for byte', () => {
    fc.assert(
      fc.property(containerConfigs, imageConfigs, podConfigs, (config, imageConfig, sandboxConfig) => {
        const input = containerInput(config, { imageConfig, sandboxConfig, facts: factsFor(config), targetPid: 9 });
        const recorded: typeof input = JSON.parse(JSON.stringify(input)) as typeof input;
        assert.equal(JSON.stringify(containerSpec(recorded)), JSON.stringify(containerSpec(input)));
      }),
      { numRuns: 500 },
    );
  });
});

describe('paths', () => {
  it('come out absolute, without parents, and stay as they are the second time', () => {
    fc.assert(
      fc.property(anyPaths, (any) => {
        const clean = cleanPath(any);
        assert.ok(clean.startsWith('/') && !hasParentPart(clean) && !clean.includes('//'));
        assert.equal(cleanPath(clean), clean);
      }),
    );
  });

  it('of cgroups end with the id', () => {
    fc.assert(
      fc.property(anyPaths, (parent) => {
        assert.ok(cgroupsPath('cgroupfs', parent, POD_ID).endsWith(`/${POD_ID}`));
      }),
    );
  });
});
