/** What the state says about a container goes into its spec; above all, whose processes it may join. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DaemonFacts } from '../../../src/domain/model/daemon-facts.ts';
import type { OciSpec } from '../../../src/domain/model/oci.ts';
import type { Result } from '../../../src/domain/model/result.ts';
import { containerSpecOf } from '../../../src/domain/oci/specs.ts';
import { type Container, type ContainerPhase, initialState, type PodSandbox } from '../../../src/domain/model/state.ts';
import { containerConfig, imageConfig, nodeV2, podConfig, rootFacts, settings } from './support.ts';
import { CREATED, DEAD, exited, running } from '../../support/phases.ts';

const facts: DaemonFacts = {
  ...{ version: '0', rootDir: '/root', stateDir: '/state', node: nodeV2, handlers: [], defaultHandler: '' },
  ...{ settings, sandboxImage: null, pauseRootfs: '/pause' },
};

const startTicks = '1';

const handlerOf = (systemdCgroup: boolean) => ({
  name: 'runc',
  runtimeType: 'io.containerd.runc.v2',
  binaryName: 'runc',
  systemdCgroup,
});

/** The fields that specs are made from. */
const sandbox = (id: string, systemdCgroup = false): PodSandbox =>
  ({
    id,
    config: podConfig,
    handler: handlerOf(systemdCgroup),
    network: { netnsPath: `/netns/${id}` },
    task: { pid: 50, startTicks },
  }) as PodSandbox;

const container = (id: string, podSandboxId: string, fields: Partial<Container> = {}): Container =>
  ({ id, podSandboxId, config: containerConfig, imageConfig, facts: rootFacts, ...fields }) as Container;

const inPhase = (phase: ContainerPhase, podSandboxId = 'pod', id = 'target'): Container =>
  container(id, podSandboxId, { phase });

const RUNNING = running({ task: { pid: 77, startTicks } });

const specFor = (target: Container): Result<OciSpec> => {
  const state = initialState();
  state.sandboxes.set('pod', sandbox('pod'));
  const namespaceOptions = { pid: 3, targetId: 'target' };
  const config = { ...containerConfig, linux: { securityContext: { namespaceOptions } } };
  const debugging = container('debug', 'pod', { config });
  state.containers.set(debugging.id, debugging);
  state.containers.set(target.id, target);
  return containerSpecOf(state, facts, debugging);
};

const reasonOf = (result: Result<OciSpec>): string => (result.ok ? 'built' : result.failure.reason);

describe('a container that joins the processes of another', () => {
  it('joins those of a running container of its pod', () => {
    const result = specFor(inPhase(RUNNING));
    assert.ok(result.ok);
    assert.ok(result.value.linux.namespaces.some(({ path }) => path === '/proc/77/ns/pid'));
  });

  it('joins none of another pod, and none that ended', () => {
    assert.equal(reasonOf(specFor(inPhase(RUNNING, 'other'))), 'WrongState');
    const exit = { exitStatus: 0, finishedAtNs: '6', reason: 'Completed' as const, message: '' };
    assert.equal(reasonOf(specFor(inPhase(exited(exit)))), 'WrongState');
    assert.equal(reasonOf(specFor(inPhase(DEAD))), 'WrongState');
    assert.equal(reasonOf(specFor(inPhase(CREATED))), 'WrongState');
    assert.equal(reasonOf(specFor(inPhase(RUNNING, 'pod', 'elsewhere'))), 'WrongState');
  });
});

describe('the cgroup path', () => {
  it("has the form of the handler's OCI runtime", () => {
    const pathWith = (systemdCgroup: boolean): string => {
      const state = initialState();
      const config = { ...podConfig, linux: { cgroupParent: systemdCgroup ? 'kubepods.slice' : '/kubepods' } };
      state.sandboxes.set('pod', { ...sandbox('pod', systemdCgroup), config });
      const result = containerSpecOf(state, facts, container('c', 'pod'));
      assert.ok(result.ok);
      return result.value.linux.cgroupsPath;
    };
    assert.equal(pathWith(false), '/kubepods/c');
    assert.equal(pathWith(true), 'kubepods.slice:cri-scribe:c');
  });
});
