/**
 * Classes of vulnerabilities that come with a registry, or with an address that an image names. Each test is named after
 * the advisories that its class is known by. Needs root.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { MediaType } from '../../src/adapters/images/documents.ts';
import type { BlobSink } from '../../src/adapters/images/registry/blob.ts';
import { createRegistry } from '../../src/adapters/images/registry/client.ts';
import { findEndpoints } from '../../src/adapters/images/registry/hosts.ts';
import { createHttpClient } from '../../src/adapters/images/registry/http.ts';
import { parseImageReference } from '../../src/domain/image/reference.ts';
import { buildImage, sha256 } from '../support/images/build.ts';
import { type FaultServer, makeCertificates, startFaultServer } from '../support/images/fault-server.ts';
import { failureOf, startStore } from '../support/images/store.ts';
import { tar } from '../support/images/tar.ts';
import { tempDir } from '../support/temp-dir.ts';

const MiB = 1024 * 1024;
const credentials = { username: 'user', password: 'pa55word-of-the-registry' };
const basic = `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
const image = buildImage([{ tar: tar([{ path: 'a' }]) }]);
const layer = image.layers[0]?.digest ?? '';

/** It wants a password, for which there is a header of the node's own as well. */
const startGuarded = async (
  t: TestContext,
): Promise<{ readonly registry: FaultServer; readonly registryConfigDirs: readonly string[] }> => {
  const registry = await startFaultServer(t);
  registry.serve('team/app', 'v1', image);
  const directory = await tempDir(t);
  await mkdir(join(directory, registry.host));
  const hosts = `server = "${registry.base}"\nheader = { x-of-the-node = "secret" }\n`;
  await writeFile(join(directory, registry.host, 'hosts.toml'), hosts);
  return { registry, registryConfigDirs: [directory] };
};

const challenge = { 'www-authenticate': 'Basic realm="give it to me"' };

const isTold = ({ requests }: FaultServer): boolean =>
  requests.some(({ headers }) => headers.authorization === basic && headers['x-of-the-node'] === 'secret');

const wasToldNothing = ({ requests }: FaultServer): void => {
  assert.ok(requests.length > 0);
  for (const { headers } of requests) {
    assert.equal(headers.authorization, undefined);
    assert.equal(headers['x-of-the-node'], undefined);
  }
};

describe('registries', { timeout: 60_000 }, () => {
  it('CVE-2020-15157: credentials and headers of a registry go to no server that it redirects to', async (t) => {
    const storage = await startFaultServer(t);
    storage.serve('team/app', 'v1', image);
    const { registry, registryConfigDirs } = await startGuarded(t);
    registry.intercept(({ path, headers }, response) => {
      if (headers.authorization !== basic) response.writeHead(401, challenge).end();
      else if (path.includes('/blobs/')) response.writeHead(307, { location: `${storage.base}${path}` }).end();
      else return false;
      return true;
    });
    const store = await startStore(t, {
      registryConfigDirs,
      credentials: (token) => (token === 'token-1' ? credentials : null),
    });
    await store.pull(`${registry.host}/team/app:v1`, 'token-1');
    assert.ok(isTold(registry));
    wasToldNothing(storage);
  });

  it('CVE-2020-15157: nor to an address that the image names for its layer, whatever that asks for', async (t) => {
    const certificates = await makeCertificates(t);
    const foreign = await startFaultServer(t, certificates);
    foreign.intercept((_, response) => Boolean(response.writeHead(401, challenge).end()));
    const { registry, registryConfigDirs } = await startGuarded(t);
    registry.intercept(({ headers }, response) => {
      if (headers.authorization !== basic) response.writeHead(401, challenge).end();
      else response.writeHead(404).end();
      return true;
    });
    const reference = parseImageReference(`${registry.host}/team/app:v1`);
    assert.ok(reference.ok);
    const http = createHttpClient({ timeoutMs: 10_000, bytesMin: 0 });
    t.after(() => http.close());
    const { fetchBlob } = createRegistry({
      reference: reference.value,
      endpoints: await findEndpoints(registryConfigDirs, registry.host),
      credentials,
      mirrorCredentials: true,
      // Everything is as it would be, but that its certificate is one of this machine's.
      http: {
        ...http,
        send: (request, signal) =>
          http.send({ ...request, tls: { ...request.tls, ca: [certificates.cert.toString()] } }, signal),
      },
      retry: { attemptsMax: 1, retryDelayMs: 1 },
    });
    const nothingYet = { offset: () => 0, totalBytes: () => 0 };
    const named = { mediaType: MediaType.dockerTar, platform: null, annotations: new Map<string, string>() };
    const descriptor = { ...named, digest: layer, sizeBytes: 7, urls: [`${foreign.base}/layer`] };
    const failure = await failureOf(fetchBlob(descriptor, nothingYet as BlobSink, AbortSignal.timeout(10_000)));
    assert.match(failure.message, /\/layer answered 401/);
    assert.ok(isTold(registry));
    wasToldNothing(foreign);
  });

  it('CVE-2020-15157: nor is a client certificate shown to another server', async (t) => {
    const certificates = await makeCertificates(t);
    const { caPath, keyPath } = certificates;
    const [registry, other] = [
      await startFaultServer(t, certificates, true),
      await startFaultServer(t, certificates, true),
    ];
    registry.serve('team/app', 'v1', image);
    other.serve('team/app', 'v1', image);
    const directory = await tempDir(t);
    await mkdir(join(directory, registry.host));
    const hosts = `server = "${registry.base}"\nca = "${caPath}"\nclient = [["${caPath}", "${keyPath}"]]\n`;
    await writeFile(join(directory, registry.host, 'hosts.toml'), hosts);
    const store = await startStore(t, { registryConfigDirs: [directory], limits: { attemptsMax: 1 } });
    const failedPull = async (): Promise<string> => (await store.failedPull(`${registry.host}/team/app:v1`)).message;
    registry.intercept(({ path }, response) => {
      if (path.includes('/blobs/')) response.writeHead(307, { location: `${other.base}${path}` }).end();
      return path.includes('/blobs/');
    });
    assert.match(await failedPull(), /wants one: name it as client/);
    registry.intercept((_, response) => {
      response.writeHead(401, { 'www-authenticate': `Bearer realm="${other.base}/token"` }).end();
      return true;
    });
    assert.match(await failedPull(), /wants one: name it as client/);
    assert.deepEqual(other.requests, []);
    registry.intercept(() => false);
    await store.pull(`${registry.host}/team/app:v1`);
  });

  it('CVE-2023-25153: of a document or token without end no more is read than its bound', async (t) => {
    const store = await startStore(t, { limits: { attemptsMax: 1 } });
    const registry = await startFaultServer(t);
    registry.serve('team/app', 'v1', image);
    const config = (JSON.parse(image.manifest.toString()) as { readonly config: { readonly digest: string } }).config;
    for (const name of ['v1', config.digest, 'token']) {
      let sentBytes = 0;
      registry.intercept(({ path }, response) => {
        if (name === 'token' && !path.endsWith(name))
          response.writeHead(401, { 'www-authenticate': `Bearer realm="${registry.base}/token"` }).end();
        else if (path.endsWith(name)) {
          const send = (): void => {
            // Far more than a bound, but no more than the test's own memory takes.
            if (sentBytes >= 128 * MiB || response.destroyed) return void response.end();
            sentBytes += MiB;
            response.write(Buffer.alloc(MiB, ' '), () => setImmediate(send));
          };
          send();
        } else return false;
        return true;
      });
      assert.match((await store.failedPull(`${registry.host}/team/app:v1`)).message, /is larger than \d+ bytes/);
      assert.ok(sentBytes < 64 * MiB, `${name}: ${sentBytes}`);
    }
  });

  it('CVE-2023-25153: nor is a large blob that is here read for a document, because an image calls it one', async (t) => {
    const store = await startStore(t, { limits: { attemptsMax: 1 } });
    const registry = await startFaultServer(t);
    const large = buildImage([{ tar: tar([{ path: 'large', data: randomBytes(5 * MiB) }]) }]);
    registry.serve('team/large', 'v1', large);
    await store.pull(`${registry.host}/team/large:v1`);
    const digest = large.layers[0]?.digest ?? '';
    const { config, ...fields } = JSON.parse(large.manifest.toString()) as { readonly config: object };
    const manifest = Buffer.from(JSON.stringify({ ...fields, config: { ...config, digest } }));
    registry.serve('team/app', 'v1', { ...large, manifest, digest: sha256(manifest) });
    const { message } = await store.failedPull(`${registry.host}/team/app:v1`);
    assert.ok(message.includes(`${digest} is larger than`), message);
  });

  it('slow expressions: a name made to be slow to read is read at once', () => {
    for (const text of [
      'a/'.repeat(500_000),
      `${'a-'.repeat(500_000)}!`,
      `${'a.'.repeat(500_000)}/`,
      '@'.repeat(100_000),
    ]) {
      const startedMs = performance.now();
      assert.equal(parseImageReference(text).ok, false);
      assert.ok(performance.now() - startedMs < 10_000);
    }
  });
});
