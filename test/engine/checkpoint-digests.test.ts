/** What is known of archives that were written here: beyond their containers, over a snapshot, and bounded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKPOINT_DIGESTS_MAX, checkpointDigests } from '../../src/domain/container/checkpoint-digests.ts';
import { NODE_STREAM } from '../../src/domain/model/records.ts';
import { readState, writeState } from '../../src/domain/turn/snapshot.ts';
import { CHECKPOINT_ARCHIVE } from '../simulation/checkpoint.ts';
import { reasonOf, type Rig, runContainer, startRig } from './rig.ts';

const digest = (index: number): string => `sha256:${String(index).padStart(64, '0')}`;
const checkpoint = (rig: Rig, containerId: string) =>
  rig.call({ method: 'CheckpointContainer', containerId, location: CHECKPOINT_ARCHIVE, timeoutSeconds: '0' });

test('digests of archives are told with what is restored, whatever became of their container', async () => {
  const told: (readonly string[] | undefined)[] = [];
  const rig = await startRig({
    perform: {
      CheckpointTask: async () => ({ digests: [digest(1)] }),
      CheckpointPod: async () => ({ digests: [digest(2), digest(3)] }),
      ReadCheckpoint: async ({ knownDigests }) => {
        told.push(knownDigests);
        return { image: { imageName: 'registry.test/app:1', imageId: [...rig.engine.state.images.keys()][0] ?? '' } };
      },
      PrepareContainer: async (effect) => {
        told.push(effect.checkpoint?.knownDigests);
        return { rootfs: [] };
      },
    },
  });
  const { podSandboxId, containerId } = await runContainer(rig);
  assert.equal(reasonOf(await checkpoint(rig, containerId)), 'OK');
  const ofPod = { method: 'CheckpointPod', podSandboxId, outputPath: '/p', containerIds: [] } as const;
  assert.equal(reasonOf(await rig.call(ofPod)), 'OK');
  const written = rig.contents.rows.filter(({ record }) => record?.type === 'checkpoint.written');
  // Streams of objects are pruned, and a call whose records are needed elsewhere would never be.
  assert.deepEqual(
    written.map(({ record }) => [record?.stream, record?.call]),
    [
      [NODE_STREAM, null],
      [NODE_STREAM, null],
    ],
  );
  const config = { metadata: { name: 'restored' }, image: { image: CHECKPOINT_ARCHIVE } };
  assert.equal(reasonOf(await rig.call({ method: 'CreateContainer', podSandboxId, config })), 'OK');
  const known = [1, 2, 3].map(digest);
  assert.deepEqual(told, [undefined, known, known]);
  assert.deepEqual(checkpointDigests(readState(writeState(rig.engine.state))), known);
});

test('digests that are known are bounded, the newest of them stay, and an outcome without one changes nothing', async () => {
  let digests: readonly string[] | undefined;
  const rig = await startRig({ perform: { CheckpointTask: async () => (digests === undefined ? {} : { digests }) } });
  const { containerId } = await runContainer(rig);
  await checkpoint(rig, containerId);
  assert.equal(rig.engine.state.checkpointDigests, undefined);
  digests = [0, 1].map(digest);
  await checkpoint(rig, containerId);
  digests = Array.from({ length: CHECKPOINT_DIGESTS_MAX - 1 }, (_, index) => digest(index + 2));
  await checkpoint(rig, containerId);
  const known = checkpointDigests(rig.engine.state);
  assert.deepEqual([known.length, known[0], known.at(-1)], [CHECKPOINT_DIGESTS_MAX, digest(1), digests.at(-1)]);
  digests = [digest(1)];
  await checkpoint(rig, containerId);
  const again = checkpointDigests(rig.engine.state);
  assert.deepEqual([again.length, again[0], again.at(-1)], [CHECKPOINT_DIGESTS_MAX, digest(2), digest(1)]);
});
