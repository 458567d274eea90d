/** Histories that once went wrong, found by checks of what is still owed when nothing happens any more; one test for each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { containerStateOf, containerExitOf, runOf } from '../../src/domain/model/container-state.ts';
import type { ContainerConfig } from '../../src/domain/model/cri.ts';
import { FailureError, type FailureReason } from '../../src/domain/model/errors.ts';
import type { ObservedTask } from '../../src/domain/model/tasks.ts';
import type { CallReply, PerformEffects } from '../../src/engine/ports.ts';
import { CHECKPOINT_PATH } from '../simulation/checkpoint.ts';
import { FACTS } from '../simulation/facts.ts';
import { IMAGE } from '../simulation/images.ts';
import { idOf, podConfig, reasonOf, type Rig, runContainer, runPod, settled, startRig, task } from './rig.ts';

const IMAGE_NAME = IMAGE.repoTags[0] ?? '';
const hang = (): Promise<never> => new Promise(() => {});
/** What a call was answered, null while it was not. */
const watched = (reply: Promise<CallReply>): (() => CallReply | null) => {
  let answer: CallReply | null = null;
  void reply.then((now) => (answer = now));
  return () => answer;
};

/** A node whose sandbox image is being deleted until `deleted` is called. */
async function rigBehindDeletion(): Promise<{ rig: Rig; deleted: () => void }> {
  const { promise, resolve } = Promise.withResolvers<{ freedBytes: number }>();
  const rig = await startRig({
    facts: { ...FACTS, sandboxImage: IMAGE_NAME },
    perform: { DeleteImageContent: () => promise },
  });
  await rig.call({ method: 'PullImage', image: IMAGE_NAME, credentials: null });
  await rig.call({ method: 'RemoveImage', image: IMAGE_NAME });
  await rig.settle();
  return { rig, deleted: () => resolve({ freedBytes: 0 }) };
}

test('each of two calls for one pod is answered when both waited for the sandbox image to be deleted', async () => {
  const { rig, deleted } = await rigBehindDeletion();
  const answers = [rig.call(runPod()), rig.call(runPod())].map(watched);
  await settled(rig);
  assert.deepEqual(
    answers.map((answer) => answer()),
    [null, null],
  );
  deleted();
  await settled(rig);
  const [one, other] = answers.map((answer) => answer());
  assert.ok(one && other, 'one of the two was never answered');
  assert.equal(idOf(one), idOf(other));
  assert.equal(rig.engine.state.calls.size, 0);
});

test('a RestorePod is answered when it waited for the sandbox image to be deleted', async () => {
  const { rig, deleted } = await rigBehindDeletion();
  const configs: ContainerConfig[] = ['c0', 'c1'].map((name) => ({ metadata: { name }, image: { image: IMAGE_NAME } }));
  const answer = watched(
    rig.call({
      method: 'RestorePod',
      checkpointPath: CHECKPOINT_PATH,
      config: podConfig(),
      runtimeHandler: '',
      containerConfigs: configs,
    }),
  );
  await settled(rig);
  assert.equal(answer(), null);
  deleted();
  await settled(rig);
  const reply = answer();
  assert.ok(reply !== null, 'it was never answered');
  idOf(reply);
});

test('a fetch that waited is requested on behalf of the call that wants it', async () => {
  const { rig, deleted } = await rigBehindDeletion();
  const answers = [
    rig.call(runPod()),
    rig.call({ method: 'PullImage', image: IMAGE_NAME, credentials: null }),
    rig.call({ method: 'LoadImages' }),
  ];
  await settled(rig);
  const waiting = [...rig.engine.state.calls.values()].map(({ seq, stream }) => [stream, seq]);
  deleted();
  await Promise.all(answers);
  const requested = rig.contents.rows.flatMap(({ record }) =>
    record?.type === 'effects.requested' && /"(PullImage|LoadImages)"/.test(record.body)
      ? [[record.stream, record.call]]
      : [],
  );
  assert.equal(waiting.length, 3);
  // The first is that of the image which was deleted.
  assert.deepEqual(requested.slice(1), waiting);
});

test('a command of an earlier life that could not be ended is ended while the daemon runs', async () => {
  let refusals = 2;
  const ended: string[] = [];
  const first = await startRig({ perform: { RunExec: hang } });
  const { podSandboxId, containerId } = await runContainer(first);
  void first.call({ method: 'ExecSync', containerId, cmd: ['sleep', '1d'], timeoutSeconds: '0' });
  await first.settle();
  const tasks: ObservedTask[] = [{ containerId, status: 'running', pid: 12, startTicks: '12' }];
  const second = await startRig({
    contents: first.contents,
    perform: {
      ReconnectShim: async () => ({
        gone: false,
        tasks: [...tasks, { containerId: podSandboxId, status: 'running', pid: 11, startTicks: '11' }],
      }),
      EndExec: async ({ execId }) => {
        refusals -= 1;
        if (refusals >= 0) throw new FailureError('TimedOut', 'the shim does not answer');
        ended.push(execId);
        return {};
      },
    },
  });
  await settled(second);
  const stale = (): readonly string[] | undefined => runOf(second.engine.state.containers.get(containerId))?.staleExecs;
  assert.equal(stale()?.length, 1);
  // Tried again until it has ended, and no more then.
  for (let i = 0; i < 4; i += 1) await second.advance(60_000);
  assert.deepEqual([ended.length, stale()], [1, []]);
  assert.equal(refusals, -1);
});

test('a command whose shim did not say how it ended is ended when that answers', async () => {
  let isMute = true;
  const ended: string[] = [];
  const unanswered = (): never => {
    throw new FailureError('TimedOut', 'the shim does not answer');
  };
  const rig = await startRig({
    perform: {
      RunExec: async () => unanswered(),
      EndExec: async ({ execId }) => {
        if (isMute) unanswered();
        ended.push(execId);
        return {};
      },
    },
  });
  const { containerId } = await runContainer(rig);
  const execSync: CallDraft = { method: 'ExecSync', containerId, cmd: ['sleep', '1d'], timeoutSeconds: '0' };
  assert.equal(reasonOf(await rig.call(execSync)), 'TimedOut');
  await rig.advance(5_000);
  assert.deepEqual([ended, rig.performed.includes('EndExec')], [[], true]);
  isMute = false;
  for (let i = 0; i < 3; i += 1) await rig.advance(5_000);
  assert.equal(ended.length, 1);
  assert.deepEqual(runOf(rig.engine.state.containers.get(containerId))?.staleExecs, []);
});

/** A container whose start was under way when the daemon ended, taken up by a daemon with these effects. */
async function startInDoubt(perform: Partial<PerformEffects>): Promise<{ rig: Rig; containerId: string }> {
  const first = await startRig({
    perform: {
      StartTask: ({ containerId, podSandboxId }) => (containerId === podSandboxId ? Promise.resolve(task(11)) : hang()),
    },
  });
  await first.call({ method: 'PullImage', image: IMAGE_NAME, credentials: null });
  const podSandboxId = idOf(await first.call(runPod()));
  const config: ContainerConfig = { metadata: { name: 'c' }, image: { image: IMAGE_NAME } };
  const containerId = idOf(await first.call({ method: 'CreateContainer', podSandboxId, config }));
  void first.call({ method: 'StartContainer', containerId });
  await settled(first);
  const rig = await startRig({ contents: first.contents, perform });
  return { rig, containerId };
}

const stateIn = ({ engine: { state } }: Rig, containerId: string): string | null => {
  const container = state.containers.get(containerId);
  return container === undefined ? null : containerStateOf(container);
};

const doubts: readonly (readonly [string, FailureReason, Pick<PerformEffects, 'ReconnectShim'>])[] = [
  ['whose shim has gone', 'RuntimeFailed', { ReconnectShim: async () => ({ gone: true, tasks: [] }) }],
  [
    'whose shim never answers',
    'RuntimeFailed',
    {
      ReconnectShim: async () => {
        throw new FailureError('TimedOut', 'the shim does not answer');
      },
    },
  ],
  [
    'that was created and not started',
    'Interrupted',
    {
      ReconnectShim: async ({ containerIds }) => ({
        gone: false,
        tasks: containerIds.map((containerId) => ({ containerId, status: 'created', pid: 12, startTicks: '12' })),
      }),
    },
  ],
];
for (const [which, reason, reconnect] of doubts)
  test(`a container ${which}, with its start in doubt, is EXITED after its process was killed and not before`, async () => {
    const { promise: killed, resolve: kill } = Promise.withResolvers<Record<string, never>>();
    const { rig, containerId } = await startInDoubt({
      ...reconnect,
      DeleteTask: (effect) => (effect.containerId === containerId ? killed : Promise.resolve({})),
    });
    for (let i = 0; i < 5; i += 1) await rig.advance(60_000);
    assert.ok(rig.performed.includes('DeleteTask'), 'its process was never killed');
    assert.equal(stateIn(rig, containerId), 'CONTAINER_CREATED');
    const answer = watched(rig.call({ method: 'StartContainer', containerId }));
    kill({});
    await settled(rig);
    assert.equal(stateIn(rig, containerId), 'CONTAINER_EXITED');
    const exit = containerExitOf(rig.engine.state.containers.get(containerId));
    assert.deepEqual([exit?.reason, exit?.exitStatus], ['StartError', 128]);
    const reply = answer();
    assert.ok(reply !== null);
    assert.equal(reasonOf(reply), reason);
  });

test('a start in doubt whose process cannot be killed is tried again, and its caller hears why', async () => {
  let refusing = true;
  const { rig, containerId } = await startInDoubt({
    ReconnectShim: async () => ({ gone: true, tasks: [] }),
    DeleteTask: async () => {
      if (refusing) throw new FailureError('HostFailed', 'It is stuck in the kernel.');
      return {};
    },
  });
  const answer = watched(rig.call({ method: 'StartContainer', containerId }));
  await rig.advance(60_000);
  assert.equal(stateIn(rig, containerId), 'CONTAINER_CREATED');
  const reply = answer();
  assert.ok(reply !== null);
  assert.equal(reasonOf(reply), 'HostFailed');
  refusing = false;
  for (let i = 0; i < 4; i += 1) await rig.advance(60_000);
  assert.equal(stateIn(rig, containerId), 'CONTAINER_EXITED');
});

test('a grace period ends when its time is over, though the wall clock was set back meanwhile', async () => {
  const rig = await startRig();
  const { containerId } = await runContainer(rig);
  const kills = (): number => rig.performed.filter((kind) => kind === 'KillTask').length;
  void rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '2' });
  await settled(rig);
  assert.equal(kills(), 1);
  rig.setClock(-60_000);
  await rig.advance(2_500);
  assert.equal(kills(), 2, 'SIGKILL waits for the clock to come round again');
});

test('a pod that nobody claimed is undone though it was NOTREADY when the daemon started again', async () => {
  const first = await startRig();
  const gone = new AbortController();
  gone.abort();
  await first.call(runPod(), gone.signal);
  const [podSandboxId = ''] = first.engine.state.sandboxes.keys();
  assert.equal(first.engine.state.sandboxes.get(podSandboxId)?.claimed, false);
  const second = await startRig({ contents: first.contents, deadTasks: [podSandboxId] });
  await settled(second);
  assert.equal(second.engine.state.sandboxes.get(podSandboxId)?.phase, 'notReady');
  await second.advance(121_000);
  assert.equal(second.engine.state.sandboxes.get(podSandboxId)?.goal, 'undo');
});

test('a pod whose shim ends while its network is being attached fails, and is not READY without it', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<null>();
  const rig = await startRig({
    perform: {
      AttachNetwork: async () => {
        await held;
        return { ips: ['10.0.0.9'], result: {} };
      },
    },
  });
  const answer = watched(rig.call(runPod()));
  await settled(rig);
  const [podSandboxId = ''] = rig.engine.state.sandboxes.keys();
  assert.equal(rig.engine.state.sandboxes.get(podSandboxId)?.steps.task, 'done');
  await rig.engine.observe({ kind: 'ShimLost', podSandboxId });
  release(null);
  await settled(rig);
  const reply = answer();
  assert.ok(reply !== null);
  assert.equal(reasonOf(reply), 'ShimFailed');
  assert.equal(rig.engine.state.sandboxes.size, 0);
});

test('a StopContainer is answered when the task of a container without a shim cannot be deleted', async () => {
  const rig = await startRig({
    perform: {
      DeleteTask: async () => {
        throw new FailureError('HostFailed', 'It is stuck in the kernel.');
      },
    },
  });
  const { podSandboxId, containerId } = await runContainer(rig);
  await rig.engine.observe({ kind: 'ShimLost', podSandboxId });
  const answer = watched(rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '0' }));
  await rig.advance(60_000);
  const reply = answer();
  assert.ok(reply !== null, 'it waits for ever');
  assert.equal(reasonOf(reply), 'HostFailed');
});
