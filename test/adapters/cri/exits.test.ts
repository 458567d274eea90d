/** C18: what is told of containers that were found dead after a restart, before and after their shims have answered. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { CallContext } from '../../../src/adapters/cri/context.ts';
import { runtimeService } from '../../../src/adapters/cri/services/runtime-service.ts';
import {
  ContainerState,
  ContainerStatusResponse,
  ListContainersResponse,
  type PodSandboxStatusResponse,
} from '../../../src/wire/cri/api.ts';
import type { Container } from '../../../src/domain/model/state.ts';
import type { ReadRow } from '../../../src/journal/types.ts';
import { withReason } from '../../support/failures.ts';
import { container, idOf, partsOf, podSandbox, testModel } from './support.ts';
import { DEAD, exited } from '../../support/phases.ts';

const pod = idOf('a');
const id = idOf('c1');
const unsure = container(id, pod, { phase: DEAD });
const ended: Container = {
  ...unsure,
  phase: exited({ exitStatus: 42, finishedAtNs: '77', reason: 'Error', message: '' }),
};
const context: CallContext = {
  caller: null,
  deadlineNs: () => null,
  traceParent: () => null,
  unknownFields: [],
  signal: () => new AbortController().signal,
  closing: new AbortController().signal,
};
const verbose = false;

/** The handlers over a model with the unsure container, without a socket: the test moves the clock. */
const setUp = (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const view = testModel();
  const reads: ReadRow[] = [];
  view.put({ sandboxes: [podSandbox(pod)], containers: [unsure] });
  const service = runtimeService(partsOf(view, reads));
  return {
    view,
    reads,
    list: async () =>
      ListContainersResponse.decode((await service.listContainers?.({ filter: undefined }, context)) as Uint8Array),
    status: async (containerId: string) =>
      ContainerStatusResponse.decode(
        (await service.containerStatus?.({ containerId, verbose }, context)) as Uint8Array,
      ),
    podStatus: async () =>
      (await service.podSandboxStatus?.({ podSandboxId: pod, verbose }, context)) as PodSandboxStatusResponse,
  };
};

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a container found dead after a restart', () => {
  it('C18: lists as EXITED at once; its code is told when its shim has told it, and by any prefix', async (t) => {
    const { view, list, status, podStatus, reads } = setUp(t);
    assert.deepEqual(
      (await list()).containers.map(({ state }) => state),
      [ContainerState.CONTAINER_EXITED],
    );
    let answers = 0;
    const asked = [status(id), status(id.slice(0, 3)), podStatus()];
    for (const one of asked) void one.then(() => (answers += 1));
    view.put({ sandboxes: [podSandbox(idOf('b'))] });
    await settle();
    assert.equal(answers, 0, 'nothing was told yet');
    view.put({ containers: [ended] });
    const [byId, byPrefix, ofPod] = await Promise.all([status(id), status('c1'), podStatus(), ...asked]);
    assert.deepEqual([byId.status?.exitCode, byPrefix.status?.exitCode], [42, 42]);
    assert.deepEqual(
      ofPod.containersStatuses.map(({ state, exitCode }) => [state, exitCode]),
      [[ContainerState.CONTAINER_EXITED, 42]],
    );
    assert.deepEqual([...new Set(reads.map(({ code }) => code))], [0]);
  });

  it('C18: is Unavailable when its shim stays silent, not before eight seconds, and then can be asked again', async (t) => {
    const { view, status, podStatus, reads } = setUp(t);
    const asked = status(id);
    const askedOfPod = podStatus();
    const refusals = Promise.all([
      assert.rejects(asked, withReason('NotServing')),
      assert.rejects(askedOfPod, withReason('NotServing')),
    ]);
    t.mock.timers.tick(7_999);
    let isOver = false;
    void refusals.then(() => (isOver = true));
    await settle();
    assert.equal(isOver, false);
    t.mock.timers.tick(1);
    await refusals;
    assert.deepEqual(
      reads.map(({ method, code }) => [method, code]),
      [
        ['ContainerStatus', 14],
        ['PodSandboxStatus', 14],
      ],
    );
    view.put({ containers: [ended] });
    assert.equal((await status(id)).status?.exitCode, 42);
  });

  it('C18: is not found when it is removed meanwhile', async (t) => {
    const { view, status } = setUp(t);
    const asked = status(id);
    view.remove([id]);
    await assert.rejects(asked, withReason('ContainerNotFound'));
  });
});
