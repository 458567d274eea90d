/**
 * Classes of vulnerabilities that come with a checkpoint that somebody else wrote: what it says of itself, and what is in
 * its archives. Each test is named after the advisories that its class is known by. Needs root.
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { sha256Of } from '../../src/adapters/images/chain-ids.ts';
import { imageLayout } from '../../src/adapters/images/layout.ts';
import { createTrees } from '../../src/adapters/images/trees/trees.ts';
import { defaultImageLimits } from '../../src/adapters/images/types.ts';
import { createHomes } from '../../src/adapters/images/unpack/home.ts';
import { createUnpackerProcesses } from '../../src/adapters/images/unpack/processes.ts';
import { createTurns } from '../../src/adapters/images/unpack/turns.ts';
import { createCheckpointArchives } from '../../src/adapters/images/unpack/checkpoint.ts';
import { startSpawner } from '../../src/platform/spawner/client.ts';
import { describedImage, describedPod } from '../../src/domain/pod-sandbox/checkpoint-description.ts';
import type { ContainerConfig } from '../../src/domain/model/cri.ts';
import { idOf, podConfig, runPod, startRig } from '../engine/rig.ts';
import { CHECKPOINT_ARCHIVE, CHECKPOINT_PATH } from '../simulation/checkpoint.ts';
import { IMAGE } from '../simulation/images.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { withReason } from '../support/failures.ts';
import { tar, type TarMember } from '../support/images/tar.ts';
import { requireRoot } from '../support/netns.ts';
import { tempDir } from '../support/temp-dir.ts';

const imageId = `sha256:${'a'.repeat(64)}`;
const ofImage = { rootfsImageName: 'app:1', rootfsImageRef: imageId };
const ofPod = { version: 1, id: 'p', config: {}, containers: [{ ...ofImage, name: 'c', archive: 'c.tar' }] };
const unknown = withReason('InvalidField', /that is not known/);

describe('what a checkpoint says of itself', () => {
  it('CVE-2026-53492: it names no devices, by annotations or otherwise', () => {
    const annotations = { 'cdi.k8s.io/x': 'vendor.example/device=all' };
    for (const more of [{ annotations }, { CDIDevices: [{ name: 'vendor.example/device=all' }] }, { devices: [] }]) {
      assert.throws(() => describedImage('/c.tar', JSON.stringify({ ...ofImage, ...more })), unknown);
      const [container] = ofPod.containers;
      const containers = [{ ...container, ...more }];
      assert.throws(() => describedPod('/p', JSON.stringify({ ...ofPod, containers })), unknown);
    }
    // The configuration of the pod stands in it for people: nothing reads it.
    const read = describedPod('/p', JSON.stringify({ ...ofPod, config: { annotations } }));
    assert.ok(!JSON.stringify(read).includes('vendor.example'));
  });

  it('CVE-2024-8676, CVE-2026-92574: mounts, capabilities and profiles are those of the request', async () => {
    for (const more of [{ mounts: [] }, { spec: {} }, { linux: {} }, { process: {} }, { privileged: true }])
      assert.throws(() => describedImage('/c.tar', JSON.stringify({ ...ofImage, ...more })), unknown);
    const rig = await startRig();
    await rig.call({ method: 'PullImage', image: IMAGE.repoTags[0] ?? '', credentials: null });
    const configs = ['c0', 'c1'].map(
      (name): ContainerConfig => ({
        metadata: { name },
        image: { image: IMAGE.repoTags[0] ?? '' },
        linux: { securityContext: { noNewPrivs: true, capabilities: { dropCapabilities: ['ALL'] } } },
      }),
    );
    await rig.call({
      method: 'RestorePod',
      checkpointPath: CHECKPOINT_PATH,
      config: podConfig(),
      runtimeHandler: '',
      containerConfigs: configs,
    });
    const made = [...rig.engine.state.containers.values()].map(({ config }) => config);
    assert.deepEqual(made, configs);
  });

  it('CVE-2026-50195: no image gets a name from it', async () => {
    const rig = await startRig();
    await rig.call({ method: 'PullImage', image: IMAGE.repoTags[0] ?? '', credentials: null });
    const images = () => [...rig.engine.state.images.values()].map(({ content }) => [content.id, content.repoTags]);
    const known = images();
    const podSandboxId = idOf(await rig.call(runPod()));
    const config = { metadata: { name: 'c' }, image: { image: CHECKPOINT_ARCHIVE } };
    await rig.call({ method: 'CreateContainer', podSandboxId, config });
    assert.equal(rig.engine.state.containers.size, 1);
    assert.deepEqual(images(), known);
    for (const rootfsImageName of ['', 'a\nb', 'x'.repeat(2000)])
      assert.throws(
        () => describedImage('/c.tar', JSON.stringify({ ...ofImage, rootfsImageName })),
        withReason('InvalidField', /the name of an image/),
      );
  });
});

describe('archives of a checkpoint', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  before(requireRoot);

  it('CVE-2026-53489: what is in it is read as the file that it is, and no link in it is followed', async () => {
    const root = await tempDir(owner);
    const spawner = await startSpawner({ lockPath: join(root, 'lock'), startTimeoutMs: 10_000 });
    onCleanup(owner, () => spawner.close());
    const layout = imageLayout(root);
    await mkdir(join(layout.containers, 'c', 'fs'), { recursive: true });
    const trees = createTrees();
    onCleanup(owner, () => trees.close());
    const canary = join(root, 'canary');
    await writeFile(canary, 'untouched');
    const limits = { ...defaultImageLimits, reservedBytes: 0 };
    const { unpack } = createCheckpointArchives({
      layout,
      processes: createUnpackerProcesses(spawner, limits, createHomes(layout, trees.remove)),
      limits,
      turns: createTurns(1),
      trees,
      trustedKeyPaths: [],
    });
    const archive = join(root, 'archive.tar');
    const dir = join(layout.containers, 'c', 'restore');
    const images = { path: 'checkpoint/pages-1.img', data: 'pages' };
    const restored = async (members: readonly TarMember[]): Promise<void> => {
      const bytes = tar([images, ...members]);
      await writeFile(archive, bytes);
      // Even what the node has written itself is read with care.
      await unpack('c', { path: archive, dir, knownDigests: [sha256Of(bytes)] }, new AbortController().signal);
    };
    for (const name of ['container.log', 'rootfs-diff.tar', 'config.dump', 'checkpoint/inventory.img'])
      await assert.rejects(
        restored([{ path: name, flag: '2', linkPath: canary }]),
        withReason('InvalidField', /neither a file nor a directory/),
        name,
      );
    await restored([{ path: 'container.log', data: 'lines' }]);
    assert.ok((await readdir(dir)).includes('checkpoint'));
    assert.equal(await readFile(canary, 'utf8'), 'untouched');
  });
});
