/**
 * A program for a network namespace that has 192.0.2.1 beside its loopback: a registry at that address sends a client to
 * servers on loopback, in every way that it can. Prints how each attempt ended, and what reached loopback.
 */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { createAuthenticator, parseChallenges } from '../../../src/adapters/images/registry/auth.ts';
import { createRegistry } from '../../../src/adapters/images/registry/client.ts';
import type { Endpoint } from '../../../src/adapters/images/registry/hosts.ts';
import { createHttpClient } from '../../../src/adapters/images/registry/http.ts';
import type { Lookup } from '../../../src/adapters/images/registry/local-addresses.ts';
import { messageOf } from '../../../src/domain/model/errors.ts';

const AFAR = '192.0.2.1';
const noTls = { ca: [], clientPairs: [], skipVerify: true };
const { signal } = new AbortController();

const listen = async (server: Server, address: string, port = 0): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  return (server.address() as AddressInfo).port;
};

let reachedLoopback = 0;
const innerServer = (): Server => {
  const server = createServer((_, response) => response.end('{"token":"t"}'));
  server.on('connection', () => {
    reachedLoopback += 1;
  });
  return server;
};
const inner = await listen(innerServer(), '127.0.0.1');
await listen(innerServer(), '::1', inner);

let answer: RequestListener = (_, response) => response.end();
const afar = await listen(
  createServer((request, response) => answer(request, response)),
  AFAR,
);
const localAnswer = await listen(
  createServer((_, response) => response.writeHead(302, { location: `http://127.0.0.1:${inner}/x` }).end()),
  '127.0.0.1',
);

/** What the names are, and how often each was asked for. */
const asked = new Map<string, number>();
const names: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'afar.example': [[AFAR]],
  'rebound.example': [['127.0.0.1']],
  'mapped.example': [['::ffff:127.0.0.1']],
  'six.example': [['::1']],
  'metadata.example': [['169.254.169.254']],
  'both.example': [['127.0.0.1', AFAR]],
  'turning.example': [[AFAR], ['127.0.0.1']],
};
const lookup: Lookup = (hostname, _, callback) => {
  const count = asked.get(hostname) ?? 0;
  asked.set(hostname, count + 1);
  const answers = hostname === 'localhost' ? [['127.0.0.1', '::1']] : (names[hostname] ?? []);
  const addresses = answers[Math.min(count, answers.length - 1)] ?? [];
  setImmediate(() =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    ),
  );
};

const http = createHttpClient({ timeoutMs: 5000, bytesMin: 0 }, lookup);
const outcomes: Record<string, string> = {};
const attempt = async (name: string, work: () => Promise<unknown>): Promise<void> => {
  try {
    outcomes[name] = `went through: ${JSON.stringify(await work())}`;
  } catch (error) {
    outcomes[name] = messageOf(error);
  }
};

const get = async (url: string): Promise<number> => {
  const request = { url: new URL(url), method: 'GET', headers: {}, tls: noTls, dialTimeoutMs: 5000 } as const;
  const response = await http.send(request, signal);
  await response.discard();
  return response.status;
};

const targets = [
  '127.0.0.1',
  '127.1',
  'localhost',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '0.0.0.0',
  '[::]',
];
const named = ['rebound.example', 'mapped.example', 'six.example', 'metadata.example', 'localhost.'];
for (const host of [...targets, ...named]) {
  for (const scheme of ['http', 'https']) {
    const location = `${scheme}://${host}:${inner}/x`;
    answer = (_, response) => response.writeHead(307, { location }).end();
    await attempt(`redirect ${location}`, () => get(`http://afar.example:${afar}/`));
  }
}
for (const host of ['169.254.169.254', '[fe80::1]']) {
  answer = (_, response) => response.writeHead(307, { location: `https://${host}/x` }).end();
  await attempt(`redirect ${host}`, () => get(`http://${AFAR}:${afar}/`));
}
// The name of the registry itself turns to loopback after its first answer.
answer = (_, response) =>
  response.writeHead(307, { location: `https://turning.example:${inner}/x`, connection: 'close' }).end();
await attempt('redirect to a name that turns', () => get(`http://turning.example:${afar}/`));

for (const host of ['127.0.0.1', 'localhost', 'rebound.example', '[::1]', '169.254.169.254']) {
  for (const scheme of ['http', 'https']) {
    const realm = `${scheme}://${host}:${inner}/token`;
    const identity = { kind: 'password', username: 'u', password: 'p' } as const;
    const asking = { repository: 'a/b', http, tls: noTls };
    const authenticator = createAuthenticator({ identity, given: () => 'none', ...asking });
    const asker = { url: new URL(`http://afar.example:${afar}/v2/`), isLocal: false };
    const challenges = parseChallenges(`Bearer realm="${realm}",service="s"`);
    await attempt(`token ${realm}`, () => authenticator.answer(challenges, asker, null, signal));
  }
}

answer = (_, response) => response.writeHead(404).end();
const endpoint: Endpoint = {
  host: `afar.example:${afar}`,
  base: `http://afar.example:${afar}/v2`,
  capabilities: new Set(['pull', 'resolve']),
  headers: {},
  tls: noTls,
  dialTimeoutMs: 5000,
  namespace: null,
};
const reference = { host: `afar.example:${afar}`, path: 'a/b', tag: 'v1', digest: null };
const retry = { attemptsMax: 1, retryDelayMs: 1 };
const registry = createRegistry({
  reference,
  endpoints: [endpoint],
  credentials: null,
  mirrorCredentials: true,
  http,
  retry,
});
const sink = {
  offset: () => 0,
  totalBytes: () => 0,
  missing: () => [],
  write: () => undefined,
  piece: () => ({ write: () => undefined, end: () => undefined }),
  restart: () => undefined,
  finish: () => Promise.resolve(),
};
for (const host of ['127.0.0.1', 'rebound.example', '[::ffff:7f00:1]']) {
  const digest = `sha256:${'0'.repeat(64)}`;
  const descriptor = { digest, sizeBytes: 3, mediaType: 'x', urls: [`https://${host}:${inner}/layer`] };
  await attempt(`foreign ${host}`, () => registry.fetchBlob(descriptor as never, sink, signal));
}
const refusedReached = reachedLoopback;

const allowed: Record<string, string> = {};
for (const [name, work] of [
  ['a registry on loopback redirects to loopback', () => get(`http://127.0.0.1:${localAnswer}/`)],
  ['so does one whose name is on loopback', () => get(`http://rebound.example:${localAnswer}/`)],
  [
    'what else a name has is used',
    () => {
      answer = (request, response) => {
        if (request.url === '/end') response.end();
        else response.writeHead(307, { location: `http://both.example:${afar}/end` }).end();
      };
      return get(`http://both.example:${afar}/`);
    },
  ],
] as const) {
  allowed[name] = await work().then(String, messageOf);
}
console.log(JSON.stringify({ outcomes, refusedReached, allowed }));
process.exit(0);
