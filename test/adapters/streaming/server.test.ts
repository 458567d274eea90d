/** The listener of the streaming server: what is turned away, that a URL opens it once, TLS, and that closing ends all. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { WebSocket } from 'ws';
import { runOk } from '../../support/process.ts';
import { startClient } from '../../support/streaming-client.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { connectSpdy } from './spdy-client.ts';
import { execRequest, openServer, portForwardRequest, shell, startServer } from './support.ts';

const portForward = portForwardRequest();
const exec = execRequest(['cat'], 'stdin stdout');

/** Sends bytes as they are, and returns all that comes back. */
const raw = async (url: string, bytes: string): Promise<string> => {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(bytes);
  return text(socket);
};

const upgradeTo = (url: string, headers: readonly string[]): string =>
  [`GET ${new URL(url).pathname} HTTP/1.1`, 'Host: test', 'Connection: Upgrade', ...headers, '', ''].join('\r\n');

describe('the streaming server', () => {
  it('names its own address and the kind of session in the URL', async (t) => {
    const { server } = await startServer(t);
    assert.match(server.urlFor(exec), /^http:\/\/127\.0\.0\.1:\d+\/exec\/[A-Za-z0-9_-]{43}$/);
    assert.match(server.urlFor({ ...exec, kind: 'Attach' }), /\/attach\//);
    assert.match(server.urlFor(portForward), /\/portforward\//);
  });

  it('names the loopback device when it listens everywhere', async (t) => {
    const four = await startServer(t, {}, { address: '0.0.0.0' });
    assert.match(four.server.urlFor(exec), /^http:\/\/127\.0\.0\.1:/);
    const six = await startServer(t, {}, { address: '::1' });
    assert.match(six.server.urlFor(exec), /^http:\/\/\[::1\]:/);
  });

  it('lets nobody in twice, late, by another path, or without a token', async (t) => {
    let now = 0;
    const { server } = await startServer(t, { exec: shell }, { nowMs: () => now });
    const url = server.urlFor(exec);
    const first = await connectSpdy(t, url);
    assert.match(first.response, /^HTTP\/1\.1 101 .*\r\nX-Stream-Protocol-Version: v4\.channel\.k8s\.io/is);
    assert.match((await connectSpdy(t, url)).response, /^HTTP\/1\.1 404 /);
    const late = server.urlFor(exec);
    now += 60_000;
    assert.match((await connectSpdy(t, late)).response, /^HTTP\/1\.1 404 /);
    assert.match(
      (await connectSpdy(t, server.urlFor(exec).replace('/exec/', '/attach/'))).response,
      /^HTTP\/1\.1 404 /,
    );
    assert.match((await connectSpdy(t, new URL('/exec/', url).href)).response, /^HTTP\/1\.1 404 /);
    assert.equal((await fetch(url)).status, 404);
  });

  it('tells a client what it speaks when that is not what was offered', async (t) => {
    const { server } = await startServer(t);
    const { response } = await connectSpdy(t, server.urlFor(exec), 'v9.channel.k8s.io');
    assert.match(response, /^HTTP\/1\.1 403 /);
    assert.match(response, /x-accepted-stream-protocol-versions: v4\.channel\.k8s\.io/);
    const forward = await connectSpdy(t, server.urlFor(portForward), 'v4.channel.k8s.io');
    assert.match(forward.response, /403 .*portforward\.k8s\.io/s);
    const socket = ['Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA=='];
    const url = server.urlFor(exec);
    assert.match(await raw(url, upgradeTo(url, [...socket, 'Sec-WebSocket-Protocol: chat'])), /^HTTP\/1\.1 403 /);
  });

  it('wants an upgrade, and one that it knows', async (t) => {
    const { server } = await startServer(t);
    assert.equal((await fetch(server.urlFor(exec), { method: 'POST' })).status, 400);
    const url = server.urlFor(exec);
    assert.match(await raw(url, upgradeTo(url, ['Upgrade: h2c'])), /^HTTP\/1\.1 400 /);
  });

  it('answers garbage and goes on', async (t) => {
    const { server } = await startServer(t, { exec: shell });
    const url = server.urlFor(exec);
    assert.match(await raw(url, 'garbage\r\n\r\n'), /^HTTP\/1\.1 400 /);
    assert.match(await raw(url, `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`), /^HTTP\/1\.1 431 /);
    assert.match(await raw(url, 'GET // HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), /^HTTP\/1\.1 404 /);
    assert.match((await connectSpdy(t, url)).response, /^HTTP\/1\.1 101 /);
  });

  it('speaks TLS with the certificate that it is given', async (t) => {
    const dir = await tempDir(t);
    const tls = { certPath: join(dir, 'cert.pem'), keyPath: join(dir, 'key.pem') };
    const subject = ['-subj', '/CN=scribe', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '1'];
    const files = ['-keyout', tls.keyPath, '-out', tls.certPath];
    await runOk(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, ...subject]);
    const { server } = await startServer(t, { exec: shell }, { tls });
    for (const transport of ['spdy', 'websocket']) {
      const url = server.urlFor(exec);
      assert.match(url, /^https:/);
      const client = await startClient(t, ['exec', '-insecure', '-transport', transport, '-stdin', '-stdout', url]);
      client.stdin.end('in secret');
      assert.equal(await text(client.stdout), 'in secret');
      assert.equal((await client.ending).error, '');
    }
    await assert.rejects(startServer(t, {}, { tls: { ...tls, keyPath: join(dir, 'missing') } }), /ENOENT/);
  });

  it('does not start on an address that is taken', async (t) => {
    const { server } = await startServer(t);
    await assert.rejects(startServer(t, {}, { port: Number(new URL(server.urlFor(exec)).port) }), /EADDRINUSE/);
  });

  it('ends its sessions, with their signal, when it closes', async () => {
    const signals: AbortSignal[] = [];
    const server = await openServer({
      backend: {
        exec: (request, streams) => {
          signals.push(streams.signal);
          return shell(request, streams);
        },
      },
    });
    const socket = new WebSocket(server.urlFor(execRequest(['sleep'], 'stdout')), 'v4.channel.k8s.io');
    await once(socket, 'message');
    const closed = once(socket, 'close');
    await server.close();
    await closed;
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true],
    );
  });
});
