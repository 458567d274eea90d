/** Credentials on their way: to whom they are due, in the form that is asked for, and to nobody else. Needs root. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { ImagesAdapterOptions } from '../../../src/adapters/images/adapter.ts';
import type { RegistryCredentials } from '../../../src/adapters/images/types.ts';
import { buildImage } from '../../support/images/build.ts';
import { type FaultServer, type SeenRequest, startFaultServer } from '../../support/images/fault-server.ts';
import { startStore, type TestStore } from '../../support/images/store.ts';
import { tar } from '../../support/images/tar.ts';
import { run } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const image = buildImage([{ tar: tar([{ path: 'file', data: 'x' }]) }]);
const secret = 'pa55word-of-the-registry';
const password = { username: 'user', password: secret };
const basic = `Basic ${Buffer.from(`user:${secret}`).toString('base64')}`;

const storeWith = (
  t: TestContext,
  credentials: RegistryCredentials,
  registryConfigDirs: readonly string[] = [],
  more: Partial<ImagesAdapterOptions> = {},
): Promise<TestStore> =>
  startStore(t, {
    ...more,
    credentials: (token) => (token === 'token-1' ? credentials : null),
    registryConfigDirs,
    limits: { attemptsMax: 2 },
  });

/** Lets in whoever has the authorization, and challenges all others. */
const guard = (server: FaultServer, challenge: string, isLetIn: (request: SeenRequest) => boolean): void =>
  server.intercept((request, response) => {
    if (isLetIn(request)) return false;
    response.writeHead(401, { 'www-authenticate': challenge }).end('{"errors":[{"code":"UNAUTHORIZED"}]}');
    return true;
  });

const startTokenServer = async (t: TestContext, token = 'tok3n'): Promise<FaultServer> => {
  const server = await startFaultServer(t);
  server.intercept((_, response) => Boolean(response.end(JSON.stringify({ access_token: token, expires_in: 60 }))));
  return server;
};

const guardedByTokens = async (
  t: TestContext,
): Promise<{ registry: FaultServer; tokens: FaultServer; reference: string }> => {
  const [registry, tokens] = [await startFaultServer(t), await startTokenServer(t)];
  registry.serve('team/app', 'v1', image);
  const challenge = `Bearer realm="${tokens.base}/token",service="registry.example",scope="repository:team/app:pull"`;
  guard(registry, challenge, ({ headers }) => headers.authorization === 'Bearer tok3n');
  return { registry, tokens, reference: `${registry.host}/team/app:v1` };
};

describe('registry authentication', { timeout: 180_000 }, () => {
  it('gets a token for nobody in particular', async (t) => {
    const { registry, tokens, reference } = await guardedByTokens(t);
    const store = await startStore(t);
    await store.pull(reference);
    const [request] = tokens.requests;
    assert.equal(tokens.requests.length, 1, 'one token serves the whole pull');
    assert.deepEqual([request?.method, request?.path], ['GET', '/token']);
    assert.deepEqual(
      [request?.query.get('service'), request?.query.get('scope')],
      ['registry.example', 'repository:team/app:pull'],
    );
    assert.equal(request?.headers.authorization, undefined);
    assert.ok(registry.requests.slice(1).every(({ headers }) => headers.authorization === 'Bearer tok3n'));
  });

  it('shows a password to the token server, and to the registry only the token', async (t) => {
    for (const credentials of [password, { auth: Buffer.from(`user:${secret}`).toString('base64') }]) {
      const { registry, tokens, reference } = await guardedByTokens(t);
      await (await storeWith(t, credentials)).pull(reference, 'token-1');
      assert.equal(tokens.requests[0]?.headers.authorization, basic);
      assert.ok(registry.requests.every(({ headers }) => headers.authorization !== basic));
    }
  });

  it('is given up when the token server does not answer, which is named', async (t) => {
    const { tokens, reference } = await guardedByTokens(t);
    tokens.intercept(() => true);
    const store = await startStore(t, { progress: { timeoutMs: 300, bytesMin: 0 } });
    const { reason, message } = await store.failedPull(reference);
    assert.equal(reason, 'RegistryFailed');
    assert.ok(message.includes(`${tokens.base}/token gave no answer within 300 ms`), message);
  });

  it('exchanges an identity token by POST', async (t) => {
    const { tokens, reference } = await guardedByTokens(t);
    await (await storeWith(t, { identityToken: secret })).pull(reference, 'token-1');
    const [request] = tokens.requests;
    const form = new URLSearchParams(request?.body);
    assert.equal(request?.method, 'POST');
    assert.deepEqual(
      ['grant_type', 'service', 'scope', 'refresh_token'].map((name) => form.get(name)),
      ['refresh_token', 'registry.example', 'repository:team/app:pull', secret],
    );
  });

  it('sends a registry token and a password to the registry itself when that asks so', async (t) => {
    for (const [credentials, expected] of [
      [{ registryToken: 'r3g' }, 'Bearer r3g'],
      [password, basic],
    ] as const) {
      const registry = await startFaultServer(t);
      registry.serve('team/app', 'v1', image);
      guard(registry, 'Basic realm="registry"', ({ headers }) => headers.authorization === expected);
      await (await storeWith(t, credentials)).pull(`${registry.host}/team/app:v1`, 'token-1');
    }
  });

  it('gets a new token when one runs out', async (t) => {
    const [registry, tokens] = [await startFaultServer(t), await startFaultServer(t)];
    registry.serve('team/app', 'v1', image);
    let given = 0;
    tokens.intercept((_, response) => {
      given += 1;
      response.end(JSON.stringify({ token: `t${given}` }));
      return true;
    });
    // Each token is good for two requests.
    const uses = new Map<string, number>();
    guard(registry, `Bearer realm="${tokens.base}/"`, ({ headers: { authorization = '' } }) => {
      uses.set(authorization, (uses.get(authorization) ?? 0) + 1);
      return authorization === `Bearer t${given}` && (uses.get(authorization) ?? 0) <= 2;
    });
    await (await startStore(t)).pull(`${registry.host}/team/app:v1`);
    assert.ok(given >= 2);
  });

  it('asks a token server again as late as that says, and not at all when that is long', async (t) => {
    const { tokens, reference } = await guardedByTokens(t);
    const store = await startStore(t);
    const waits = ['1'];
    tokens.intercept((_, response) => {
      const wait = waits.pop();
      if (wait === undefined) response.end('{"token":"tok3n"}');
      else response.writeHead(429, { 'retry-after': wait }).end();
      return true;
    });
    const startedMs = performance.now();
    await store.pull(reference);
    assert.ok(performance.now() - startedMs >= 1000);
    assert.equal(tokens.requests.length, 2);
    const other = await guardedByTokens(t);
    other.tokens.intercept((_, response) => Boolean(response.writeHead(429, { 'retry-after': '3600' }).end()));
    const { message } = await store.failedPull(other.reference);
    assert.match(message, /token server .* answered 429 .* asks to be left alone for 3600 s/);
    assert.equal(other.tokens.requests.length, 1);
  });

  it('says PermissionDenied, without the secret', async (t) => {
    const registry = await startFaultServer(t);
    registry.serve('team/app', 'v1', image);
    const reference = `${registry.host}/team/app:v1`;
    guard(registry, 'Basic realm="registry"', () => false);
    const store = await storeWith(t, password);
    const wrong = await store.failedPull(reference, 'token-1');
    assert.equal(wrong.reason, 'RegistryDenied');
    assert.match(wrong.message, /does not accept the credentials|answered 401/);
    assert.ok(!wrong.message.includes(secret));
    const none = await store.failedPull(reference);
    assert.equal(none.reason, 'RegistryDenied');
    assert.match(none.message, /wants credentials .* was given none/);
    const forgotten = await store.failedPull(reference, 'token-of-yesterday');
    assert.equal(forgotten.reason, 'Interrupted');
    registry.intercept((_, response) =>
      Boolean(response.writeHead(403).end('{"errors":[{"code":"DENIED","message":"no\\n\\u001b[31m"}]}')),
    );
    const denied = await store.failedPull(reference, 'token-1');
    assert.equal(denied.reason, 'RegistryDenied');
    assert.match(denied.message, /answered 403 Forbidden \(DENIED: no \[31m\)/);
  });

  it('says why credentials that came with the pull are of no use, and shows nothing of them', async (t) => {
    const registry = await startFaultServer(t);
    registry.serve('team/app', 'v1', image);
    guard(registry, 'Basic realm="registry"', () => false);
    const cases: readonly (readonly [RegistryCredentials, RegExp])[] = [
      [{ ...password, serverAddress: 'https://other.example/v1/' }, /was given some for other\.example alone\.$/],
      [
        { ...password, serverAddress: `https://u:${secret}@other.example` },
        /was given some for another server alone\.$/,
      ],
      [
        { auth: Buffer.from(secret).toString('base64') },
        /was given some that cannot be read: auth is not user:password/,
      ],
      [{ registryToken: `${secret}\n` }, /the registry token for team\/app holds characters that cannot be sent/],
    ];
    for (const [credentials, pattern] of cases) {
      const store = await storeWith(t, credentials);
      const { reason, message } = await store.failedPull(`${registry.host}/team/app:v1`, 'token-1');
      assert.equal(reason, 'RegistryDenied', message);
      assert.match(message, pattern);
      assert.ok(!message.includes(secret), message);
    }
  });

  it('C12: says nothing of what a registry says when that quotes its credentials', async (t) => {
    for (const message of [`user ${secret} is locked`, `${basic} is not for you`]) {
      const registry = await startFaultServer(t);
      registry.intercept(({ headers }, response) =>
        Boolean(
          headers.authorization === undefined
            ? response.writeHead(401, { 'www-authenticate': 'Basic realm="registry"' }).end()
            : response.writeHead(403).end(JSON.stringify({ errors: [{ code: 'DENIED', message }] })),
        ),
      );
      const store = await storeWith(t, password);
      const { message: told } = await store.failedPull(`${registry.host}/team/app:v1`, 'token-1');
      assert.match(told, /answered 403 Forbidden \(its words are left out: they quote the credentials/);
    }
  });

  it('shows credentials without a server to the mirrors of hosts.toml, unless the node forbids it', async (t) => {
    const mirror = await startFaultServer(t);
    const registry = await startFaultServer(t);
    mirror.serve('team/app', 'v1', image);
    registry.serve('team/app', 'v1', image);
    guard(mirror, 'Basic realm="mirror"', ({ headers }) => headers.authorization === basic);
    const directory = await tempDir(t);
    await mkdir(join(directory, registry.host));
    const hosts = `server = "${registry.base}"\n[host."${mirror.base}"]\n`;
    await writeFile(join(directory, registry.host, 'hosts.toml'), hosts);
    const reference = `${registry.host}/team/app:v1`;

    await (await storeWith(t, password, [directory])).pull(reference, 'token-1');
    assert.ok(mirror.requests.some(({ headers }) => headers.authorization === basic));
    assert.equal(registry.requests.length, 0, 'the mirror had it all');

    mirror.requests.length = 0;
    const named = await storeWith(t, { ...password, serverAddress: `http://${registry.host}/v1/` }, [directory]);
    await named.pull(reference, 'token-1');
    const cautious = await storeWith(t, password, [directory], { mirrorCredentials: false });
    await cautious.pull(reference, 'token-1');
    assert.ok(mirror.requests.length > 0);
    assert.ok(mirror.requests.every(({ headers }) => headers.authorization === undefined));
  });

  it('gives credentials to no other registry, no redirect, and no mirror that they do not name', async (t) => {
    const [mirror, storage] = [await startFaultServer(t), await startFaultServer(t)];
    const { registry, tokens } = await guardedByTokens(t);
    const digest = image.layers[0]?.digest ?? '';
    guard(mirror, `Bearer realm="${tokens.base}/mirror"`, () => false);
    guard(storage, 'Basic realm="give it to me"', () => false);
    const directory = await tempDir(t);
    await mkdir(join(directory, registry.host));
    await writeFile(
      join(directory, registry.host, 'hosts.toml'),
      `server = "${registry.base}"\n[host."${mirror.base}"]\n`,
    );
    const store = await storeWith(t, { ...password, serverAddress: registry.host }, [directory]);
    await store.pull(`${registry.host}/team/app:v1`, 'token-1');
    const asked = tokens.requests.map(({ path, headers }) => [path, headers.authorization]);
    assert.ok(asked.some(([path]) => path === '/mirror') && asked.some(([path]) => path === '/token'));
    assert.ok(
      asked.every(([path, authorization]) =>
        path === '/token' ? authorization === basic : authorization === undefined,
      ),
    );

    registry.intercept(({ path }, response) => {
      if (!path.endsWith(digest)) return false;
      response.writeHead(307, { location: `${storage.base}/data` }).end();
      return true;
    });
    const other = await storeWith(t, { ...password, serverAddress: 'https://elsewhere.example' });
    assert.match((await other.failedPull(`${registry.host}/team/app:v1`, 'token-1')).message, /answered 401/);
    assert.ok(storage.requests.length > 0);
    for (const { requests } of [mirror, storage, registry]) {
      assert.ok(requests.every(({ headers }) => headers.authorization !== basic));
    }
  });

  it('does not send secrets in plain text because a registry says so', async (t) => {
    const registry = await startFaultServer(t);
    registry.serve('team/app', 'v1', image);
    const store = await storeWith(t, password);
    for (const realm of ['http://tokens.example/token', 'ftp://127.0.0.1/', 'not a url', '']) {
      guard(registry, `Bearer realm="${realm}"`, () => false);
      assert.equal((await store.failedPull(`${registry.host}/team/app:v1`, 'token-1')).reason, 'RegistryDenied');
    }
  });

  it('refuses token servers that answer nonsense or without end', async (t) => {
    const { tokens, reference } = await guardedByTokens(t);
    const store = await startStore(t, { limits: { attemptsMax: 1 } });
    const answers = ['not json', '{}', '{"token":7}', '{"token":"a\\r\\nx: y"}', 'null', ' '.repeat(3 * 1024 * 1024)];
    for (const answer of answers) {
      tokens.intercept((_, response) => Boolean(response.end(answer)));
      const failure = await store.failedPull(reference);
      assert.ok(['RegistryDenied', 'ImageInvalid'].includes(failure.reason), `${failure.reason}: ${failure.message}`);
    }
  });

  it('C12: leaves no trace of credentials below the root', async (t) => {
    const { reference } = await guardedByTokens(t);
    const store = await storeWith(t, password);
    await store.pull(reference, 'token-1');
    for (const text of [
      secret,
      Buffer.from(`user:${secret}`).toString('base64').slice(0, 20),
      Buffer.from(secret).toString('hex'),
      'tok3n',
    ]) {
      const { exitCode } = await run(['grep', '-r', '-a', '-F', text, store.root]);
      assert.equal(exitCode, 1, `${text} is below the root`);
      assert.ok(store.runs.every((request) => !JSON.stringify(request).includes(text)));
    }
  });

  it('does not ask foreign layer addresses in plain text, nor with credentials', async (t) => {
    const foreign = await startFaultServer(t);
    const registry = await startFaultServer(t);
    const built = buildImage([{ tar: tar([{ path: 'foreign' }]) }], {
      layerExtra: { urls: [`${foreign.base}/layer`, 'file:///etc/passwd', 'https://127.0.0.1:1/layer'] },
    });
    registry.serve('team/app', 'v1', built);
    const digest = built.layers[0]?.digest ?? '';
    registry.intercept(({ path }, response) => path.endsWith(digest) && Boolean(response.writeHead(404).end()));
    const failure = await (await storeWith(t, password)).failedPull(`${registry.host}/team/app:v1`, 'token-1');
    assert.match(failure.message, /https:\/\/127\.0\.0\.1:1\/layer can't be reached/);
    assert.equal(foreign.requests.length, 0);
  });
});
