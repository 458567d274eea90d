/** Layers that are unpacked while they are downloaded. Needs root. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { basename } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { imageLayout } from '../../../src/adapters/images/layout.ts';
import { buildImage } from '../../support/images/build.ts';
import { type FaultServer, sendBlob, startFaultServer } from '../../support/images/fault-server.ts';
import { startStore, type TestStore } from '../../support/images/store.ts';
import { tar } from '../../support/images/tar.ts';
import { eventually } from '../../support/pods.ts';

const MIB = 1024 * 1024;
/** Incompressible, so that what is half downloaded unpacks to about half. */
const noise = (seed: number): Buffer => {
  const bytes = Buffer.alloc(MIB);
  let state = seed + 1;
  for (let at = 0; at < MIB; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes.writeUInt32BE(state, at);
  }
  return bytes;
};
const FILES = 6;
const plain = tar(Array.from({ length: FILES }, (_, file) => ({ path: `f${file}`, data: noise(file) })));
const image = buildImage([{ tar: plain, compression: 'gzip' }]);
const digest = image.layers[0]?.digest ?? '';
const bytes = image.blobs.get(digest) ?? Buffer.alloc(0);

/** The server sends the first bytes of the layer, and what is to come when the test says so. */
const begin = async (t: TestContext, first: Buffer) => {
  const server = await startFaultServer(t);
  server.serve('app', 'v1', image);
  const begun = Promise.withResolvers<ServerResponse>();
  let isFirst = true;
  server.intercept(({ path }, response) => {
    if (!path.endsWith(digest) || !isFirst) return false;
    isFirst = false;
    response.writeHead(200, { 'content-length': bytes.length });
    response.write(first);
    begun.resolve(response);
    return true;
  });
  const store = await startStore(t);
  const pulling = store.pull(`${server.host}/app:v1`);
  pulling.catch(() => undefined);
  return { server, store, pulling, response: await begun.promise };
};

const unpackedSoFar = async ({ root }: TestStore): Promise<readonly string[]> => {
  const { unpack } = imageLayout(root);
  const paths = await readdir(unpack, { recursive: true }).catch(() => []);
  return paths.map((path) => basename(path)).filter((name) => /^f\d+$/.test(name));
};

const whenUnpacking = (store: TestStore): Promise<true> =>
  eventually('files of the layer are there', async () => (await unpackedSoFar(store)).includes('f1'));

const checkDone = async (store: TestStore, pulling: Promise<{ layers: readonly unknown[] }>): Promise<void> => {
  assert.equal((await pulling).layers.length, 1);
  const { blobs, chainIds } = await store.adapter.listContent();
  assert.ok(blobs.includes(digest));
  assert.equal(chainIds.length, 1);
  const { ingest, unpack } = imageLayout(store.root);
  for (const directory of [ingest, unpack]) assert.deepEqual(await readdir(directory), []);
};

describe('a layer that is downloaded', { timeout: 60_000 }, () => {
  it('is unpacked meanwhile, by one process, and is in place only when all of it was verified', async (t) => {
    const { store, pulling, response } = await begin(t, bytes.subarray(0, 4 * MIB));
    await whenUnpacking(store);
    assert.deepEqual((await store.adapter.listContent()).chainIds, []);
    response.end(bytes.subarray(4 * MIB));
    await checkDone(store, pulling);
    assert.equal(store.runs.length, 1);
  });

  it('is unpacked anew when the download has to begin anew', async (t) => {
    const { server, store, pulling, response } = await begin(t, bytes.subarray(0, 4 * MIB));
    await whenUnpacking(store);
    server.intercept((request, answer) => {
      if (!request.path.endsWith(digest)) return false;
      if (request.headers.range === undefined) sendBlob(request, answer, bytes);
      else answer.writeHead(416).end();
      return true;
    });
    response.destroy();
    await checkDone(store, pulling);
    assert.equal(store.runs.length, 2);
  });

  it('leaves nothing when what was unpacked is right and the blob is not', async (t) => {
    // What follows a whole gzip member is no part of what it holds, but of what the blob's digest says.
    const wrong = Buffer.from(bytes);
    wrong.writeUInt8(wrong.readUInt8(9) ^ 0xff, 9);
    const { server, store, pulling, response } = await begin(t, wrong.subarray(0, 4 * MIB));
    await whenUnpacking(store);
    server.intercept(({ path }, answer) => path.endsWith(digest) && Boolean(answer.writeHead(404).end()));
    response.end(wrong.subarray(4 * MIB));
    await assert.rejects(pulling, /wrong content/);
    const { blobs, chainIds } = await store.adapter.listContent();
    assert.ok(!blobs.includes(digest) && chainIds.length === 0);
    assert.deepEqual(await unpackedSoFar(store), []);
  });

  it('is given up by its last pull: the process that unpacks it ends, and nothing of it stays', async (t) => {
    const server: FaultServer = await startFaultServer(t);
    server.serve('app', 'v1', image);
    server.intercept(({ path }, response) => {
      if (!path.endsWith(digest)) return false;
      response.writeHead(200, { 'content-length': bytes.length });
      response.write(bytes.subarray(0, 4 * MIB));
      return true;
    });
    const store = await startStore(t);
    const abort = new AbortController();
    const pulling = store.pull(`${server.host}/app:v1`, undefined, abort.signal);
    pulling.catch(() => undefined);
    await whenUnpacking(store);
    abort.abort(new Error('enough'));
    await assert.rejects(pulling);
    assert.deepEqual(await unpackedSoFar(store), []);
    assert.deepEqual(await readdir(imageLayout(store.root).ingest), [`${digest.slice(7)}.partial`]);
  });
});
