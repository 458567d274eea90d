/**
 * Classes of vulnerabilities that come with a registry, or with an address that an image names. Each test is named after
 * the advisories that its class is known by. Needs root.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseImageReference } from '../../src/domain/image/reference.ts';
import { buildImage } from '../support/images/build.ts';
import { startFaultServer } from '../support/images/fault-server.ts';
import { startStore } from '../support/images/store.ts';
import { tar } from '../support/images/tar.ts';

const credentials = { username: 'user', password: 'pa55word-of-the-registry' };

describe('registries', { timeout: 60_000 }, () => {
  it('CVE-2020-15157: credentials go to the registry that they are for, and to no address that an image names', async (t) => {
    const [foreign, registry] = [await startFaultServer(t), await startFaultServer(t)];
    foreign.intercept((_, response) => {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="give it to me"' }).end();
      return true;
    });
    const image = buildImage([{ tar: tar([{ path: 'foreign' }]) }], {
      layerExtra: { urls: [`${foreign.base}/layer`, `${foreign.base.replace('http:', 'https:')}/layer`] },
    });
    registry.serve('team/app', 'v1', image);
    const digest = image.layers[0]?.digest ?? '';
    registry.intercept(({ path }, response) => path.endsWith(digest) && Boolean(response.writeHead(404).end()));
    const store = await startStore(t, {
      credentials: (token) => (token === 'token-1' ? credentials : null),
      limits: { attemptsMax: 1 },
    });
    await store.failedPull(`${registry.host}/team/app:v1`, 'token-1');
    assert.ok(registry.requests.length > 0);
    assert.ok(foreign.requests.every(({ headers }) => headers.authorization === undefined));
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
