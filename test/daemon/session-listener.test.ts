/**
 * The listener for sessions and the thread behind it, with calls that a test makes of them: when the thread is started, what is
 * said of an address that can't be had, and that what moves reaches the client.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFifo, openFifoReader } from '../../src/adapters/shim/fifos.ts';
import { FrameType } from '../../src/adapters/streaming/spdy/frames.ts';
import type { ExecRequest, PortForwardRequest } from '../../src/adapters/streaming/types.ts';
import type { SessionCalls } from '../../src/daemon/sessions/calls.ts';
import { createSessionListener, type SessionListener } from '../../src/daemon/sessions/listener.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import { connectSpdy, ping } from '../adapters/streaming/spdy-client.ts';
import { onCleanup } from '../support/cleanup.ts';
import { eventually } from '../support/pods.ts';
import { runOk } from '../support/process.ts';
import { startClient } from '../support/streaming-client.ts';
import { tempDir } from '../support/temp-dir.ts';

const never = (): Promise<never> => Promise.reject(new FailureError('WrongState', 'no test asked for this'));

const lines = 200_000;

/** What a thread that nobody needs may rest, where that matters. */
const SHORT_MS = 30;

const threadsOfThis = (): number => readdirSync('/proc/self/task').length;

const request: ExecRequest = {
  kind: 'Exec',
  containerId: 'container',
  cmd: ['anything'],
  tty: false,
  stdin: false,
  stdout: true,
  stderr: false,
  allowedBy: 'call',
  caller: null,
};

const portForward: PortForwardRequest = {
  kind: 'PortForward',
  podSandboxId: 'pod',
  ports: [],
  allowedBy: 'call',
  caller: null,
};

interface Opened {
  readonly listener: SessionListener;
  readonly errors: readonly string[];
}

const open = (t: TestContext, calls: Partial<SessionCalls> = {}, port = 0, idleMs = 60_000): Opened => {
  const errors: string[] = [];
  const listener = createSessionListener({
    server: { address: '127.0.0.1', port, tls: null, idleTimeoutMs: 60_000, streamCreationTimeoutMs: 10_000 },
    calls: { exec: never, attach: never, portForward: never, ...calls },
    nowMs: () => performance.now(),
    idleMs,
    log: { warn: () => undefined, error: (message) => errors.push(message) },
  });
  onCleanup(t, () => listener.close());
  return { listener, errors };
};

describe('the listener for sessions', { timeout: 60_000 }, () => {
  it('hands a FIFO on to the client, whole, and tells how much went through', async (t) => {
    const path = join(await tempDir(t), 'fifo');
    await makeFifo(path);
    const seen: { readonly request: ExecRequest; readonly sizeBytes: number }[] = [];
    const { listener } = open(t, {
      exec: async (asked, client) => {
        const pump = client.pumpOutput('stdout', await openFifoReader(path));
        await runOk(['sh', '-c', `seq 1 ${lines} > ${path}`]);
        await pump.ended;
        seen.push({ request: asked, sizeBytes: pump.sizeBytes() });
        return { exitCode: 3 };
      },
    });
    const client = await startClient(t, ['exec', '-transport', 'spdy', '-stdout', await listener.urlFor(request)]);
    const output = await text(client.stdout);
    assert.ok(output === Array.from({ length: lines }, (_, index) => `${index + 1}\n`).join(''), 'something was lost');
    assert.match((await client.ending).error, /exit code 3/);
    assert.deepEqual(seen, [{ request, sizeBytes: output.length }]);
  });

  it('tells a client the failure of its call, and the call that its client has gone', async (t) => {
    const { promise: left, resolve: onLeft } = Promise.withResolvers<void>();
    const { listener } = open(t, {
      exec: async (_, { signal }) => {
        signal.addEventListener('abort', () => onLeft());
        if (signal.aborted) onLeft();
        await left;
        return { exitCode: 0 };
      },
    });
    const attach = { ...request, kind: 'Attach' } as const;
    const refused = await startClient(t, ['exec', '-transport', 'spdy', '-stdout', await listener.urlFor(attach)]);
    assert.match((await refused.ending).error, /no test asked for this/);
    const socket = new WebSocket((await listener.urlFor(request)).replace('http', 'ws'), 'v5.channel.k8s.io');
    await once(socket, 'message');
    socket.close();
    await left;
  });

  it('tells clients why their sessions end when the daemon does, and the calls that the clients have gone', async (t) => {
    const gone: string[] = [];
    const begun = Promise.withResolvers<void>();
    let sessions = 0;
    const { listener } = open(t, {
      exec: async (_, { signal }) => {
        sessions += 1;
        if (sessions === 2) begun.resolve();
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        gone.push('exec');
        return { exitCode: 0 };
      },
    });
    const urls = await Promise.all([listener.urlFor(request), listener.urlFor(request)]);
    const clients = await Promise.all(
      ['spdy', 'websocket'].map((transport, index) =>
        startClient(t, ['exec', '-transport', transport, '-stdout', urls[index] ?? '']),
      ),
    );
    await begun.promise;
    await listener.close();
    for (const { ending } of clients) assert.match((await ending).error, /The daemon is ending/);
    assert.deepEqual(gone, ['exec', 'exec']);
  });

  it('ends its thread when nobody needs it any more, not before, and starts another for the next', async (t) => {
    const left = Promise.withResolvers<void>();
    const { listener, errors } = open(
      t,
      { exec: () => left.promise.then(() => ({ exitCode: 0 })), portForward: () => Promise.resolve() },
      0,
      SHORT_MS,
    );
    const first = await listener.urlFor(request);
    const answers = (url: string): Promise<boolean> =>
      fetch(url.replace(/[^/]*$/, 'none')).then(
        () => true,
        () => false,
      );
    // The token in a URL that was not used, a session, and a client that has none at the moment.
    await sleep(10 * SHORT_MS);
    const client = await startClient(t, ['exec', '-transport', 'spdy', '-stdout', first]);
    await sleep(10 * SHORT_MS);
    const headers = {
      Connection: 'Upgrade',
      Upgrade: 'SPDY/3.1',
      'X-Stream-Protocol-Version': 'portforward.k8s.io',
    };
    const asking = httpRequest(await listener.urlFor(portForward), { method: 'POST', headers }).end();
    const [, tunnel] = (await once(asking, 'upgrade')) as [unknown, Socket];
    left.resolve();
    assert.match((await client.ending).error, /^$/);
    await sleep(10 * SHORT_MS);
    assert.ok(await answers(first), 'the thread has ended while a client was there');
    const threads = threadsOfThis();
    tunnel.destroy();
    await eventually('the end of the thread', async () => !(await answers(first)) && threadsOfThis() < threads);
    const second = await listener.urlFor(request);
    assert.ok(await answers(second), 'no thread was started for the next URL');
    assert.deepEqual(errors, []);
  });

  it('has nobody else lose a session when the streams of a forwarded connection do not come together', async (t) => {
    const gone = ({ signal }: { readonly signal: AbortSignal }): Promise<void> =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    const { listener, errors } = open(t, {
      exec: (_, client) => gone(client).then(() => ({ exitCode: 0 })),
      portForward: (_, __, client) => gone(client),
    });
    const other = await connectSpdy(t, await listener.urlFor(request));
    await other.open(1, { streamtype: 'error' });
    await other.open(3, { streamtype: 'stdout' });
    await other.until(FrameType.SynReply, 3);
    const client = await connectSpdy(t, await listener.urlFor(portForward), 'portforward.k8s.io');
    // Both arrive before the daemon has said a word of the session that the first one begins.
    await client.open(1, { streamtype: 'error', port: '80', requestid: '0' });
    await client.open(3, { streamtype: 'data', port: '81', requestid: '0' });
    await client.until(FrameType.RstStream, 3);
    other.socket.write(ping(1));
    await other.until(FrameType.Ping, 1);
    assert.deepEqual(errors, []);
  });

  it('keeps a thread that was to listen from the start', async (t) => {
    const { listener } = open(t, {}, 0, SHORT_MS);
    await listener.start();
    const threads = threadsOfThis();
    await sleep(10 * SHORT_MS);
    assert.equal(threadsOfThis(), threads);
  });

  it('says which address it cannot have, and tries anew for the next', async (t) => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { listener, errors } = open(t, {}, port);
    await assert.rejects(listener.start(), new RegExp(`EADDRINUSE.*127\\.0\\.0\\.1:${port}`));
    await assert.rejects(
      listener.urlFor(request),
      /cannot listen at 127\.0\.0\.1, port \d+: .* configured by streaming\.address/,
    );
    other.close();
    await once(other, 'close');
    assert.ok((await listener.urlFor(request)).startsWith(`http://127.0.0.1:${port}/exec/`));
    assert.deepEqual(errors, []);
  });
});
