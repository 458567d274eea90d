/**
 * What cAdvisor learns of control groups: whose they are, from when they can be there, and under which container a pod without
 * a process of its own tells its network's figures.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerdServices } from '../../../src/adapters/cri/services/containerd.ts';
import type { ContainerPhase } from '../../../src/domain/model/state.ts';
import { Status } from '../../../src/wire/types/task/task.ts';
import { CREATED, CREATING, exited, running } from '../../support/phases.ts';
import { container, idOf, podSandbox, testModel } from './support.ts';

const pod = idOf('a');
const [one, other] = [idOf('c'), idOf('d')];
const gone = exited({ exitStatus: 7, finishedAtNs: '4000', reason: 'Error', message: '' });

const start = (view: ReturnType<typeof testModel>) => {
  const { containers, tasks } = containerdServices({ view, version: '1.2.3' });
  const labels = (id: string) => containers.get({ id }).container?.labels;
  return {
    labels,
    kind: (id: string) => labels(id)?.['io.cri-containerd.kind'],
    process: (containerId: string) => tasks.get({ containerId, execId: '' }).process,
  };
};

const config = { metadata: { name: 'main' }, image: { image: 'busybox' }, labels: { 'io.kubernetes.pod.name': 'web' } };
const withPhases = (
  phases: Readonly<Record<string, ContainerPhase>>,
  task: { pid: number; startTicks: string } | null,
) => ({
  sandboxes: [
    podSandbox(pod, { task, network: {} as never, config: { ...podSandbox(pod).config, labels: { app: 'web' } } }),
  ],
  containers: Object.entries(phases).map(([id, phase], index) => container(id, pod, { config, phase, seq: index + 2 })),
});

test('a container is known by its whole id from when it is made, and no other', () => {
  const view = testModel();
  view.put(
    withPhases(
      { [one]: CREATING, [other]: running({ task: { pid: 99, startTicks: '5' } }) },
      { pid: 41, startTicks: '7' },
    ),
  );
  const { labels, process } = start(view);
  assert.deepEqual(labels(one), { 'io.kubernetes.pod.name': 'web', 'io.cri-containerd.kind': 'container' });
  assert.deepEqual(labels(pod), { app: 'web', 'io.cri-containerd.kind': 'sandbox' });
  assert.equal(process(one)?.status, Status.UNKNOWN);
  const { status, pid } = process(other) ?? {};
  assert.deepEqual([status, pid], [Status.RUNNING, 99]);
  assert.equal(process(pod)?.pid, 41);
  assert.throws(() => labels('c'), /id "c" names no container/);
});

test('a task that was made ahead has its process, and one that has exited its status', () => {
  const view = testModel();
  const ahead = { ...CREATED, ahead: { step: 'done', task: { pid: 98, startTicks: '4' } } } as const;
  view.put(withPhases({ [one]: ahead, [other]: gone }, { pid: 41, startTicks: '7' }));
  const { process } = start(view);
  const { status, pid } = process(one) ?? {};
  assert.deepEqual([status, pid], [Status.CREATED, 98]);
  const ended = process(other);
  assert.deepEqual([ended?.status, ended?.exitStatus], [Status.STOPPED, 7]);
});

test('one container at a time tells the network of a pod without a process of its own', () => {
  const view = testModel();
  view.put(withPhases({ [one]: running({}), [other]: running({}) }, null));
  const { kind } = start(view);
  assert.deepEqual([kind(other), kind(one), kind(one)], ['container', 'sandbox', 'sandbox']);
  view.put(withPhases({ [one]: gone, [other]: running({}) }, null));
  assert.deepEqual([kind(other), kind(other)], ['sandbox', 'sandbox']);
});
