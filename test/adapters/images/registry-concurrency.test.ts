/**
 * How many layers are asked for at once, of one image, and of one registry whatever the images; and what pulls that want the
 * same layer at once have to do with each other. Needs root.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { type BuiltImage, buildImage, sha256 } from '../../support/images/build.ts';
import { type FaultServer, sendBlob, startFaultServer } from '../../support/images/fault-server.ts';
import { checkWhole, layerBytes, layerDigest, serving } from '../../support/images/registry-under-test.ts';
import { failureOf, startStore } from '../../support/images/store.ts';
import { tar } from '../../support/images/tar.ts';

const LAYERS = 3;

const images: readonly BuiltImage[] = ['a', 'b', 'c'].map((name) =>
  buildImage(Array.from({ length: LAYERS }, (_, layer) => ({ tar: tar([{ path: 'file', data: `${name}${layer}` }]) }))),
);

/** Serves the images, and tells the most layers that were being sent at any moment: each is held for a while. */
const startCounting = async (t: TestContext): Promise<{ server: FaultServer; most: () => number }> => {
  const server = await startFaultServer(t);
  for (const [index, image] of images.entries()) server.serve(`app${index}`, 'v1', image);
  const layers = new Map(
    images.flatMap(({ layers: all, blobs }) => all.map(({ digest }) => [digest, blobs.get(digest)])),
  );
  let underWay = 0;
  let most = 0;
  server.intercept(async (request, response) => {
    const bytes = layers.get(request.path.replace(/^.*\//, ''));
    if (bytes === undefined) return false;
    underWay += 1;
    most = Math.max(most, underWay);
    // Long enough for every other request that may come to come meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 150));
    underWay -= 1;
    sendBlob(request, response, bytes);
    await once(response, 'close');
    return true;
  });
  return { server, most: () => most };
};

describe('downloads at once', { timeout: 60_000 }, () => {
  it('are bounded for one image', async (t) => {
    const { server, most } = await startCounting(t);
    const store = await startStore(t, { maxConcurrentDownloads: 2 });
    await store.pull(`${server.host}/app0:v1`);
    assert.equal(most(), 2);
  });

  it('are bounded for one registry, whatever the images, and not for others', async (t) => {
    const [one, other] = [await startCounting(t), await startCounting(t)];
    const store = await startStore(t, { maxConcurrentDownloads: LAYERS, maxConcurrentDownloadsPerRegistry: 2 });
    const pulled = await Promise.all([
      store.pull(`${one.server.host}/app0:v1`),
      store.pull(`${one.server.host}/app1:v1`),
      store.pull(`${other.server.host}/app2:v1`),
    ]);
    assert.deepEqual([one.most(), other.most()], [2, 2]);
    assert.ok(pulled.every(({ layers }) => layers.length === LAYERS));
  });
});

describe('config and layers', { timeout: 60_000 }, () => {
  const image = buildImage([
    { tar: tar([{ path: 'small', data: 'a' }]) },
    { tar: tar([{ path: 'large', data: randomBytes(100_000) }]) },
    { tar: tar([{ path: 'other', data: 'b' }]) },
  ]);
  const [small, large, other] = image.layers.map(({ digest }) => digest);

  it('are asked for side by side, and the largest layer once the config has come', async (t) => {
    const server = await startFaultServer(t);
    server.serve('app', 'v1', image);
    const asked = new Set<string>();
    const bothAsked = Promise.withResolvers<undefined>();
    let askedBeforeConfig: readonly string[] = [];
    server.intercept(async (request) => {
      const digest = request.path.replace(/^.*\//, '');
      asked.add(digest);
      if (asked.has(small ?? '') && asked.has(other ?? '')) bothAsked.resolve(undefined);
      if (digest !== sha256(image.config)) return false;
      await bothAsked.promise;
      // The largest would be asked for with the others.
      await new Promise((resolve) => setTimeout(resolve, 100));
      askedBeforeConfig = [...asked];
      return false;
    });
    const pulled = await (await startStore(t)).pull(`${server.host}/app:v1`);
    assert.equal(pulled.layers.length, LAYERS);
    assert.ok(!askedBeforeConfig.includes(large ?? ''));
    assert.ok(askedBeforeConfig.includes(small ?? '') && askedBeforeConfig.includes(other ?? ''));
  });

  it('end together where the config is refused, and nothing waits for layers that do not come', async (t) => {
    const server = await startFaultServer(t);
    server.serve('app', 'v1', image);
    server.serve('empty', 'v1', buildImage([]));
    const hanging = Promise.withResolvers<boolean>();
    t.after(() => hanging.resolve(true));
    server.intercept((request, response) => {
      const digest = request.path.replace(/^.*\//, '');
      if (digest === small || digest === other) return hanging.promise;
      if (!request.path.includes('/blobs/')) return Promise.resolve(false);
      response.writeHead(404).end();
      return Promise.resolve(true);
    });
    const store = await startStore(t);
    for (const name of ['app', 'empty'])
      assert.equal((await failureOf(store.pull(`${server.host}/${name}:v1`))).reason, 'ImageUnknownToRegistry');
  });
});

describe('a layer that two registries are asked for at once', { timeout: 60_000 }, () => {
  it('is fetched from the other one when the first gives it wrongly', async (t) => {
    const [wrong, right] = [await serving(t), await serving(t)];
    const store = await startStore(t);
    const mine = `${right.host}/app:v1`;
    const begun = Promise.withResolvers<undefined>();
    const bothWait = Promise.withResolvers<undefined>();
    store.adapter.progress.subscribe(({ reference }) => reference === mine && bothWait.resolve(undefined));
    wrong.intercept(async (request, response) => {
      if (!request.path.endsWith(layerDigest)) return false;
      response.writeHead(200, { 'content-length': layerBytes.length });
      // Progress is told to all who wait for the layer.
      let left = layerBytes.length - 1000;
      const timer = setInterval(() => {
        left -= 1;
        response.write('x');
      }, 20);
      begun.resolve(undefined);
      await bothWait.promise;
      clearInterval(timer);
      response.end(Buffer.alloc(left + 1000));
      return true;
    });
    const refused = store.failedPull(`${wrong.host}/app:v1`);
    await begun.promise;
    await checkWhole(store, right);
    assert.match((await refused).message, new RegExp(`${wrong.host}.* sent wrong content`));
    assert.equal(right.requestsFor(layerDigest).length, 1);
  });
});
