/** RestorePod on an engine whose effects succeed unless a test says otherwise: who hears what, and what is undone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerConfig } from '../../src/domain/model/cri.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { CallReply } from '../../src/engine/ports.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { CHECKPOINT, CHECKPOINT_ARCHIVE, CHECKPOINT_PATH } from '../simulation/checkpoint.ts';
import { IMAGE } from '../simulation/images.ts';
import { idOf, podConfig, reasonOf, type Rig, type RigOptions, runPod, settled, startRig } from './rig.ts';

const config = (name: string): ContainerConfig => ({ metadata: { name }, image: { image: IMAGE.repoTags[0] ?? '' } });
const restorePod = (names: readonly string[] = ['c0', 'c1']): CallDraft => ({
  method: 'RestorePod',
  checkpointPath: CHECKPOINT_PATH,
  config: podConfig(),
  runtimeHandler: '',
  containerConfigs: names.map(config),
});

/** Pause tasks cannot be signalled in here: nobody waits for their exit. */
async function rigWithImage(perform: RigOptions['perform'] = {}): Promise<Rig> {
  const KillTask = () => Promise.reject(new FailureError('HostFailed', 'no signal'));
  const rig = await startRig({ perform: { KillTask, ...perform } });
  await rig.call({ method: 'PullImage', image: IMAGE.repoTags[0] ?? '', credentials: null });
  return rig;
}

const containersIn = ({ outcome }: CallReply): readonly string[] =>
  outcome.ok ? Object.values(outcome.value.containerIds ?? {}) : [];
const isEmpty = ({ engine: { state } }: Rig): boolean =>
  state.sandboxes.size + state.containers.size + state.names.size === 0;

test('C5: one that comes again gets the same pod, and one that asks for something else does not', async () => {
  const rig = await rigWithImage();
  const [first, second] = await Promise.all([rig.call(restorePod()), rig.call(restorePod())]);
  assert.equal(idOf(first), idOf(second));
  assert.deepEqual(containersIn(first), containersIn(second));
  assert.equal(containersIn(first).length, 2);
  assert.equal(idOf(await rig.call(restorePod())), idOf(first));
  assert.equal(reasonOf(await rig.call(runPod())), 'NameTaken');
  assert.equal(reasonOf(await rig.call(restorePod(['c1', 'c0']))), 'NameTaken');
  await rig.call({ method: 'RemoveContainer', containerId: containersIn(first)[0] ?? '' });
  assert.equal(reasonOf(await rig.call(restorePod())), 'NameTaken');
  assert.equal(rig.engine.state.sandboxes.size, 1);
});

test('C5: one whose caller has gone is undone with its containers when nobody comes for it', async () => {
  const gone = new AbortController();
  const rig = await rigWithImage();
  const call = rig.call(restorePod(), gone.signal);
  gone.abort();
  await call;
  assert.equal(rig.engine.state.containers.size, 2);
  await rig.advance(119_000);
  assert.equal(rig.engine.state.sandboxes.size, 1);
  await rig.advance(2_000);
  assert.ok(isEmpty(rig));
});

test('C5: one whose caller has gone stays when its containers are used', async () => {
  const gone = new AbortController();
  const rig = await rigWithImage();
  const call = rig.call(restorePod(), gone.signal);
  gone.abort();
  const [containerId = ''] = containersIn(await call);
  await rig.call({ method: 'StartContainer', containerId });
  await rig.advance(121_000);
  assert.equal(rig.engine.state.sandboxes.size, 1);
  assert.equal(rig.engine.state.containers.size, 2);
});

test('C6: a container that cannot be made takes the pod with it, and the caller hears why', async () => {
  const rig = await rigWithImage({
    PrepareContainer: async ({ checkpoint }) => {
      if (checkpoint?.path === `${CHECKPOINT_PATH}/c1.tar`) throw new FailureError('InvalidField', 'It is no archive.');
      return { rootfs: [] };
    },
  });
  const { outcome } = await rig.call(restorePod());
  assert.deepEqual(outcome, { ok: false, failure: { reason: 'InvalidField', message: 'It is no archive.' } });
  assert.ok(isEmpty(rig));
});

test('C6: the caller hears why, though what was unpacked of a container cannot be cleaned up yet', async () => {
  let isBusy = true;
  const rig = await rigWithImage({
    PrepareContainer: async ({ checkpoint }) => {
      if (checkpoint?.path === `${CHECKPOINT_PATH}/c1.tar`) throw new FailureError('InvalidField', 'It is no archive.');
      return { rootfs: [] };
    },
    CleanContainer: async () => {
      if (isBusy) throw new FailureError('HostFailed', 'It is busy.');
      return {};
    },
  });
  const { outcome } = await rig.call(restorePod());
  assert.deepEqual(outcome, { ok: false, failure: { reason: 'InvalidField', message: 'It is no archive.' } });
  assert.ok(!isEmpty(rig));
  await settled(rig);
  isBusy = false;
  await rig.advance(60_000);
  await settled(rig);
  assert.ok(isEmpty(rig));
});

test('C6: a shim that ends meanwhile takes the pod with it', async () => {
  const unpacked = Promise.withResolvers<undefined>();
  const rig = await rigWithImage({
    PrepareContainer: async () => {
      await unpacked.promise;
      return { rootfs: [] };
    },
  });
  const call = rig.call(restorePod());
  await settled(rig);
  const [podSandboxId = ''] = rig.engine.state.sandboxes.keys();
  await rig.engine.observe({ kind: 'ShimLost', podSandboxId });
  unpacked.resolve(undefined);
  assert.equal(reasonOf(await call), 'ShimFailed');
  assert.ok(isEmpty(rig));
});

test('images that its containers are to have stay until they have them', async () => {
  const attached = Promise.withResolvers<undefined>();
  const rig = await rigWithImage({
    AttachNetwork: async () => {
      await attached.promise;
      return { ips: [], result: {} };
    },
  });
  const call = rig.call(restorePod());
  await settled(rig);
  assert.equal(rig.engine.state.containers.size, 0);
  await rig.call({ method: 'RemoveImage', image: IMAGE.id });
  assert.ok(!rig.performed.includes('DeleteImageContent'));
  attached.resolve(undefined);
  const podSandboxId = idOf(await call);
  assert.ok(!rig.performed.includes('DeleteImageContent'));
  await rig.call({ method: 'RemovePodSandbox', podSandboxId });
  await rig.settle();
  assert.ok(rig.performed.includes('DeleteImageContent'));
});

test('a pod with other users than the checkpointed one is refused', async () => {
  const ids = { first: 65_536, length: 65_536 };
  const rig = await rigWithImage({
    ReadPodCheckpoint: async () => ({ pod: { ...CHECKPOINT, users: { uids: ids, gids: ids } } }),
  });
  const { outcome } = await rig.call(restorePod());
  assert.match(outcome.ok ? '' : outcome.failure.message, /userns_options/);
  assert.ok(isEmpty(rig));
});

const fromArchive = (podSandboxId: string) => ({
  method: 'CreateContainer' as const,
  podSandboxId,
  config: { metadata: { name: 'c' }, image: { image: CHECKPOINT_ARCHIVE } },
});

test('C5: a container from an archive is one, however often it is asked for, and holds its image', async () => {
  const rig = await rigWithImage();
  const podSandboxId = idOf(await rig.call(runPod()));
  const [first, second] = await Promise.all([rig.call(fromArchive(podSandboxId)), rig.call(fromArchive(podSandboxId))]);
  assert.equal(idOf(first), idOf(second));
  const container = rig.engine.state.containers.get(idOf(first));
  assert.deepEqual([container?.imageId, container?.checkpointArchive], [IMAGE.id, CHECKPOINT_ARCHIVE]);
  await rig.call({ method: 'RemoveImage', image: IMAGE.id });
  assert.ok(!rig.performed.includes('DeleteImageContent'));
});

test('a container from an archive needs the image that it was made from, and a pod whose users are the node’s', async () => {
  const rig = await startRig();
  const podSandboxId = idOf(await rig.call(runPod()));
  const lacking = (await rig.call(fromArchive(podSandboxId))).outcome;
  assert.ok(!lacking.ok && lacking.failure.reason === 'ImageNotFound');
  assert.match(lacking.failure.message, /was checkpointed with image .*app:1/);
  const ids = [{ hostId: 65_536, length: 65_536 }];
  const linux = { securityContext: { namespaceOptions: { usernsOptions: { uids: ids, gids: ids } } } };
  const own = await rig.call({ method: 'RunPodSandbox', config: { ...podConfig('own'), linux }, runtimeHandler: '' });
  const draft = fromArchive(idOf(own));
  const refused = (await rig.call({ ...draft, config: { ...draft.config, linux } })).outcome;
  assert.ok(!refused.ok && refused.failure.reason === 'InvalidField');
  assert.match(refused.failure.message, /users of its own/);
  assert.equal(rig.engine.state.containers.size, 0);
});
