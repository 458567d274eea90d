/**
 * Effects that are asked for while the one that they follow is under way or not begun: CleanContainer behind DeleteTask,
 * PrepareContainer behind InspectContainer. When they begin, and that they never do after a failure; and that one gets ready
 * meanwhile: AttachNetwork behind PinNamespaces.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerFacts } from '../../src/domain/model/container-facts.ts';
import { NamespaceMode } from '../../src/domain/model/cri.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import { createMemoryJournal, emptyContents } from '../../src/journal/memory-journal.ts';
import { exitOf, podConfig, reasonOf, type Rig, type RigOptions, runContainer, settled, startRig } from './rig.ts';

interface Ending {
  readonly rig: Rig;
  readonly containerId: string;
  /** Of DeleteTask. */
  readonly deleted: () => void;
  readonly notDeleted: () => void;
}

/** Its exit is written down, and its task is being deleted. */
async function exitedContainer(options: RigOptions = {}): Promise<Ending> {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, never>>();
  const rig = await startRig({ ...options, perform: { DeleteTask: () => promise } });
  const { podSandboxId, containerId } = await runContainer(rig);
  await rig.engine.observe(exitOf(podSandboxId, containerId, 0));
  await settled(rig);
  return {
    rig,
    containerId,
    deleted: () => resolve({}),
    notDeleted: () => reject(new FailureError('RuntimeFailed', 'it is busy')),
  };
}

const begun = ({ performed }: Rig, kind: string): number => performed.filter((one) => one === kind).length;

test('the files of a container go once its task is deleted, and not before', async () => {
  const { rig, containerId, deleted } = await exitedContainer();
  const reply = rig.call({ method: 'RemoveContainer', containerId });
  await settled(rig);
  assert.equal(begun(rig, 'CleanContainer'), 0);
  deleted();
  assert.equal(reasonOf(await reply), 'OK');
  assert.equal(begun(rig, 'CleanContainer'), 1);
});

test('C6: what follows a deletion that failed is not begun, and fails in its words', async () => {
  const { rig, containerId, notDeleted } = await exitedContainer();
  const reply = rig.call({ method: 'RemoveContainer', containerId });
  await settled(rig);
  notDeleted();
  const { outcome } = await reply;
  assert.deepEqual(outcome, { ok: false, failure: { reason: 'RuntimeFailed', message: 'it is busy' } });
  assert.equal(begun(rig, 'CleanContainer'), 0);
});

test('C6: nor is it where the deletion fails while the request for both is on its way to the disk', async () => {
  let disk = Promise.resolve();
  const { rig, containerId, notDeleted } = await exitedContainer({ commit: () => disk });
  const { promise, resolve: written } = Promise.withResolvers<void>();
  disk = promise;
  const reply = rig.call({ method: 'RemoveContainer', containerId });
  notDeleted();
  await settled(rig);
  assert.equal(begun(rig, 'CleanContainer'), 0);
  written();
  assert.equal(reasonOf(await reply), 'RuntimeFailed');
  assert.equal(begun(rig, 'CleanContainer'), 0);
  assert.deepEqual(
    rig.engine.underWay().map(({ kind }) => kind),
    ['WaitUntil'],
  );
});

test('the files of a container are made once its inspection is decided about, of what that found', async () => {
  const { promise, resolve } = Promise.withResolvers<{ readonly facts: ContainerFacts }>();
  const uids: number[] = [];
  const commits: (readonly string[])[] = [];
  const rig = await startRig({
    commit: async (records) => void commits.push(records.map(({ type, body }) => `${type} ${body}`)),
    perform: {
      InspectContainer: () => promise,
      PrepareContainer: async ({ bundle }) => {
        uids.push(bundle.spec.process.user.uid);
        return { rootfs: [] };
      },
    },
  });
  const running = runContainer(rig);
  await settled(rig);
  assert.equal(begun(rig, 'InspectContainer'), 1);
  assert.equal(begun(rig, 'PrepareContainer'), 0);
  resolve({ facts: { user: { uid: 7, gid: 0, additionalGids: [] }, devices: [], mounts: [] } });
  await running;
  assert.deepEqual(uids, [7]);
  const asked = commits.findIndex((records) => records.some((text) => /InspectContainer.*PrepareContainer/.test(text)));
  assert.ok(asked >= 0, 'one record asks for both');
});

test('the end of what another effect follows waits for that of the other one, to go to the disk with it', async () => {
  const journal = createMemoryJournal({ contents: emptyContents() });
  const waiting: string[] = [];
  const rig = await startRig({
    journal: {
      ...journal,
      append: (records, mayWait) => {
        if (mayWait === true) waiting.push(...records.map(({ body }) => (JSON.parse(body) as { kind: string }).kind));
        return journal.append(records, mayWait);
      },
    },
  });
  await runContainer(rig);
  // The pod's pause task is made and started at once; the container's is made before its start is asked for.
  assert.deepEqual(waiting, ['CreateTask', 'InspectContainer']);
});

test('C6: no files are made for a container whose inspection failed', async () => {
  const rig = await startRig({
    perform: { InspectContainer: () => Promise.reject(new FailureError('InvalidField', 'no such user')) },
  });
  await assert.rejects(runContainer(rig));
  await settled(rig);
  assert.equal(begun(rig, 'PrepareContainer'), 0);
  assert.equal(begun(rig, 'CleanContainer'), 1);
  assert.equal(rig.engine.state.containers.size, 0);
});

/** A pod whose namespaces are being pinned, and what is heard of its network in the meantime, in order. */
async function pinningPod(commit?: RigOptions['commit']) {
  const heard: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, never>>();
  const result = { ips: ['10.0.0.2'], result: {} };
  const attach = async (): Promise<typeof result> => {
    heard.push('attached without getting ready');
    return result;
  };
  const rig = await startRig({
    ...(commit === undefined ? {} : { commit }),
    perform: {
      PinNamespaces: () => {
        heard.push('pinning');
        return promise;
      },
      AttachNetwork: Object.assign(attach, {
        getReady: () => {
          heard.push('got ready');
          const perform = async (): Promise<typeof result> => {
            heard.push('attached');
            return result;
          };
          return { perform, drop: () => void heard.push('dropped') };
        },
      }),
    },
  });
  const linux = { securityContext: { namespaceOptions: { pid: NamespaceMode.CONTAINER } } };
  const config = { ...podConfig(), linux };
  const reply = rig.call({ method: 'RunPodSandbox', config, runtimeHandler: '' });
  await settled(rig);
  return {
    rig,
    heard,
    reply,
    pinned: () => resolve({}),
    notPinned: () => reject(new FailureError('HostFailed', 'no')),
  };
}

test('a network gets ready before the namespaces that it follows begin, and is attached when they are there', async () => {
  const { heard, reply, pinned } = await pinningPod();
  assert.deepEqual(heard, ['got ready', 'pinning']);
  pinned();
  assert.equal(reasonOf(await reply), 'OK');
  assert.deepEqual(heard, ['got ready', 'pinning', 'attached']);
});

test('C6: a network that is ready is dropped when the namespaces fail, and never attached', async () => {
  const { rig, heard, reply, notPinned } = await pinningPod();
  notPinned();
  assert.equal(reasonOf(await reply), 'HostFailed');
  assert.deepEqual(heard, ['got ready', 'pinning', 'dropped']);
  assert.equal(begun(rig, 'DetachNetwork'), 1, 'by its intent');
});

test('C2: nothing gets ready before its intent is durable', async () => {
  const { promise: disk, resolve: written } = Promise.withResolvers<undefined>();
  const { heard, reply, pinned } = await pinningPod(async (records) => {
    if (records.some(({ body }) => body.includes('"effects"') && body.includes('AttachNetwork'))) await disk;
  });
  assert.deepEqual(heard, []);
  written(undefined);
  pinned();
  assert.equal(reasonOf(await reply), 'OK');
  assert.deepEqual(heard, ['got ready', 'pinning', 'attached']);
});
