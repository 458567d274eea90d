/** A real registry filled by plain HTTP, as a client would: so that what it answers with is what it was given. */
import type { Owner } from '../cleanup.ts';
import { startRegistry } from '../registry.ts';
import type { BuiltImage } from './build.ts';

export interface TestRegistry {
  /** 127.0.0.1:port. */
  readonly host: string;
  readonly push: (repository: string, tag: string, image: BuiltImage) => Promise<void>;
  readonly putManifest: (repository: string, name: string, bytes: Buffer, mediaType: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

const check = async (response: Response, status: number): Promise<Response> => {
  if (response.status === status) return response;
  throw new Error(`${response.url} answered ${response.status}: ${await response.text()}`);
};

export const startFilledRegistry = async (owner: Owner): Promise<TestRegistry> => {
  const { host, stop } = await startRegistry(owner);
  const base = `http://${host}/v2`;

  const putBlob = async (repository: string, digest: string, bytes: Buffer): Promise<void> => {
    const begun = await check(await fetch(`${base}/${repository}/blobs/uploads/`, { method: 'POST' }), 202);
    const location = new URL(begun.headers.get('location') ?? '', begun.url);
    location.searchParams.set('digest', digest);
    await check(await fetch(location, { method: 'PUT', body: new Uint8Array(bytes) }), 201);
  };

  const putManifest: TestRegistry['putManifest'] = async (repository, name, bytes, mediaType) => {
    const headers = { 'content-type': mediaType };
    const body = new Uint8Array(bytes);
    await check(await fetch(`${base}/${repository}/manifests/${name}`, { method: 'PUT', headers, body }), 201);
  };

  return {
    host,
    stop,
    putManifest,
    push: async (repository, tag, image) => {
      for (const [digest, bytes] of image.blobs) await putBlob(repository, digest, bytes);
      await putManifest(repository, tag, image.manifest, image.manifestType);
    },
  };
};
