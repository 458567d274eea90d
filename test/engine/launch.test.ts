/** A task is created and then started: who hears what when either fails, and what a restart in between makes of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { containerExitOf, containerStateOf } from '../../src/domain/model/container-state.ts';
import { type ContainerConfig, NamespaceMode } from '../../src/domain/model/cri.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { LaunchedTask, ObservedTask } from '../../src/domain/model/tasks.ts';
import type { CallReply, PerformEffects } from '../../src/engine/ports.ts';
import { FACTS } from '../simulation/facts.ts';
import {
  exitOf,
  idOf,
  podConfig,
  reasonOf,
  type Rig,
  type RigOptions,
  runPod,
  settled,
  startRig,
  task,
} from './rig.ts';

const hang = (): Promise<never> => new Promise(() => {});

interface Started {
  readonly rig: Rig;
  readonly podSandboxId: string;
  readonly containerId: string;
  readonly reply: Promise<CallReply>;
}

/** Only the container's own task is launched by what is given; the pause task as ever. */
async function startContainer(
  { CreateTask, StartTask }: Partial<Pick<PerformEffects, 'CreateTask' | 'StartTask'>> = {},
  options: RigOptions = {},
): Promise<Started> {
  const rig = await startRig({
    ...options,
    perform: {
      CreateTask: async (effect, context) =>
        effect.containerId === effect.podSandboxId ? task(11) : ((await CreateTask?.(effect, context)) ?? task(12)),
      StartTask: async (effect, context) =>
        effect.containerId === effect.podSandboxId ? task(11) : ((await StartTask?.(effect, context)) ?? task(12)),
    },
  });
  await rig.call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  const podSandboxId = idOf(await rig.call(runPod()));
  const config: ContainerConfig = { metadata: { name: 'c' }, image: { image: 'registry.test/app:1' } };
  const containerId = idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config }));
  const reply = rig.call({ method: 'StartContainer', containerId });
  await settled(rig);
  return { rig, podSandboxId, containerId, reply };
}

test('a task that joins another container’s PID namespace is told whose process that was', async () => {
  const asked = new Map<string, LaunchedTask | null | undefined>();
  const { rig, podSandboxId, containerId } = await startContainer({
    CreateTask: async (effect) => {
      asked.set(effect.containerId, effect.target);
      return task(12);
    },
  });
  const joinTo = async (name: string, targetId: string): Promise<string> => {
    const config: ContainerConfig = {
      metadata: { name },
      image: { image: 'registry.test/app:1' },
      linux: { securityContext: { namespaceOptions: { pid: NamespaceMode.TARGET, targetId } } },
    };
    return idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config }));
  };
  const joining = await joinTo('joins', containerId);
  const late = await joinTo('late', containerId);
  await rig.call({ method: 'StartContainer', containerId: joining });
  assert.deepEqual(asked.get(joining), { pid: 12, startTicks: '12' });
  assert.equal(asked.get(containerId), undefined);
  await rig.engine.observe(exitOf(podSandboxId, containerId, 0));
  await settled(rig);
  assert.equal(reasonOf(await rig.call({ method: 'RemoveContainer', containerId })), 'OK');
  await rig.call({ method: 'StartContainer', containerId: late });
  assert.equal(asked.get(late), null);
});

const launchesIn = ({ contents }: Rig): string[][] =>
  contents.rows.flatMap(({ record }) => {
    if (record?.type !== 'effects.requested') return [];
    const { effects } = JSON.parse(record.body) as { effects: { kind: string }[] };
    const kinds = effects.map(({ kind }) => kind);
    return kinds.includes('StartTask') ? [kinds] : [];
  });

test('CreateTask and StartTask are asked for by one record, where none was made ahead, and by the oldest rules StartTask alone', async () => {
  const { rig, reply } = await startContainer();
  assert.equal(reasonOf(await reply), 'OK');
  assert.deepEqual(launchesIn(rig), [['CreateTask', 'StartTask'], ['StartTask']]);
  const before = await startContainer({}, { facts: { ...FACTS, rules: 5 } });
  assert.equal(reasonOf(await before.reply), 'OK');
  assert.deepEqual(launchesIn(before.rig), [
    ['CreateTask', 'StartTask'],
    ['CreateTask', 'StartTask'],
  ]);
  const { rules: _rules, ...oldest } = FACTS;
  const older = await startContainer({}, { facts: oldest });
  assert.equal(reasonOf(await older.reply), 'OK');
  assert.deepEqual(launchesIn(older.rig), [['StartTask'], ['StartTask']]);
});

test('C2: the process of a task is durable before it is started, where StartTask takes its time', async () => {
  const { rig, containerId } = await startContainer({ StartTask: hang });
  const created = rig.contents.rows.find(
    ({ record }) => record?.stream === `container/${containerId}` && record.body.includes('"CreateTask","result"'),
  );
  assert.match(created?.record?.body ?? '', /"pid":12/);
  const container = rig.engine.state.containers.get(containerId);
  assert.ok(container !== undefined);
  assert.equal(containerStateOf(container), 'CONTAINER_CREATED');
});

const endsOf = ({ contents }: Rig, stream: string): unknown[] =>
  contents.rows.flatMap(({ record }) => {
    if (record?.type !== 'effect.ended' || record.stream !== stream) return [];
    const { kind, failure } = JSON.parse(record.body) as { kind: string; failure?: unknown };
    return [failure === undefined ? { kind } : { kind, failure }];
  });

test('a task is started once it is created, and not before', async () => {
  const { promise: created, resolve } = Promise.withResolvers<ReturnType<typeof task>>();
  let started = false;
  const { rig, reply } = await startContainer({
    CreateTask: () => created,
    StartTask: async () => {
      started = true;
      return task(12);
    },
  });
  assert.equal(started, false);
  resolve(task(12));
  assert.equal(reasonOf(await reply), 'OK');
  assert.equal(started, true);
  assert.equal(rig.errors.length, 0);
});

test('C6: a task that cannot be created is not started, which is recorded in the same words, and it is deleted', async () => {
  const failure = new FailureError('RuntimeFailed', 'There is no such program.');
  let started = false;
  const { rig, containerId, reply } = await startContainer({
    CreateTask: () => Promise.reject(failure),
    StartTask: async () => {
      started = true;
      return task(12);
    },
  });
  const { outcome } = await reply;
  assert.deepEqual(outcome, { ok: false, failure: failure.failure });
  await settled(rig);
  assert.equal(started, false);
  assert.deepEqual(endsOf(rig, `container/${containerId}`).slice(-3), [
    { kind: 'CreateTask', failure: failure.failure },
    { kind: 'StartTask', failure: failure.failure },
    { kind: 'DeleteTask' },
  ]);
  assert.equal(containerExitOf(rig.engine.state.containers.get(containerId))?.reason, 'StartError');
});

const ownProcesses: CallDraft = {
  method: 'RunPodSandbox',
  config: { ...podConfig(), linux: { securityContext: { namespaceOptions: { pid: NamespaceMode.CONTAINER } } } },
  runtimeHandler: '',
};

test('the network is attached once the namespaces are pinned, and fails with them', async () => {
  const { promise: pinned, resolve } = Promise.withResolvers<Record<string, never>>();
  const rig = await startRig({ perform: { PinNamespaces: () => pinned } });
  const reply = rig.call(ownProcesses);
  await settled(rig);
  assert.ok(!rig.performed.includes('AttachNetwork'));
  resolve({});
  assert.equal(reasonOf(await reply), 'OK');
  assert.ok(rig.performed.includes('AttachNetwork'));

  const failure = new FailureError('HostFailed', 'There is no room.');
  const full = await startRig({ perform: { PinNamespaces: () => Promise.reject(failure) } });
  assert.deepEqual((await full.call(ownProcesses)).outcome, { ok: false, failure: failure.failure });
  assert.ok(!full.performed.includes('AttachNetwork'));
  await settled(full);
  assert.ok(full.performed.includes('DetachNetwork'));
});

for (const [status, expected] of [
  ['running', 'CONTAINER_RUNNING'],
  ['stopped', 'CONTAINER_EXITED'],
  ['created', 'CONTAINER_EXITED'],
  ['absent', 'CONTAINER_EXITED'],
] as const)
  for (const cut of ['CreateTask', 'StartTask'] as const)
    test(`C19: a start that the daemon's end cut short in ${cut} is settled by its shim, which has the task ${status}`, async () => {
      const { rig, podSandboxId, containerId } = await startContainer({
        ...(cut === 'CreateTask' ? { CreateTask: hang } : {}),
        StartTask: hang,
      });
      const exit = { pid: 12, exitStatus: 3, exitedAtNs: '1800000000000000005', oomKills: 0 };
      const own: ObservedTask = {
        containerId,
        status,
        pid: 12,
        startTicks: '12',
        ...(status === 'stopped' ? { exit } : {}),
      };
      const next = await startRig({
        contents: rig.contents,
        perform: {
          ReconnectShim: async () => ({
            gone: false,
            tasks: [{ containerId: podSandboxId, status: 'running', pid: 11, startTicks: '11' }, own],
          }),
        },
      });
      await settled(next);
      const container = next.engine.state.containers.get(containerId);
      assert.ok(container !== undefined);
      assert.equal(containerStateOf(container), expected);
      const how = { running: undefined, stopped: 'Error', created: 'StartError', absent: 'StartError' } as const;
      assert.equal(containerExitOf(container)?.reason, how[status]);
      assert.equal(next.performed.includes('DeleteTask'), status !== 'running');
    });
