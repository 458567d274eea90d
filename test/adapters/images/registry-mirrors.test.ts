/** Redirects and mirrors: who is asked, in which order, with whose credentials, and what is believed of the answers. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { buildImage } from '../../support/images/build.ts';
import { type FaultServer, makeCertificates, sendBlob, startFaultServer } from '../../support/images/fault-server.ts';
import { startStore } from '../../support/images/store.ts';
import { tar } from '../../support/images/tar.ts';
import {
  image,
  layerDigest,
  layerBytes,
  serving,
  forLayer,
  withHosts,
  checkWhole,
} from '../../support/images/registry-under-test.ts';

describe('redirects', { timeout: 60_000 }, () => {
  it('are followed to other servers, without what is for the first alone', async (t) => {
    const [server, storage] = [await serving(t), await startFaultServer(t)];
    const registryConfigDirs = await withHosts(
      t,
      server.host,
      `server = "${server.base}"\n[header]\nx-secret = "for the registry"\nauthorization = "Basic c2VjcmV0"`,
    );
    const store = await startStore(t, { registryConfigDirs });
    server.intercept(
      forLayer((_, response) =>
        Boolean(response.writeHead(307, { location: `${storage.base}/data?signature=s3cret` }).end()),
      ),
    );
    storage.intercept((request, response) => {
      sendBlob(request, response, layerBytes);
      return true;
    });
    await checkWhole(store, server);
    assert.ok(server.requests.every(({ headers }) => headers['x-secret'] === 'for the registry'));
    assert.equal(storage.requests.length, 1);
    assert.equal(storage.requests[0]?.headers.authorization, undefined);
    assert.equal(storage.requests[0]?.headers['x-secret'], undefined);
  });

  it('end, stay encrypted, and are told without their signatures', async (t) => {
    const cases: Record<string, [location: string, pattern: RegExp]> = {
      loop: ['/v2/app/manifests/v1?again', /redirects more than 10 times/],
      plain: [
        'http://registry.example/x?signature=s3cret',
        /redirects to http:\/\/registry\.example\/x, which is not https/,
      ],
      file: ['file:///etc/passwd', /which is not https/],
      nonsense: ['http://:::/', /no address/],
    };
    for (const [what, [location, pattern]] of Object.entries(cases)) {
      const server = await serving(t);
      const store = await startStore(t, { limits: { attemptsMax: 1 } });
      server.intercept((_, response) => Boolean(response.writeHead(302, { location }).end()));
      const failure = await store.failedPull(`${server.host}/app:v1`);
      assert.match(failure.message, pattern, what);
      assert.ok(!failure.message.includes('s3cret'));
    }
  });
});

describe('mirrors', { timeout: 60_000 }, () => {
  it('are asked in their order, and passed over when they fail', async (t) => {
    const [first, second, upstream] = [await startFaultServer(t), await serving(t), await serving(t)];
    first.intercept((_, response) => Boolean(response.writeHead(503).end()));
    const hosts = `server = "${upstream.base}"\n[host."${first.base}"]\n[host."${second.base}/v2/"]\n[host."http://127.0.0.1:1"]\n`;
    const store = await startStore(t, { registryConfigDirs: await withHosts(t, 'registry.example', hosts) });
    const pulled = await store.pull('registry.example/app:v1');
    assert.deepEqual(pulled.repoTags, ['registry.example/app:v1']);
    assert.ok(first.requests.length > 0 && second.requestsFor(layerDigest).length === 1);
    assert.equal(upstream.requests.length, 0);
    assert.ok([...first.requests, ...second.requests].every(({ query }) => query.get('ns') === 'registry.example'));
  });

  it('without resolve give content but say nothing of tags', async (t) => {
    const [mirror, upstream] = [await startFaultServer(t), await serving(t)];
    const stale = buildImage([{ tar: tar([{ path: 'stale' }]) }]);
    mirror.serve('app', 'v1', stale);
    mirror.serve('app', 'v2', image);
    const hosts = `server = "${upstream.base}"\n[host."${mirror.base}"]\ncapabilities = ["pull"]\n`;
    const store = await startStore(t, { registryConfigDirs: await withHosts(t, 'registry.example', hosts) });
    const pulled = await store.pull('registry.example/app:v1');
    assert.equal(pulled.manifestDigest, image.digest);
    assert.equal(mirror.requestsFor('v1').length, 0);
    assert.equal(mirror.requestsFor(layerDigest).length, 1);
    assert.equal(upstream.requestsFor(layerDigest).length, 0);
  });

  it('that send wrong content are passed over for the next', async (t) => {
    const [mirror, upstream] = [await serving(t), await serving(t)];
    mirror.intercept(forLayer((_, response) => Boolean(response.end(Buffer.alloc(layerBytes.length)))));
    const hosts = `server = "${upstream.base}"\n[host."${mirror.base}"]\n`;
    const store = await startStore(t, { registryConfigDirs: await withHosts(t, 'registry.example', hosts) });
    await store.pull('registry.example/app:v1');
    assert.equal(upstream.requestsFor(layerDigest).length, 1);
  });

  it('go on where another was cut off', async (t) => {
    const [mirror, upstream] = [await serving(t), await serving(t)];
    mirror.intercept(
      forLayer((_, response) => {
        response.writeHead(200, { 'content-length': layerBytes.length });
        response.write(layerBytes.subarray(0, 200_000), () => response.destroy());
        return true;
      }),
    );
    const hosts = `server = "${upstream.base}"\n[host."${mirror.base}"]\n`;
    const store = await startStore(t, { registryConfigDirs: await withHosts(t, 'registry.example', hosts) });
    await store.pull('registry.example/app:v1');
    assert.match(upstream.requestsFor(layerDigest)[0]?.headers.range ?? '', /^bytes=[1-9]\d*-$/);
  });

  it('that end early with something else do not spoil what the next one sends', async (t) => {
    const [mirror, upstream] = [await serving(t), await serving(t)];
    mirror.intercept(forLayer((_, response) => Boolean(response.end('<html>an error page</html>'))));
    const hosts = `server = "${upstream.base}"\n[host."${mirror.base}"]\n`;
    const store = await startStore(t, { registryConfigDirs: await withHosts(t, 'registry.example', hosts) });
    await checkWhole(store, upstream, 'registry.example/app:v1');
    assert.deepEqual(
      upstream.requestsFor(layerDigest).map(({ headers }) => headers.range),
      ['bytes=26-', undefined],
    );
    assert.equal(mirror.requestsFor(layerDigest).length, 1);
  });

  it('over TLS are trusted by the authority that is configured for them, and by no less', async (t) => {
    const certificates = await makeCertificates(t);
    const server = await startFaultServer(t, certificates);
    server.serve('app', 'v1', image);
    const dirs = (text: string): Promise<readonly string[]> =>
      withHosts(t, 'registry.example', `server = "${server.base}"\n${text}`);
    const limits = { attemptsMax: 1 };
    for (const text of [`ca = "${certificates.caPath}"`, 'skip_verify = true']) {
      const store = await startStore(t, { registryConfigDirs: await dirs(text), limits });
      await store.pull('registry.example/app:v1');
    }
    const untrusting = await startStore(t, { registryConfigDirs: await dirs(''), limits });
    const failure = await untrusting.failedPull('registry.example/app:v1');
    assert.match(
      failure.message,
      /^RegistryUnavailable: .*self-signed certificate.*as ca to the registry's hosts\.toml/,
    );
    assert.doesNotMatch(failure.message, /Node/);
  });

  it('with another protocol or certificate than configured are asked once, and named with the line to change', async (t) => {
    const certificates = await makeCertificates(t);
    const client = `ca = "${certificates.caPath}"`;
    const [plain, tls, strict] = [
      await serving(t),
      await startFaultServer(t, certificates),
      await startFaultServer(t, certificates, true),
    ];
    strict.serve('app', 'v1', image);
    plain.intercept((_, response) =>
      Boolean(response.writeHead(400).end('Client sent an HTTP request to an HTTPS server.\n')),
    );
    const cases: readonly (readonly [string, RegExp])[] = [
      [`server = "https://${plain.host}"`, /does not speak TLS; .* write http:\/\/ in the registry's hosts\.toml\.$/],
      [`server = "${plain.base}"`, /answered 400 Bad Request: it speaks https, so write https:\/\//],
      [`server = "${tls.base.replace('localhost', '127.0.0.1')}"\n${client}`, /certificate is not valid: .*altnames/],
      [`server = "${strict.base}"\n${client}`, /name it as client in the registry's hosts\.toml\.$/],
    ];
    for (const [text, pattern] of cases) {
      const registryConfigDirs = await withHosts(t, 'registry.example', text);
      // A second try would take longer than the test may.
      const store = await startStore(t, { registryConfigDirs, limits: { attemptsMax: 10, retryDelayMs: 600_000 } });
      assert.match((await store.failedPull('registry.example/app:v1')).message, pattern);
    }
    const pair = `client = [["${certificates.caPath}", "${certificates.keyPath}"]]`;
    const registryConfigDirs = await withHosts(t, 'registry.example', `server = "${strict.base}"\n${client}\n${pair}`);
    await (await startStore(t, { registryConfigDirs })).pull('registry.example/app:v1');
  });

  it('that are configured wrongly are named', async (t) => {
    const store = await startStore(t, { registryConfigDirs: await withHosts(t, 'registry.example', 'server = [') });
    const failure = await store.failedPull('registry.example/app:v1');
    assert.equal(failure.reason, 'HostFailed');
    assert.match(failure.message, /hosts\.toml can't be used/);
  });
});

describe('what a registry is asked', { timeout: 60_000 }, () => {
  const asked = ({ requests }: FaultServer): string[] =>
    requests.splice(0).map(({ method, path }) => `${method} ${path.replace(/.*\/(?=\w+\/[^/]+$)/, '')}`);
  const { digest: manifest } = image;
  const [config = ''] = [...image.blobs.keys()].slice(-1);
  const content = [`GET blobs/${config}`, `GET blobs/${layerDigest}`];

  it('is the manifest at once by its tag, unless an image of that name is here: then its digest alone', async (t) => {
    const server = await serving(t);
    let isHere = false;
    const store = await startStore(t, { isHere: () => isHere });
    const reference = `${server.host}/app:v1`;
    await store.pull(reference);
    assert.deepEqual(asked(server), ['GET manifests/v1', ...content]);
    isHere = true;
    await store.pull(reference);
    assert.deepEqual(asked(server), ['HEAD manifests/v1']);
    const moved = buildImage([{ tar: tar([{ path: 'moved', data: 'x' }]) }]);
    server.serve('app', 'v1', moved);
    await store.pull(reference);
    const blobs = [...moved.blobs.keys()].toReversed().map((digest) => `GET blobs/${digest}`);
    assert.deepEqual(asked(server), ['HEAD manifests/v1', `GET manifests/${moved.digest}`, ...blobs]);
  });

  it('is no manifest where it may only be asked for digests', async (t) => {
    const [names, content] = [await serving(t), await serving(t)];
    const hosts = `[host."${names.base}"]\ncapabilities = ["resolve"]\n[host."${content.base}"]\ncapabilities = ["pull"]\n`;
    const registryConfigDirs = await withHosts(t, 'registry.example', hosts);
    const store = await startStore(t, { registryConfigDirs });
    await store.pull('registry.example/app:v1');
    assert.deepEqual(asked(names), ['HEAD manifests/v1']);
    assert.deepEqual(asked(content).slice(0, 1), [`GET manifests/${manifest}`]);
  });
});
