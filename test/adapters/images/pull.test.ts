/** Pulls from a real registry: images of every form, shared content, interruptions, removal. Needs root and docker-registry. */
import assert from 'node:assert/strict';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { PullProgress } from '../../../src/adapters/images/types.ts';
import { imageFileReader } from '../../../src/adapters/inspect/image-files.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { buildImage, buildIndex, platform } from '../../support/images/build.ts';
import { startFilledRegistry, type TestRegistry } from '../../support/images/registry.ts';
import { contextOf, failureOf, startStore } from '../../support/images/store.ts';
import { tar } from '../../support/images/tar.ts';
import { tempDir } from '../../support/temp-dir.ts';

const layer = (name: string, bytes = 1000): Buffer => tar([{ path: name, data: name.repeat(bytes / name.length) }]);
const foreign = platform.architecture === 'amd64' ? 'arm64' : 'amd64';

describe('pulling images', { timeout: 90_000 }, () => {
  const owner = cleanupAfterAll();
  let registry: TestRegistry;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    registry = await startFilledRegistry(owner);
  });

  it('fails at once when it is asked for after the end', async (t) => {
    const store = await startStore(t);
    await store.adapter.close();
    assert.equal((await failureOf(store.pull(`${registry.host}/forms/oci:v1`))).reason, 'Interrupted');
  });

  it('pulls OCI and Docker images with layers of every compression', async (t) => {
    const store = await startStore(t);
    for (const docker of [false, true]) {
      const image = buildImage(
        [
          { tar: layer('base') },
          { tar: layer('zstd'), compression: docker ? 'gzip' : 'zstd' },
          { tar: layer('none'), compression: 'none' },
        ],
        { docker, config: { User: '7', Env: ['A=b'], Cmd: ['run'] } },
      );
      await registry.push(`forms/${docker ? 'docker' : 'oci'}`, 'v1', image);
      const reference = `${registry.host}/forms/${docker ? 'docker' : 'oci'}:v1`;
      const pulled = await store.pull(reference);
      const configDigest = [...image.blobs.keys()].at(-1);
      assert.equal(pulled.id, configDigest);
      assert.equal(pulled.manifestDigest, image.digest);
      assert.deepEqual(pulled.repoTags, [reference]);
      assert.deepEqual(pulled.repoDigests, [`${reference.replace(':v1', '')}@${image.digest}`]);
      assert.deepEqual(pulled.config, { user: '7', env: ['A=b'], cmd: ['run'] });
      assert.deepEqual(
        pulled.layers.map(({ diffId }) => diffId),
        image.diffIds,
      );
      assert.deepEqual(new Set(pulled.blobs), new Set([image.digest, ...image.blobs.keys()]));
      assert.equal(
        pulled.sizeBytes,
        [...image.blobs.values()].reduce((sum, { length }) => sum + length, 0),
      );
      const dirs = store.layerDirs(pulled);
      assert.deepEqual(await Promise.all(dirs.map((dir) => readdir(dir))), [['base'], ['zstd'], ['none']]);
      assert.equal(
        (
          await imageFileReader(store.adapter.snapshots.layerDirs)(
            pulled.layers.map(({ chainId }) => chainId),
            '/zstd',
            5000,
          )
        )?.length,
        1000,
      );
    }
  });

  it('pulls by digest, by tag and digest, and an image of the other names again as the same', async (t) => {
    const store = await startStore(t);
    const image = buildImage([{ tar: layer('digest') }]);
    await registry.push('by/digest', 'v1', image);
    const repository = `${registry.host}/by/digest`;
    const byDigest = await store.pull(`${repository}@${image.digest}`);
    assert.deepEqual([byDigest.repoTags, byDigest.repoDigests], [[], [`${repository}@${image.digest}`]]);
    const both = await store.pull(`${repository}:other@${image.digest}`);
    assert.deepEqual([both.id, both.repoTags], [byDigest.id, []]);
    const byTag = await store.pull(`${repository}:v1`);
    assert.deepEqual([byTag.id, byTag.layers], [byDigest.id, byDigest.layers]);
    assert.equal(store.runs.length, 1);
  });

  it('chooses the manifest for this machine, and refuses an image for another', async (t) => {
    const store = await startStore(t);
    const [mine, other] = [
      buildImage([{ tar: layer('mine') }]),
      buildImage([{ tar: layer('other') }], { architecture: foreign }),
    ];
    const index = buildIndex([
      { image: other, os: 'linux', architecture: foreign },
      { image: mine, ...platform },
    ]);
    for (const [tag, image] of Object.entries({ mine, other })) await registry.push('multi', tag, image);
    await registry.putManifest('multi', 'all', index.manifest, index.manifestType);
    const pulled = await store.pull(`${registry.host}/multi:all`);
    assert.equal(pulled.manifestDigest, mine.digest);
    assert.deepEqual(pulled.repoDigests, [`${registry.host}/multi@${index.digest}`]);
    assert.ok(pulled.blobs.includes(index.digest));
    const onlyOther = buildIndex([{ image: other, os: 'linux', architecture: foreign }]);
    await registry.putManifest('multi', 'foreign', onlyOther.manifest, onlyOther.manifestType);
    for (const tag of ['other', 'foreign']) {
      const failure = await store.failedPull(`${registry.host}/multi:${tag}`);
      assert.equal(failure.reason, 'ImageInvalid');
      assert.match(
        failure.message,
        new RegExp(`made for .*${platform.architecture}|this machine is linux/${platform.architecture}`),
      );
    }
  });

  it('takes from an index that says no platforms the image whose config is of this machine', async (t) => {
    const store = await startStore(t);
    const [mine, other, nested] = [
      buildImage([{ tar: layer('mine') }]),
      buildImage([{ tar: layer('other') }], { architecture: foreign }),
      buildImage([{ tar: layer('nested') }]),
    ];
    for (const [tag, image] of Object.entries({ mine, other, nested })) await registry.push('unsaid', tag, image);
    const put = async (tag: string, index: ReturnType<typeof buildIndex>): Promise<void> =>
      void (await registry.putManifest('unsaid', tag, index.manifest, index.manifestType));
    await put('all', buildIndex([{ image: other }, { image: mine }]));
    assert.equal((await store.pull(`${registry.host}/unsaid:all`)).manifestDigest, mine.digest);
    await put('said', buildIndex([{ image: mine }, { image: nested, ...platform }]));
    assert.equal((await store.pull(`${registry.host}/unsaid:said`)).manifestDigest, nested.digest);
    await put('foreign', buildIndex([{ image: other }, { image: other }]));
    const failure = await store.failedPull(`${registry.host}/unsaid:foreign`);
    assert.equal(failure.reason, 'ImageInvalid');
    assert.match(failure.message, new RegExp(`made for .*${foreign}.* this machine is linux/${platform.architecture}`));
  });

  it('says NotFound for what the registry does not have, and Unavailable when there is none', async (t) => {
    const store = await startStore(t, { limits: { attemptsMax: 2 } });
    const missing = await store.failedPull(`${registry.host}/no/such:image`);
    assert.equal(missing.reason, 'ImageUnknownToRegistry');
    assert.match(missing.message, /no\/such/);
    const nobody = await store.failedPull('127.0.0.1:1/a:b');
    assert.equal(nobody.reason, 'RegistryFailed');
    assert.match(nobody.message, /^RegistryUnavailable: /);
    assert.equal((await store.failedPull('Not A Reference')).reason, 'InvalidField');
  });

  it('shares one pull of an image, and layers between images', async (t) => {
    const store = await startStore(t);
    const common = layer('common');
    const [one, two] = ['one', 'two'].map((name) => buildImage([{ tar: common }, { tar: layer(name) }]));
    assert.ok(one && two);
    await registry.push('shared/one', 'v1', one);
    await registry.push('shared/two', 'v1', two);
    const names = ['one', 'one', 'one', 'two'];
    const pulled = await Promise.all(names.map((name) => store.pull(`${registry.host}/shared/${name}:v1`)));
    assert.equal(pulled[0]?.layers[0]?.chainId, pulled[3]?.layers[0]?.chainId);
    assert.deepEqual(pulled[0], pulled[1]);
    assert.equal(store.runs.length, 3, 'one process for each layer');
  });

  it('has the same layer in two chains twice, and an image with no layer at all', async (t) => {
    const store = await startStore(t);
    const same = layer('same');
    const twice = buildImage([{ tar: same }, { tar: same }]);
    await registry.push('odd', 'twice', twice);
    const pulled = await store.pull(`${registry.host}/odd:twice`);
    assert.equal(new Set(store.layerDirs(pulled)).size, 2);
    const none = buildImage([]);
    await registry.push('odd', 'none', none);
    assert.deepEqual((await store.pull(`${registry.host}/odd:none`)).layers, []);
  });

  it('refuses a config that does not fit the layers, and layers that do not fit the config', async (t) => {
    const store = await startStore(t);
    const few = buildImage([{ tar: layer('few') }], { diffIds: [] });
    const wrong = buildImage([{ tar: layer('ok') }, { tar: layer('wrong') }], {
      diffIds: [buildImage([{ tar: layer('ok') }]).diffIds[0] ?? '', `sha256:${'0'.repeat(64)}`],
    });
    await registry.push('unfit', 'few', few);
    await registry.push('unfit', 'wrong', wrong);
    assert.match((await store.failedPull(`${registry.host}/unfit:few`)).message, /1 layers and its config 0/);
    assert.match((await store.failedPull(`${registry.host}/unfit:wrong`)).message, /config names sha256:0000/);
    assert.deepEqual(await readdir(join(store.root, 'images/unpack')), []);
  });

  it('tells of its progress', async (t) => {
    const store = await startStore(t);
    const image = buildImage([{ tar: tar([{ path: 'f', data: Buffer.alloc(3_000_000, 7) }]), compression: 'none' }]);
    await registry.push('progress', 'v1', image);
    const seen: PullProgress[] = [];
    const following = store.adapter.progress.subscribe((progress) => seen.push(progress));
    await store.pull(`${registry.host}/progress:v1`);
    following.unsubscribe();
    const { digest, size } = image.layers[0] ?? assert.fail();
    assert.ok(seen.every((progress) => progress.digest === digest && progress.bytesTotal === size));
    assert.deepEqual([...new Set(seen.map(({ phase }) => phase))], ['downloading', 'unpacking', 'done']);
    assert.equal(seen.at(-1)?.bytesDone, size);
    const before = seen.length;
    await store.pull(`${registry.host}/progress:v1`);
    assert.equal(seen.length, before);
  });

  it('removes content, and makes the store empty again', async (t) => {
    const store = await startStore(t);
    const image = buildImage([{ tar: layer('one') }, { tar: layer('two') }]);
    await registry.push('removed', 'v1', image);
    const reference = `${registry.host}/removed:v1`;
    const { blobs, layers } = await store.pull(reference);
    const chainIds = layers.map(({ chainId }) => chainId);
    assert.deepEqual(new Set((await store.adapter.listContent()).blobs), new Set(blobs));
    assert.deepEqual(new Set((await store.adapter.listContent()).chainIds), new Set(chainIds));

    const effect = { kind: 'DeleteImageContent', blobs, chainIds } as const;
    const { freedBytes } = await store.adapter.effects.DeleteImageContent(effect, contextOf());
    assert.ok(freedBytes > 0);
    assert.deepEqual(await store.adapter.listContent(), { blobs: [], chainIds: [] });
    assert.deepEqual(await store.adapter.effects.DeleteImageContent(effect, contextOf()), { freedBytes: 0 });
    await store.adapter.collectLeftovers();
    const { usedBytes, inodesUsed } = store.adapter.imageFsUsage();
    assert.deepEqual([usedBytes, inodesUsed], [0, 0]);
    await store.pull(reference);
    await store.adapter.collectLeftovers();
    assert.ok(store.adapter.imageFsUsage().usedBytes > 0);
  });

  it('removes content while images are pulled, but none of theirs, at whichever moment it is asked to', async (t) => {
    const store = await startStore(t);
    const [shared, old, fresh] = ['shared', 'old', 'fresh'].map((name) => ({ tar: layer(name) }));
    if (shared === undefined || old === undefined || fresh === undefined) assert.fail();
    await registry.push('meanwhile', 'old', buildImage([shared, old]));
    await registry.push('meanwhile', 'new', buildImage([shared, fresh]));
    const [oldName, newName] = ['old', 'new'].map((tag) => `${registry.host}/meanwhile:${tag}`);
    if (oldName === undefined || newName === undefined) assert.fail();
    const isThere = async ({ blobs, layers }: Awaited<ReturnType<typeof store.pull>>): Promise<boolean> => {
      const stored = await store.adapter.listContent();
      return (
        blobs.every((blob) => stored.blobs.includes(blob)) &&
        layers.every(({ chainId }) => stored.chainIds.includes(chainId))
      );
    };

    const begun = performance.now();
    const first = await store.pull(oldName);
    const pullMs = performance.now() - begun;
    const chainIdsOf = ({ layers }: typeof first): string[] => layers.map(({ chainId }) => chainId);
    for (const name of [oldName, newName])
      for (let round = 0; round < 12; round += 1) {
        const { blobs, ...image } = await store.pull(oldName);
        const pull = store.pull(name);
        await setTimeout((round * pullMs) / 8);
        const deletion = { kind: 'DeleteImageContent', blobs, chainIds: chainIdsOf({ blobs, ...image }) } as const;
        await store.adapter.effects.DeleteImageContent({ ...deletion, fetching: [name] }, contextOf());
        const pulled = await pull;
        assert.ok(await isThere(pulled), `${name} is whole in round ${round}`);
        if (name === newName) assert.ok(!(await isThere(first)), `the old image went in round ${round}`);
        // When nothing is fetched, all goes that is asked to.
        const all = { ...deletion, blobs: [...blobs, ...pulled.blobs] };
        await store.adapter.effects.DeleteImageContent(
          { ...all, chainIds: [...deletion.chainIds, ...chainIdsOf(pulled)] },
          contextOf(),
        );
        assert.deepEqual(await store.adapter.listContent(), { blobs: [], chainIds: [] });
      }
  });

  it('cancels, keeps what it has, and takes nothing half-done for whole', async (t) => {
    const store = await startStore(t);
    const image = buildImage([{ tar: layer('a', 3_000_000) }, { tar: layer('b', 3_000_000) }]);
    await registry.push('cancelled', 'v1', image);
    const reference = `${registry.host}/cancelled:v1`;
    for (const phase of ['downloading', 'unpacking', 'done'] as const) {
      const abort = new AbortController();
      const following = store.adapter.progress.subscribe((progress) => {
        if (progress.phase === phase) abort.abort(new Error('enough'));
      });
      const outcome = await failureOf(store.pull(reference, undefined, abort.signal)).catch(() => null);
      following.unsubscribe();
      if (outcome !== null) assert.equal(outcome.reason, 'Cancelled');
      assert.deepEqual(await readdir(join(store.root, 'images/unpack')).catch(() => []), []);
    }
    assert.equal((await store.pull(reference)).layers.length, 2);
    const aborted = AbortSignal.abort(new Error('before it began'));
    await assert.rejects(store.pull(reference, undefined, aborted));
  });

  it('goes on after a restart, and clears away what a crash left', async (t) => {
    const root = join(await tempDir(t), 'root');
    const image = buildImage([{ tar: layer('kept', 2_000_000), compression: 'none' }]);
    await registry.push('restart', 'v1', image);
    const first = await startStore(t, { root });
    await first.pull(`${registry.host}/restart:v1`);
    await first.stop();
    // As if the daemon had died in the middle of everything.
    const { digest, size } = image.layers[0] ?? assert.fail();
    const hex = digest.slice('sha256:'.length);
    const blob = await readFile(join(root, 'images/blobs/sha256', hex));
    await rm(join(root, 'images/blobs/sha256', hex));
    await writeFile(join(root, 'images/ingest', `${hex}.partial`), blob.subarray(0, size - 1000));
    const [name = ''] = await readdir(join(root, 'images/snapshots'));
    await rm(join(root, 'images/snapshots', name, 'info.json'));
    await writeFile(join(root, 'images/unpack/leftover'), 'x');
    await writeFile(join(root, 'images/trash/leftover'), 'x');

    const second = await startStore(t, { root: join(root) });
    const needed = { blobs: [], chainIds: [] };
    const taken = await second.adapter.collectUnknown(needed, 0);
    assert.deepEqual([taken?.blobs.length, taken?.layers.length], [2, 1]);
    await second.adapter.collectLeftovers();
    assert.deepEqual(await second.adapter.listContent(), needed);
    assert.deepEqual(await readdir(join(root, 'images/unpack')), []);
    assert.deepEqual(await readdir(join(root, 'images/trash')), []);
    assert.deepEqual(await readdir(join(root, 'images/ingest')), [`${hex}.partial`]);
    const downloaded: number[] = [];
    second.adapter.progress.subscribe(({ phase, bytesDone }) => {
      if (phase === 'downloading') downloaded.push(bytesDone);
    });
    const pulled = await second.pull(`${registry.host}/restart:v1`);
    assert.ok(
      downloaded.every((bytesDone) => bytesDone > size - 1000),
      `it began at ${downloaded[0]}`,
    );
    assert.equal(pulled.layers.length, 1);
  });
});
