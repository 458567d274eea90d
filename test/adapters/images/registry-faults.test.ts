/** Pulls from registries that fail: slowly, halfway, wrongly, or with malice. Needs root. */
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { buildIndex, sha256 } from '../../support/images/build.ts';
import { type Interceptor, startFaultServer } from '../../support/images/fault-server.ts';
import { startStore } from '../../support/images/store.ts';
import {
  image,
  layerDigest,
  layerBytes,
  serving,
  forLayer,
  checkWhole,
  withHosts,
} from '../../support/images/registry-under-test.ts';

describe('registries that fail for a while', { timeout: 60_000 }, () => {
  it('are asked again after 5xx and 429, as late as they say', async (t) => {
    const server = await serving(t);
    const store = await startStore(t);
    const answers = [500, 503, 429];
    const startedMs = performance.now();
    server.intercept(({ path }, response) => {
      const status = path.includes('manifests') ? answers.pop() : undefined;
      if (status === undefined) return false;
      response.writeHead(status, status === 429 ? { 'retry-after': '1' } : {}).end();
      return true;
    });
    await checkWhole(store, server);
    assert.ok(performance.now() - startedMs >= 1000);
    assert.equal(answers.length, 0);
  });

  it('are given up after a bounded number of attempts', async (t) => {
    const server = await serving(t);
    const store = await startStore(t, { limits: { attemptsMax: 3 } });
    server.intercept((_, response) => {
      response.writeHead(502).end();
      return true;
    });
    const failure = await store.failedPull(`${server.host}/app:v1`);
    assert.equal(failure.reason, 'RegistryFailed');
    assert.match(failure.message, /^RegistryUnavailable: .* answered 502/);
    assert.equal(server.requests.length, 3);
    server.intercept((_, response) => {
      response.writeHead(429, { 'retry-after': '3600' }).end();
      return true;
    });
    const startedMs = performance.now();
    const { message } = await store.failedPull(`${server.host}/app:v1`);
    assert.match(message, /answered 429 Too Many Requests, and asks to be left alone for 3600 s/);
    assert.ok(performance.now() - startedMs < 5000, 'nobody waits an hour');
  });

  it('are told with the reference as it is written, that of a digest, too', async (t) => {
    const server = await serving(t);
    const store = await startStore(t);
    for (const reference of [`${server.host}/none:v1`, `${server.host}/app@sha256:${'0'.repeat(64)}`]) {
      const { message } = await store.failedPull(reference);
      assert.ok(message.startsWith(`Could not get ${reference}: http`), message);
    }
  });

  it('go on where they were cut off, however often', async (t) => {
    const server = await serving(t);
    const store = await startStore(t, { limits: { attemptsMax: 2 } });
    const ranges: (string | undefined)[] = [];
    server.intercept(
      forLayer((count, response, request) => {
        ranges.push(request.headers.range);
        if (count >= 6) return false;
        const from = Number(/\d+/.exec(request.headers.range ?? '0')?.[0]);
        const headers = {
          'content-length': layerBytes.length - from,
          'content-range': `bytes ${from}-/${layerBytes.length}`,
        };
        response.writeHead(from === 0 ? 200 : 206, headers);
        response.write(layerBytes.subarray(from, from + 50_000), () => response.destroy());
        return true;
      }),
    );
    await checkWhole(store, server);
    assert.equal(ranges[0], undefined);
    const offsets = ranges.slice(1).map((range) => Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1]));
    assert.deepEqual(
      offsets,
      offsets.toSorted((a, b) => a - b),
    );
    assert.ok((offsets.at(-1) ?? 0) >= 250_000, `the last began at ${offsets.at(-1)}`);
  });

  it('begin anew when they know no ranges, or lie about them', async (t) => {
    for (const second of [
      (response: ServerResponse) => response.writeHead(200).end(layerBytes),
      (response: ServerResponse) => response.writeHead(416).end(),
      (response: ServerResponse) => response.writeHead(400).end(),
      (response: ServerResponse) =>
        response
          .writeHead(206, { 'content-range': `bytes 0-${layerBytes.length - 1}/${layerBytes.length}` })
          .end(layerBytes),
      (response: ServerResponse) => response.writeHead(206).end(layerBytes.subarray(100_000)),
    ]) {
      const server = await serving(t);
      const store = await startStore(t);
      server.intercept(
        forLayer((count, response) => {
          if (count === 0) {
            response.writeHead(200, { 'content-length': layerBytes.length });
            response.write(layerBytes.subarray(0, 100_000), () => response.destroy());
          } else if (count === 1) second(response);
          return count < 2;
        }),
      );
      await checkWhole(store, server);
    }
  });

  it('are believed nothing about what an earlier attempt left', async (t) => {
    const server = await serving(t);
    const store = await startStore(t);
    const ingest = join(store.root, 'images/ingest');
    await mkdir(ingest, { recursive: true });
    await writeFile(join(ingest, `${layerDigest.slice(7)}.partial`), Buffer.alloc(100_000, 'other bytes'));
    await checkWhole(store, server);
    assert.deepEqual(
      server.requestsFor(layerDigest).map(({ headers }) => headers.range),
      ['bytes=100000-', undefined],
    );
    assert.deepEqual(await readdir(ingest), []);
  });

  it('are given up when no byte comes, at every point of an exchange', async (t) => {
    const stalls: Record<string, Interceptor> = {
      'before the answer': () => true,
      'in hints before the answer': (_, response) => {
        const timer = setInterval(() => response.writeEarlyHints({ link: '</v2/>; rel=preload' }), 50);
        response.once('close', () => clearInterval(timer));
        return true;
      },
      'in the headers of the answer': (_, response) => {
        response.socket?.write('HTTP/1.1 200 OK\r\n');
        const timer = setInterval(() => response.socket?.write('x-more: to come\r\n'), 50);
        response.once('close', () => clearInterval(timer));
        return true;
      },
      'in a body': forLayer((_, response) => {
        response.writeHead(200, { 'content-length': layerBytes.length });
        response.write(layerBytes.subarray(0, 1000));
        return true;
      }),
      'in a manifest': ({ method, path }, response) => {
        if (method !== 'GET' || !path.includes('manifests')) return false;
        response.writeHead(200, { 'content-length': 1000 }).write('{');
        return true;
      },
    };
    for (const [where, interceptor] of Object.entries(stalls)) {
      const server = await serving(t);
      const store = await startStore(t, { progress: { timeoutMs: 300, bytesMin: 1 } });
      server.intercept(interceptor);
      const failure = await store.failedPull(`${server.host}/app:v1`);
      assert.equal(failure.reason, 'RegistryFailed', where);
      const what = where.includes('answer') ? 'gave no answer within' : 'sent nothing for';
      assert.match(
        failure.message,
        new RegExp(`/v2/app/.* ${what} 300 ms, as long as images\\.pull_progress_timeout`),
        where,
      );
    }
  });

  it('are given up while too little comes, and another server goes on', async (t) => {
    const progress = { timeoutMs: 300, bytesMin: 1000 };
    const [mirror, server] = [await serving(t), await serving(t)];
    mirror.intercept(
      forLayer((_, response) => {
        response.writeHead(200, { 'content-length': layerBytes.length });
        let at = 0;
        const timer = setInterval(() => response.write(layerBytes.subarray(at, ++at)), 50);
        response.once('close', () => clearInterval(timer));
        return true;
      }),
    );
    const failure = await (await startStore(t, { progress })).failedPull(`${mirror.host}/app:v1`);
    assert.equal(failure.reason, 'RegistryFailed');
    assert.match(failure.message, /sent less than 1000 bytes in 300 ms, as images\.pull_progress_min and images\./);
    const hosts = `server = "${server.base}"\n[host."${mirror.base}"]\n`;
    const registryConfigDirs = await withHosts(t, 'registry.example', hosts);
    await checkWhole(await startStore(t, { progress, registryConfigDirs }), server, 'registry.example/app:v1');
    assert.equal(mirror.requests.filter(({ path }) => path.endsWith(layerDigest)).length, 2);
  });

  it('are never given up when the time is without bound', async (t) => {
    const server = await serving(t);
    await checkWhole(await startStore(t, { progress: { timeoutMs: Number.POSITIVE_INFINITY, bytesMin: 1 } }), server);
  });

  it('are not given up while bytes come slowly', async (t) => {
    const server = await serving(t);
    const store = await startStore(t, { progress: { timeoutMs: 400, bytesMin: 150_000 } });
    server.intercept(
      forLayer((_, response) => {
        response.writeHead(200, { 'content-length': layerBytes.length });
        const pieces = [0, 1, 2, 3, 4].map((index) => layerBytes.subarray(index * 100_000, (index + 1) * 100_000));
        const timer = setInterval(() => {
          response.write(pieces.shift() ?? '');
          if (pieces.length === 0) {
            clearInterval(timer);
            response.end();
          }
        }, 150);
        return true;
      }),
    );
    await checkWhole(store, server);
  });
});

describe('registries that are wrong', { timeout: 60_000 }, () => {
  const wrongly = async (t: TestContext, interceptor: Interceptor, pattern: RegExp, isHere = false): Promise<void> => {
    const server = await serving(t);
    const store = await startStore(t, { limits: { attemptsMax: 2 }, isHere: () => isHere });
    server.intercept(interceptor);
    const failure = await store.failedPull(`${server.host}/app:v1`);
    assert.match(failure.message, pattern);
    assert.ok(['ImageInvalid', 'RegistryFailed'].includes(failure.reason), failure.reason);
    const { blobs, chainIds } = await store.adapter.listContent();
    assert.ok(!blobs.includes(layerDigest) && chainIds.length === 0);
  };

  it('about a layer', async (t) => {
    const other = Buffer.alloc(layerBytes.length, 'x');
    await wrongly(
      t,
      forLayer((_, response) => Boolean(response.end(other))),
      /sent wrong content: the digest of/,
    );
    const more = Buffer.concat([layerBytes, Buffer.from('more')]);
    await wrongly(
      t,
      forLayer((_, response) => Boolean(response.end(more))),
      /sent more than the/,
    );
    const less = layerBytes.subarray(0, 1000);
    await wrongly(
      t,
      forLayer((_, response, request) => {
        if (request.headers.range === undefined) response.end(less);
        else response.writeHead(206, { 'content-range': 'bytes 1000-' }).end();
        return true;
      }),
      /ended after 1000 of/,
    );
    await wrongly(
      t,
      forLayer((_, response) => Boolean(response.writeHead(206, { 'content-range': 'bytes 5-9/10' }).end('x'))),
      /.+/,
    );
  });

  it('about a manifest', async (t) => {
    const forManifest =
      (body: Buffer | string, headers: Record<string, string> = {}): Interceptor =>
      (request, response) => {
        if (!request.path.includes('manifests') || request.method === 'HEAD') return false;
        response.writeHead(200, { 'content-type': image.manifestType, ...headers }).end(body);
        return true;
      };
    const page: Interceptor = ({ path }, response) =>
      path.includes('manifests') &&
      Boolean(response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>sign in</html>'));
    await wrongly(t, page, /its manifest is not JSON but said to be "text\/html"/);
    await wrongly(t, forManifest('{}'), /not clearly an index or a manifest/);
    // Its digest is known from HEAD.
    await wrongly(t, forManifest('{}'), /sent content with digest/, true);
    await wrongly(t, forManifest(Buffer.alloc(5 * 1024 * 1024, ' ')), /larger than 4194304 bytes/);
  });

  it('about the config, which says what is run', async (t) => {
    const asked = `/blobs/${sha256(image.config)}`;
    const said = JSON.parse(image.config.toString()) as object;
    const other = JSON.stringify({ ...said, config: { Entrypoint: ['/of/somebody/else'] } });
    const lie: Interceptor = ({ path }, response) => path.endsWith(asked) && Boolean(response.end(other));
    await wrongly(t, lie, /Could not get config .* sent content with digest/);
  });

  it('about the size of the config, as containerd refuses it, but for one that is not said', async (t) => {
    const server = await serving(t);
    const saying = (size: number): Buffer => {
      const manifest = JSON.parse(image.manifest.toString()) as { config: object };
      return Buffer.from(JSON.stringify({ ...manifest, config: { ...manifest.config, size } }));
    };
    const store = await startStore(t);
    for (const size of [0, 1]) {
      const manifest = saying(size);
      server.serve('app', `of-${size}`, { ...image, manifest, digest: sha256(manifest) });
    }
    await checkWhole(store, server, `${server.host}/app:of-0`);
    const { reason, message } = await store.failedPull(`${server.host}/app:of-1`);
    assert.equal(reason, 'ImageInvalid');
    assert.match(message, new RegExp(`its config has ${image.config.length} bytes and its manifest says 1`));
  });

  it('about the size of a manifest, in an index', async (t) => {
    const index = buildIndex([{ image }]);
    const server = await serving(t);
    const saying = (size: number): { readonly manifest: Buffer; readonly digest: string } => {
      const { manifests } = JSON.parse(index.manifest.toString()) as { manifests: object[] };
      const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [{ ...manifests[0], size }] }));
      return { manifest, digest: sha256(manifest) };
    };
    const store = await startStore(t);
    server.serve('app', 'whole', image);
    for (const size of [0, 1]) server.serve('app', `of-${size}`, { ...index, ...saying(size) });
    await checkWhole(store, server, `${server.host}/app:of-0`);
    const { reason, message } = await store.failedPull(`${server.host}/app:of-1`);
    assert.equal(reason, 'ImageInvalid');
    assert.match(message, new RegExp(`its manifest has ${image.manifest.length} bytes and its index says 1`));
  });

  it('about where to go, again and again', async (t) => {
    let redirects = 0;
    const again: Interceptor = ({ path }, response) => {
      redirects += 1;
      // A server that is followed without end is let go, so that the test ends.
      if (redirects > 1000) return false;
      response.writeHead(307, { location: path }).end();
      return true;
    };
    await wrongly(t, again, /redirects more than 10 times/);
  });

  it('about the digest of a tag', async (t) => {
    const noHead: Interceptor = ({ method }, response) => {
      if (method !== 'HEAD') return false;
      response.writeHead(405).end();
      return true;
    };
    const noDigest: Interceptor = ({ method }, response) => {
      if (method !== 'HEAD') return false;
      response.writeHead(200, { 'docker-content-digest': '../../etc/passwd' }).end();
      return true;
    };
    for (const interceptor of [noHead, noDigest]) {
      const server = await serving(t);
      server.intercept(interceptor);
      await checkWhole(await startStore(t, { isHere: () => true }), server);
    }
  });

  it('about the digest of a manifest that was asked for by its tag', async (t) => {
    const other: Interceptor = ({ method, path }, response) => {
      if (!path.includes('manifests') || method === 'HEAD') return false;
      const headers = { 'content-type': image.manifestType, 'docker-content-digest': sha256(Buffer.from('other')) };
      response.writeHead(200, headers).end(image.manifest);
      return true;
    };
    await wrongly(t, other, /sent content with digest/);
  });

  it('in documents of two meanings, or larger than is sane', async (t) => {
    const store = await startStore(t);
    const server = await startFaultServer(t);
    const serveManifest = (tag: string, manifest: Buffer, manifestType = image.manifestType): void =>
      server.serve('app', tag, { ...image, manifest, manifestType, digest: sha256(manifest) });
    const both = { ...(JSON.parse(image.manifest.toString()) as object), manifests: [] };
    serveManifest('both', Buffer.from(JSON.stringify(both)));
    serveManifest(
      'schema1',
      Buffer.from('{"schemaVersion":1,"fsLayers":[]}'),
      'application/vnd.docker.distribution.manifest.v1+prettyjws',
    );
    assert.match((await store.failedPull(`${server.host}/app:both`)).message, /not clearly an index or a manifest/);
    assert.match((await store.failedPull(`${server.host}/app:schema1`)).message, /schema 1/);
    const indexType = 'application/vnd.oci.image.index.v1+json';
    let index = Buffer.from(image.manifest);
    for (let depth = 0; depth < 6; depth += 1) {
      const entry = {
        mediaType: depth === 0 ? image.manifestType : indexType,
        digest: sha256(index),
        size: index.length,
      };
      serveManifest(`depth-${depth}`, index, depth === 0 ? image.manifestType : indexType);
      index = Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [entry] }));
    }
    serveManifest('deep', index, indexType);
    assert.match((await store.failedPull(`${server.host}/app:deep`)).message, /indexes lead to indexes/);
  });
});
