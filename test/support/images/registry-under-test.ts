/**
 * One image of one layer and a registry that misbehaves on demand: what the tests of failing registries, redirects and
 * mirrors share. Must hold no test itself.
 */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { imageFileReader } from '../../../src/adapters/inspect/image-files.ts';
import { buildImage } from './build.ts';
import { type FaultServer, type Interceptor, startFaultServer } from './fault-server.ts';
import type { TestStore } from './store.ts';
import { tar } from './tar.ts';
import { tempDir } from '../temp-dir.ts';

const content = Buffer.alloc(400_000, 'layer content ');
export const image = buildImage([{ tar: tar([{ path: 'file', data: content }]), compression: 'none' }]);
const [layer] = image.layers;
export const layerDigest = layer?.digest ?? '';
export const layerBytes = image.blobs.get(layerDigest) ?? Buffer.alloc(0);

export const serving = async (t: TestContext): Promise<FaultServer> => {
  const server = await startFaultServer(t);
  server.serve('app', 'v1', image);
  return server;
};

/** Takes over requests for the layer, counted from 0. */
export const forLayer = (
  take: (count: number, response: ServerResponse, request: Parameters<Interceptor>[0]) => boolean,
): Interceptor => {
  let count = 0;
  return (request, response) => {
    if (!request.path.endsWith(layerDigest)) return false;
    count += 1;
    return take(count - 1, response, request);
  };
};

export const withHosts = async (t: TestContext, host: string, text: string): Promise<readonly string[]> => {
  const directory = await tempDir(t);
  await mkdir(join(directory, host), { recursive: true });
  await writeFile(join(directory, host, 'hosts.toml'), text);
  return [directory];
};

export const checkWhole = async (
  store: TestStore,
  server: FaultServer,
  reference = `${server.host}/app:v1`,
): Promise<void> => {
  const pulled = await store.pull(reference);
  assert.deepEqual(
    pulled.layers.map(({ digest }) => digest),
    [layerDigest],
  );
  const file = await imageFileReader(store.adapter.snapshots.layerDirs)(
    pulled.layers.map(({ chainId }) => chainId),
    '/file',
    content.length,
  );
  assert.ok(file?.equals(content));
};
