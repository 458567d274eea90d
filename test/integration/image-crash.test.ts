/**
 * kill -9 in the middle of pulls, loads and removals, as soon as something appears in each directory of the image
 * store: after the next start there is nothing in it that the journal does not know. Needs root.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { watch } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { buildImage, writeOciArchive } from '../../scripts/lib/image.ts';
import { neededContent } from '../../src/daemon/image-upkeep.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { startNode, type TestNode } from '../support/node.ts';
import { eventually } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

const LAYERS = 3;
const FILES = 40;
const SNAPSHOT_NAME_DIGITS = 16;
/** Directories of the store, in the order in which a fetch comes by them. */
const STAGES = ['ingest', 'blobs/sha256', 'unpack', 'snapshots'] as const;
const name = 'registry.example/big:v1';

const bigImage = () =>
  buildImage(
    Array.from({ length: LAYERS }, (_, layer) =>
      Array.from({ length: FILES }, (_, file) => ({ name: `d${layer}/f${file}`, content: randomBytes(40_000) })),
    ),
  );

const hexOf = (digest: string): string => digest.replace('sha256:', '');

describe('the image store after a kill', { timeout: 170_000 }, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let store = '';
  let archive = '';

  before(async () => {
    node = await startNode(owner);
    store = join(node.daemon.dirs.root, 'images');
    const image = await bigImage();
    await node.registry.push('big', 'v1', image);
    archive = join(await tempDir(owner), 'image.tar');
    await writeOciArchive(archive, name, image);
    for (const stage of [...STAGES, 'trash']) await mkdir(join(store, stage), { recursive: true });
  });

  /** Kills the daemon at the n-th thing that happens in one directory of the store. */
  const killAt = async (stage: string, count: number, work: () => Promise<unknown>): Promise<void> => {
    const happened = Promise.withResolvers<void>();
    let left = count;
    const watcher = watch(join(store, stage), () => {
      left -= 1;
      if (left <= 0) happened.resolve();
    });
    try {
      const outcome = work().then(
        () => null,
        () => null,
      );
      // A load or pull that was faster than the watch is as good a moment as any.
      await Promise.race([happened.promise, outcome]);
      await node.daemon.kill();
      await outcome;
    } finally {
      watcher.close();
    }
  };

  /** How the store differs from what the images of the journal need. */
  const differences = async (): Promise<readonly string[]> => {
    const namesIn = (directory: string): Promise<string[]> => readdir(join(store, directory));
    const needed = neededContent(stateOf(node.daemon));
    const expected = {
      'blobs/sha256': needed.blobs.map(hexOf),
      snapshots: needed.chainIds.map((chainId) => hexOf(chainId).slice(0, SNAPSHOT_NAME_DIGITS)),
      unpack: [],
      trash: [],
      // Downloads that the next pull goes on with.
      ingest: (await namesIn('ingest')).filter((file) => file.endsWith('.partial')),
    };
    const all = Object.entries(expected).map(async ([directory, names]) => {
      const [found, known] = [new Set(await namesIn(directory)), new Set(names)];
      const unknown = [...found.difference(known)].map((file) => `${directory}/${file} is unknown`);
      return [...unknown, ...[...known.difference(found)].map((file) => `${directory}/${file} is missing`)];
    });
    return (await Promise.all(all)).flat();
  };

  /** What is in the store is what the images of the journal need. */
  const checkStore = async (what: string): Promise<void> => {
    let found: readonly string[] = [];
    await eventually(`the store is right after ${what}`, async () => {
      found = await differences();
      return found.length === 0;
    }).catch((error: unknown) =>
      assert.fail(`${String(error)}\n${found.join('\n')}\n${node.daemon.log().slice(-1500)}`),
    );
  };

  const pull = () => node.daemon.cri.image.pullImage({ image: { image: name } });
  const load = () => node.daemon.scribe('image', 'load', '--socket', node.daemon.socket, archive);
  const remove = () => node.daemon.cri.image.removeImage({ image: { image: name } });

  for (const [what, counts, work] of [
    ['a pull', [1, 3], pull],
    ['a load', [2], load],
  ] as const) {
    test(`in the middle of ${what} knows nothing that the journal does not`, async () => {
      for (const stage of STAGES) {
        for (const count of counts) {
          await killAt(stage, count, work);
          await node.daemon.start();
          await checkStore(`${what}, ${stage} ${count}`);
          await remove();
          await checkStore(`the removal after ${what}, ${stage} ${count}`);
        }
      }
    });
  }

  test('in the middle of a removal loses the image, or keeps all of it', async () => {
    for (const stage of ['snapshots', 'trash', 'blobs/sha256']) {
      await pull();
      await killAt(stage, 1, remove);
      await node.daemon.start();
      await checkStore(`a removal, ${stage}`);
      const { image } = await node.daemon.cri.image.imageStatus({ image: { image: name } });
      if (image !== undefined) await remove();
    }
    // Everything the kills left aside, an image is pulled and there.
    await pull();
    const { image } = await node.daemon.cri.image.imageStatus({ image: { image: name } });
    assert.deepEqual(image?.repoTags, [name]);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
