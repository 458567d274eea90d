/** Where images are asked for: hosts.toml and certificate directories, challenges, and whose credentials go where. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { parseChallenges } from '../../../src/adapters/images/registry/auth.ts';
import { identityFor } from '../../../src/adapters/images/registry/credentials.ts';
import { parseDuration } from '../../../src/adapters/images/registry/hosts-file.ts';
import { findEndpoints, isLoopback } from '../../../src/adapters/images/registry/hosts.ts';
import { makeCertificates } from '../../support/images/fault-server.ts';
import { failureOf } from '../../support/images/store.ts';
import { tempDir } from '../../support/temp-dir.ts';

const configured = async (t: TestContext, files: Record<string, string>): Promise<string> => {
  const directory = await tempDir(t);
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  return directory;
};

const filesIn = (directory: string, files: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [join(directory, name), text]));

const certificateTexts = async (t: TestContext): Promise<{ readonly cert: string; readonly key: string }> => {
  const { cert, key } = await makeCertificates(t);
  return { cert: cert.toString(), key: key.toString() };
};

const bases = async (directories: readonly string[], host: string): Promise<readonly string[]> =>
  (await findEndpoints(directories, host)).map(({ base }) => base);

describe('registry hosts', () => {
  it('asks the registry itself where nothing is configured, in plain http on loopback only', async () => {
    assert.deepEqual(await bases([], 'registry.example'), ['https://registry.example/v2']);
    assert.deepEqual(await bases([], 'registry.example:5000'), ['https://registry.example:5000/v2']);
    assert.deepEqual(await bases(['/nonexistent'], 'docker.io'), ['https://registry-1.docker.io/v2']);
    for (const host of ['localhost', 'localhost:5000', '127.0.0.1:5000', '127.9.9.9', '[::1]:5000']) {
      assert.deepEqual(await bases([], host), [`http://${host}/v2`]);
    }
    assert.deepEqual(await bases([], '127.0.0.1:443'), ['https://127.0.0.1:443/v2']);
    for (const host of [
      'localhost.example',
      '127.0.0.1.example',
      '128.0.0.1',
      '[::2]',
      'xlocalhost',
      '10.0.0.1:5000',
    ]) {
      assert.equal(isLoopback(host), false, host);
    }
  });

  it('reads mirrors in their order, then the server', async (t) => {
    const hosts = `
      server = "https://upstream.example"
      [host."https://one.example"]
        capabilities = ["pull"]
        dial_timeout = "1m1.5s"
        [host."https://one.example".header]
          x-a = "1"
          x-b = ["2", "3"]
      [host."http://two.example:8080/mirror"]
      [host."three.example/exact/path/"]
        override_path = true
        skip_verify = true
    `;
    const directory = await configured(t, { 'registry.example/hosts.toml': hosts });
    const endpoints = await findEndpoints([directory], 'registry.example');
    assert.deepEqual(
      endpoints.map(({ base }) => base),
      [
        'https://one.example/v2',
        'http://two.example:8080/mirror/v2',
        'https://three.example/exact/path',
        'https://upstream.example/v2',
      ],
    );
    const [one, two, three, server] = endpoints;
    assert.deepEqual([...(one?.capabilities ?? [])], ['pull']);
    assert.deepEqual(one?.headers, { 'x-a': ['1'], 'x-b': ['2', '3'] });
    assert.equal(one.dialTimeoutMs, 61_500);
    assert.deepEqual([...(two?.capabilities ?? [])], ['pull', 'resolve', 'push']);
    assert.equal(three?.tls.skipVerify, true);
    assert.deepEqual(
      endpoints.map(({ namespace }) => namespace),
      Array(4).fill('registry.example'),
    );
    assert.equal(server?.host, 'upstream.example');
  });

  it('asks a server once that is named as a host and right after that as the server, as the host is to be asked', async (t) => {
    const host = (capabilities: string, more = '') =>
      `[host."https://r.example"]\ncapabilities = ${capabilities}\n${more}`;
    const both = '["pull", "resolve"]';
    const [server, skip] = ['server = "https://r.example"\n', 'skip_verify = true\n'];
    const asked: Record<string, [text: string, isStrict: readonly boolean[]]> = {
      'as the server': [server + host(both), [true]],
      'as the registry itself': [host(both), [true]],
      'with words of its own': [server + host(both, skip), [false]],
      'with the same words': [server + skip + host(both, skip), [false]],
      'with other words': [server + skip + host(both), [true, false]],
      'not for tags': [server + host('["pull"]', skip), [false, true]],
      'before another': [`${server + host(both)}[host."https://mirror.example"]`, [true, true, true]],
    };
    for (const [what, [text, isStrict]] of Object.entries(asked)) {
      const directory = await configured(t, { 'r.example/hosts.toml': text });
      const endpoints = await findEndpoints([directory], 'r.example');
      assert.deepEqual(
        endpoints.map(({ tls }) => !tls.skipVerify),
        isStrict,
        what,
      );
    }
  });

  it('goes on to the registry itself when no server is named', async (t) => {
    const directory = await configured(t, { 'docker.io/hosts.toml': '[host."https://mirror.example"]' });
    const endpoints = await findEndpoints([directory], 'docker.io');
    assert.deepEqual(
      endpoints.map(({ base }) => base),
      ['https://mirror.example/v2', 'https://registry-1.docker.io/v2'],
    );
    assert.deepEqual(
      endpoints.map(({ namespace }) => namespace),
      ['docker.io', null],
    );
  });

  it('asks the registry itself as a file says that names no server', async (t) => {
    const { cert } = await certificateTexts(t);
    const hosts = `
      ca = "ca.pem"
      skip_verify = true
      dial_timeout = "2s"
      capabilities = ["pull"]
      header = { x-a = "1" }
      [host."https://mirror.example"]
    `;
    const directory = await configured(t, {
      'r.example/hosts.toml': hosts,
      'r.example/ca.pem': cert,
      'localhost:5000/hosts.toml': 'server = ""\ndial_timeout = "2s"',
      'localhost:5001/hosts.toml': 'skip_verify = true',
    });
    const [mirror, own] = await findEndpoints([directory], 'r.example');
    assert.deepEqual(mirror?.tls, { ca: [], clientPairs: [], skipVerify: false });
    assert.deepEqual(own, {
      host: 'r.example',
      base: 'https://r.example/v2',
      capabilities: new Set(['pull', 'resolve', 'push']),
      headers: { 'x-a': ['1'] },
      tls: { ca: [cert], clientPairs: [], skipVerify: true },
      dialTimeoutMs: 2000,
      namespace: null,
    });
    assert.deepEqual(await bases([directory], 'localhost:5000'), ['http://localhost:5000/v2']);
    assert.deepEqual(await bases([directory], 'localhost:5001'), ['https://localhost:5001/v2']);
  });

  it("takes capabilities in containerd's words, whatever their case", async (t) => {
    const hosts = `
      [host."https://one.example"]
      capabilities = ["Pull", "Resolve", "referrers"]
      [host."https://two.example"]
      capabilities = ["referrers"]
      [host."https://three.example"]
      capabilities = []
    `;
    const directory = await configured(t, { 'r.example/hosts.toml': hosts });
    const named = (await findEndpoints([directory], 'r.example')).map(({ capabilities }) => [...capabilities]);
    const all = ['pull', 'resolve', 'push'];
    assert.deepEqual(named, [['pull', 'resolve'], [], all, all]);
  });

  it('finds directories by host, with and without colon, then _default, in the first root that has any', async (t) => {
    const first = await configured(t, {
      'a.example_5000_/hosts.toml': 'server = "https://underscored"',
      'a.example:5000/hosts.toml': 'server = "https://colon"',
      'b.example:5000/hosts.toml': 'server = "https://colon"',
    });
    const second = await configured(t, {
      'a.example:5000/hosts.toml': 'server = "https://second"',
      '_default/hosts.toml': 'server = "https://default"',
    });
    const roots = [first, second];
    assert.deepEqual(await bases(roots, 'a.example:5000'), ['https://underscored/v2']);
    assert.deepEqual(await bases(roots, 'b.example:5000'), ['https://colon/v2']);
    assert.deepEqual(await bases(roots, 'c.example'), ['https://default/v2']);
  });

  it('reads authorities and client certificates, named or beside it', async (t) => {
    const { cert, key } = await certificateTexts(t);
    const directory = await configured(t, {
      'a.example/hosts.toml': `
        [host."https://m"]
        ca = ["ca.pem"]
        client = [["c.pem", "k.pem"]]
        [host."https://n"]
        ca = "ca.pem"
        client = "both.pem"
      `,
      'a.example/ca.pem': cert,
      'a.example/c.pem': cert,
      'a.example/k.pem': key,
      'a.example/both.pem': `${cert}${key}`,
      'b.example/root.crt': cert,
      'b.example/me.cert': cert,
      'b.example/me.key': key,
    });
    const both = `${cert}${key}`;
    const [m, n] = await findEndpoints([directory], 'a.example');
    assert.deepEqual(m?.tls, { ca: [cert], clientPairs: [{ cert, key }], skipVerify: false });
    assert.deepEqual(n?.tls, { ca: [cert], clientPairs: [{ cert: both, key: both }], skipVerify: false });
    const [b] = await findEndpoints([directory], 'b.example');
    assert.deepEqual(b?.tls, { ca: [cert], clientPairs: [{ cert, key }], skipVerify: false });
  });

  it('says which certificate or key cannot be used, before a server is asked', async (t) => {
    const [one, other] = [await certificateTexts(t), await certificateTexts(t)];
    const files = { 'cert.pem': one.cert, 'key.pem': one.key, 'other-key.pem': other.key };
    const cases: readonly (readonly [string, RegExp])[] = [
      ['ca = "key.pem"', /key\.pem holds no certificate in PEM\.$/],
      ['client = "cert.pem"', /cert\.pem holds no private key .* write client = \[\["cert\.pem", "key\.pem"\]\]\.$/],
      ['client = ["cert.pem", "key.pem"]', /holds no private key .* write client = /],
      ['client = [["key.pem", "key.pem"]]', /key\.pem holds no certificate in PEM\.$/],
      ['client = [["cert.pem", "other-key.pem"]]', /the key in \S+other-key\.pem is not that of .* in \S+cert\.pem\.$/],
    ];
    for (const [line, pattern] of cases) {
      const hosts = `server = "https://r.example"\n${line}\n`;
      const directory = await configured(t, { 'r.example/hosts.toml': hosts, ...filesIn('r.example', files) });
      const failure = await failureOf(findEndpoints([directory], 'r.example'));
      assert.equal(failure.reason, 'HostFailed');
      assert.match(failure.message, pattern);
      assert.ok(failure.message.includes(join(directory, 'r.example/hosts.toml')), failure.message);
    }
    const beside = { 'a.cert': one.cert, 'a.key': other.key };
    const directory = await configured(t, filesIn('r.example', beside));
    assert.match((await failureOf(findEndpoints([directory], 'r.example'))).message, /a\.key is not that of/);
    const alone = await configured(t, filesIn('r.example', { 'a.cert': one.cert }));
    const { message } = await failureOf(findEndpoints([alone], 'r.example'));
    assert.match(message, /a\.cert holds no private key in PEM .*; it is looked for in a\.key beside it, too\.$/);
  });

  it("reads Docker's directories as containerd does: keys within certificates, beside directories and an empty file", async (t) => {
    const { cert, key } = await certificateTexts(t);
    const directory = await configured(t, {
      'r.example/hosts.toml': '',
      'r.example/ca.crt': cert,
      'r.example/me.cert': `${cert}${key}`,
      'r.example/old.crt/a.pem': 'x',
      'r.example/lonely.key': key,
    });
    const [only] = await findEndpoints([directory], 'r.example');
    const both = `${cert}${key}`;
    assert.deepEqual(only?.tls, { ca: [cert], clientPairs: [{ cert: both, key: both }], skipVerify: false });
  });

  it('says which file is wrong and why', async (t) => {
    const cases: Record<string, [string, RegExp]> = {
      toml: ['server = ', /can't be used/],
      server: ['server = 7', /server is not text/],
      capability: ['[host."https://m"]\ncapabilities = ["fly"]', /no capability "fly"/],
      timeout: ['[host."https://m"]\ndial_timeout = "soon"', /dial_timeout/],
      address: ['[host."https://:::"]', /not the address of a server/],
      verify: ['[host."https://m"]\nskip_verify = "yes"', /neither true nor false/],
      ca: ['[host."https://m"]\nca = "missing.pem"', /missing\.pem/],
      host: ['host = "x"', /not a table/],
      hosts: ['host."https://m" = "x"', /host\."https:\/\/m" is not a table/],
      client: ['[host."https://m"]\nclient = [[7]]', /client is neither a file nor pairs of files/],
      header: ['[host."https://m".header]\nX-A = 7', /X-A is not text/],
      line: ['[host."https://m".header]\nX-A = "one\\ntwo"', /header "X-A" has a name or a value that cannot be sent/],
      name: ['[host."https://m".header]\n"X A" = "x"', /header "X A" has a name or a value that cannot be sent/],
    };
    const files = Object.entries(cases).map(([name, [text]]) => [`${name}.example/hosts.toml`, text] as const);
    const directory = await configured(t, Object.fromEntries(files));
    for (const [name, [, pattern]] of Object.entries(cases)) {
      const failure = await failureOf(findEndpoints([directory], `${name}.example`));
      assert.equal(failure.reason, 'HostFailed');
      assert.match(failure.message, pattern, name);
      assert.ok(failure.message.includes(join(directory, `${name}.example`)), failure.message);
    }
  });

  it("reads Go's durations", () => {
    assert.equal(parseDuration('1h2m3.5s'), 3_723_500);
    assert.equal(parseDuration('250ms'), 250);
    for (const text of ['', '5', 's', '5 s', '-5s', '5s!']) assert.equal(parseDuration(text), null, text);
  });
});

describe('credentials', () => {
  const password = { username: 'u', password: 'p' };
  const kindFor = (serverAddress: string | undefined, registry: string, endpoint: string): string =>
    identityFor({ ...password, ...(serverAddress === undefined ? {} : { serverAddress }) }, registry, endpoint, false)
      .kind;

  it('go to the registry they name, or that of the image, and to no other', () => {
    assert.equal(kindFor(undefined, 'r.example:5000', 'r.example:5000'), 'password');
    assert.equal(kindFor(undefined, 'r.example', 'mirror.example'), 'anonymous');
    assert.equal(kindFor(undefined, 'r.example', 'r.example:5000'), 'anonymous');
    assert.equal(kindFor('https://r.example/v1/', 'r.example', 'r.example'), 'password');
    assert.equal(kindFor('mirror.example', 'r.example', 'mirror.example'), 'password');
    assert.equal(kindFor('other.example', 'r.example', 'r.example'), 'anonymous');
    assert.equal(kindFor('https://index.docker.io/v1/', 'docker.io', 'registry-1.docker.io'), 'password');
    assert.equal(kindFor(undefined, 'docker.io', 'registry-1.docker.io'), 'password');
    assert.equal(identityFor(null, 'r.example', 'r.example', true).kind, 'anonymous');
  });

  it('that name no registry go to its mirrors too, where the node allows it', () => {
    const { kind } = identityFor(password, 'r.example', 'mirror.example', true);
    assert.equal(kind, 'password');
    const named = identityFor({ ...password, serverAddress: 'r.example' }, 'r.example', 'mirror.example', true);
    assert.equal(named.kind, 'anonymous');
  });

  it('come in the four forms of AuthConfig', () => {
    const identity = (credentials: Parameters<typeof identityFor>[0]) => identityFor(credentials, 'r', 'r', true);
    assert.deepEqual(identity({ auth: Buffer.from('u:p:q').toString('base64') }), {
      kind: 'password',
      username: 'u',
      password: 'p:q',
    });
    assert.deepEqual(identity({ ...password, identityToken: 't' }), { kind: 'identityToken', token: 't' });
    assert.deepEqual(identity({ registryToken: 't' }), { kind: 'registryToken', token: 't' });
    assert.deepEqual(identity({}), { kind: 'anonymous' });
    assert.deepEqual(identity({ auth: 'AAAA' }), { kind: 'anonymous' });
  });

  it('answer challenges of every form', () => {
    const [bearer, basic] = parseChallenges(
      'Bearer realm="https://t.example/token",service="a \\"b\\"",scope="repository:x/y:pull,push", Basic realm=plain',
    );
    assert.equal(bearer?.scheme, 'bearer');
    assert.deepEqual(
      [...bearer.parameters],
      [
        ['realm', 'https://t.example/token'],
        ['service', 'a "b"'],
        ['scope', 'repository:x/y:pull,push'],
      ],
    );
    assert.deepEqual([basic?.scheme, basic?.parameters.get('realm')], ['basic', 'plain']);
    assert.deepEqual(parseChallenges(''), []);
    assert.deepEqual(parseChallenges('=,=,"'), []);
  });

  it('take no longer for hostile challenges than their length allows', () => {
    const started = process.hrtime.bigint();
    for (const text of [
      ' ,'.repeat(50_000),
      `Bearer a="${'\\'.repeat(50_000)}`,
      'a='.repeat(50_000),
      '"'.repeat(90_000),
    ]) {
      parseChallenges(text);
    }
    const elapsedMs = Number(process.hrtime.bigint() - started) / 1e6;
    assert.ok(elapsedMs < 1000, `${elapsedMs} ms`);
  });
});
