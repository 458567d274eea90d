/** Sessions over SPDY, frame by frame: order, time limits, bounds, and clients that keep to no rule. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { StreamingServerOptions } from '../../../src/adapters/streaming/server.ts';
import { FrameType } from '../../../src/adapters/streaming/spdy/frames.ts';
import type { SessionStreams, StreamingBackend } from '../../../src/adapters/streaming/types.ts';
import { connectSpdy, control, data, ping, rstStream, type SpdyClient, synStream } from './spdy-client.ts';
import { execRequest, portForwardRequest, shell, startServer } from './support.ts';

const streamType = (streamtype: string) => ({ streamtype });
const fin = 1;

interface Session {
  readonly client: SpdyClient;
  readonly warnings: readonly string[];
}

/** A client that has opened the streams which are named, in that order: 1, 3, 5, … */
const session = async (
  t: TestContext,
  cmd: readonly string[],
  streams: string,
  backend: Partial<StreamingBackend> = { exec: shell },
  options: Partial<StreamingServerOptions> = {},
): Promise<Session> => {
  const { server, warnings } = await startServer(t, backend, options);
  const client = await connectSpdy(t, server.urlFor(execRequest(cmd, streams)));
  let id = 1;
  for (const type of ['error', ...streams.split(' ')]) {
    await client.open(id, streamType(type));
    assert.equal((await client.until(FrameType.SynReply, id)).flags, 0);
    id += 2;
  }
  return { client, warnings };
};

const forward = async (t: TestContext, backend: Partial<StreamingBackend>, options = {}): Promise<SpdyClient> => {
  const { server } = await startServer(t, backend, options);
  const url = server.urlFor(portForwardRequest());
  return connectSpdy(t, url, 'portforward.k8s.io');
};

/** All data of one stream up to its end. */
const dataOf = async (client: SpdyClient, streamId: number): Promise<string> => {
  let text = '';
  for (;;) {
    const frame = await client.next();
    assert.ok(frame, 'the connection closed before the stream ended');
    if (frame.type !== null || frame.streamId !== streamId) continue;
    text += frame.payload.toString();
    if (frame.flags === fin) return text;
  }
};

const closes = async (client: SpdyClient): Promise<void> => {
  while ((await client.next()) !== null);
};

/** A backend whose session a test holds in its hand. */
const held = () => {
  const started = Promise.withResolvers<SessionStreams>();
  const ended = Promise.withResolvers<void>();
  const exec: StreamingBackend['exec'] = async (_, streams) => {
    started.resolve(streams);
    await ended.promise;
    return { exitCode: 0 };
  };
  return { backend: { exec }, started: started.promise, end: ended.resolve };
};

describe('a session over SPDY', () => {
  it('says all output, then its ending, then goodbye', async (t) => {
    const { client } = await session(t, ['exit', '7'], 'stdout');
    assert.equal(await dataOf(client, 3), 'before the end');
    const status = JSON.parse(await dataOf(client, 1)) as object;
    assert.deepEqual(status, {
      metadata: {},
      status: 'Failure',
      message: 'command terminated with exit code 7',
      reason: 'NonZeroExitCode',
      details: { causes: [{ reason: 'ExitCode', message: '7' }] },
    });
    await client.until(FrameType.GoAway, 1 + 2);
    assert.equal(await client.next(), null);
  });

  it('begins only when all streams are there, in whatever order', async (t) => {
    const { backend, started, end } = held();
    const { server } = await startServer(t, backend);
    const client = await connectSpdy(t, server.urlFor(execRequest(['x'], 'stdin stdout stderr')));
    const begun = { yet: false };
    void started.then(() => {
      begun.yet = true;
    });
    let id = 1;
    for (const type of ['stderr', 'stdin', 'stdout']) {
      await client.open(id, streamType(type));
      await client.until(FrameType.SynReply, id);
      id += 2;
    }
    client.socket.write(data(3, 'early'));
    await setImmediate();
    assert.equal(begun.yet, false);
    await client.open(7, streamType('error'));
    const { stdin } = await started;
    assert.ok(stdin);
    const [early] = (await once(stdin, 'data')) as [Buffer];
    assert.equal(early.toString(), 'early');
    end();
  });

  it('is over when the client does not open its streams in time', async (t) => {
    const { server, warnings } = await startServer(t, { exec: shell }, { streamCreationTimeoutMs: 50 });
    const client = await connectSpdy(t, server.urlFor(execRequest(['cat'], 'stdin stdout')));
    await client.open(1, streamType('error'));
    await closes(client);
    assert.match(warnings.join(), /did not open its streams within 50 ms/);
  });

  it('is over, with its signal, when nothing moves for too long', async (t) => {
    const { backend, started, end } = held();
    const { client } = await session(t, ['x'], 'stdin stdout', backend, { idleTimeoutMs: 200 });
    const { signal } = await started;
    await closes(client);
    assert.equal(signal.aborted, true);
    end();
  });

  it('ends its input when the client half-closes, and goes on', async (t) => {
    const { client } = await session(t, ['cat'], 'stdin stdout');
    client.socket.write(data(3, 'all', fin));
    assert.equal(await dataOf(client, 5), 'all');
  });

  it('closes its input without an end when the client goes, after the signal', async (t) => {
    const { backend, started, end } = held();
    const { client } = await session(t, ['x'], 'stdin stdout', backend);
    const { stdin, signal } = await started;
    assert.ok(stdin);
    let hasEnded = false;
    stdin.resume().on('end', () => {
      hasEnded = true;
    });
    const wasAborted = once(stdin, 'close').then(() => signal.aborted);
    client.socket.destroy();
    assert.equal(await wasAborted, true);
    assert.equal(hasEnded, false);
    end();
  });

  it('lets a client send as much as is read, and no more', async (t) => {
    const { backend, started, end } = held();
    const { client } = await session(t, ['x'], 'stdin stdout', backend);
    const { stdin } = await started;
    assert.ok(stdin);
    const total = 32 * 1024 * 1024;
    const chunk = data(3, Buffer.alloc(65_536, 1));
    let sent = 0;
    while (sent < total && client.socket.write(chunk)) {
      sent += 65_536;
      await setImmediate();
    }
    assert.ok(sent < total, 'nothing held the client back');
    // What was sent arrives whole once somebody reads.
    client.socket.write(data(3, '', fin));
    let received = 0;
    for await (const bytes of stdin as AsyncIterable<Buffer>) received += bytes.length;
    assert.equal(received, sent + 65_536);
    end();
  });

  it('passes over streams that are unknown, doubled or reset, and answers pings', async (t) => {
    const { client } = await session(t, ['cat'], 'stdin stdout');
    await client.open(7, streamType('nonsense'));
    await client.until(FrameType.RstStream, 7);
    await client.open(9, streamType('stdin'));
    await client.until(FrameType.RstStream, 9);
    client.socket.write(Buffer.concat([data(99, 'nobody'), rstStream(99), ping(41), ping(2)]));
    await client.until(FrameType.Ping, 41);
    // Ids have to grow.
    await client.open(3, streamType('resize'));
    await client.until(FrameType.RstStream, 3);
    client.socket.write(control(FrameType.GoAway, 0, Buffer.alloc(8)));
    client.socket.write(data(3, 'still here', fin));
    assert.equal(await dataOf(client, 5), 'still here');
  });

  for (const [what, bytes] of Object.entries({
    'another version': control(FrameType.Ping, 0, Buffer.alloc(4), 2),
    'an endless control frame': Buffer.from('8003000400ffffff', 'hex'),
    'headers that cannot be inflated': synStream(21, Buffer.from('garbage')),
    'a reply': control(FrameType.SynReply, 0, Buffer.alloc(8)),
    'data for stream 0': data(0, 'x'),
  })) {
    it(`is over for a client that sends ${what}, and for nobody else`, async (t) => {
      const { server, warnings } = await startServer(t, { exec: shell });
      const url = server.urlFor(execRequest(['cat'], 'stdin stdout'));
      const [good, bad] = [
        await connectSpdy(t, url),
        await connectSpdy(t, server.urlFor(execRequest(['cat'], 'stdin'))),
      ];
      bad.socket.write(bytes);
      await closes(bad);
      assert.match(warnings.join(), /broke the protocol/);
      await good.open(1, streamType('error'));
      await good.open(3, streamType('stdin'));
      await good.open(5, streamType('stdout'));
      good.socket.write(data(3, 'fine', fin));
      assert.equal(await dataOf(good, 5), 'fine');
    });
  }

  it('does not answer a client that never reads for ever', async (t) => {
    const { client } = await session(t, ['cat'], 'stdin stdout');
    const pings = Buffer.concat(Array.from({ length: 5000 }, (_, index) => ping(2 * index + 1)));
    // Without a reader, what the kernel holds for both sides fills up, then the server stops reading.
    client.socket.pause();
    let sent = 0;
    while (sent < 500 && client.socket.write(pings)) {
      sent += 1;
      await setImmediate();
    }
    assert.ok(sent < 500, 'nothing held the client back');
  });
});

describe('port-forward over SPDY', () => {
  const pair = (requestid: string, port: string) =>
    ['error', 'data'].map((type) => ({ streamtype: type, port, requestid }));

  it('refuses streams without a port or of another kind', async (t) => {
    const client = await forward(t, {});
    const ports = ['', '0', '65536', '-1', '8o'];
    const wrong = [...ports.map((port) => ({ streamtype: 'data', port })), { streamtype: 'stdin', port: '80' }];
    let id = 1;
    for (const headers of [...wrong, streamType('data')]) {
      await client.open(id, headers);
      await client.until(FrameType.RstStream, id);
      id += 2;
    }
  });

  it('pairs streams by request, and by their ids for clients that name none', async (t) => {
    const ports: number[] = [];
    const client = await forward(t, {
      portForward: async (_, port, streams) => {
        ports.push(port);
        const { output } = await streams;
        output.end(`port ${port}`);
      },
    });
    const [firstError, firstData] = pair('a', '80');
    const [secondError, secondData] = pair('b', '81');
    assert.ok(firstError && firstData && secondError && secondData);
    await client.open(1, firstError);
    await client.open(3, secondError);
    await client.open(5, secondData);
    assert.equal(await dataOf(client, 5), 'port 81');
    await client.open(7, firstData);
    assert.equal(await dataOf(client, 7), 'port 80');
    await client.open(9, { streamtype: 'error', port: '82' });
    await client.open(11, { streamtype: 'data', port: '82' });
    assert.equal(await dataOf(client, 11), 'port 82');
    assert.deepEqual(ports, [80, 81, 82]);
  });

  it('begins a session with its error stream, and only one of the port that both streams name', async (t) => {
    const begun = Promise.withResolvers<number>();
    const failed = Promise.withResolvers<unknown>();
    const client = await forward(t, {
      portForward: async (_, port, streams) => {
        begun.resolve(port);
        await streams.catch(failed.resolve);
        throw new Error('no');
      },
    });
    await client.open(1, { streamtype: 'error', port: '80', requestid: 'a' });
    assert.equal(await begun.promise, 80);
    await client.open(3, { streamtype: 'data', port: '81', requestid: 'a' });
    await client.until(FrameType.RstStream, 3);
    assert.match(String(await failed.promise), /name different ports/);
  });

  it('tells a session that its client has gone before the data stream came', async (t) => {
    const failed = Promise.withResolvers<unknown>();
    const client = await forward(t, { portForward: (_, __, streams) => streams.then(() => {}).catch(failed.resolve) });
    await client.open(1, { streamtype: 'error', port: '80', requestid: 'a' });
    await client.until(FrameType.SynReply, 1);
    client.socket.destroy();
    assert.match(String(await failed.promise), /gone/);
  });

  it('says on the error stream what went wrong, and goes on', async (t) => {
    const client = await forward(t, { portForward: () => Promise.reject(new Error('no')) });
    for (const [index, requestid] of ['a', 'b'].entries()) {
      const [error, dataHeaders] = pair(requestid, '80');
      assert.ok(error && dataHeaders);
      await client.open(4 * index + 1, error);
      await client.open(4 * index + 3, dataHeaders);
      assert.equal(await dataOf(client, 4 * index + 1), 'error forwarding port 80 to pod pod: no');
      await client.until(FrameType.RstStream, 4 * index + 3);
    }
  });

  it('does not wait for the other stream of a pair for ever', async (t) => {
    const portForward = (_: unknown, __: unknown, streams: Promise<unknown>) => streams.then(() => undefined);
    const client = await forward(t, { portForward }, { streamCreationTimeoutMs: 50 });
    const [error] = pair('lonely', '80');
    assert.ok(error);
    await client.open(1, error);
    assert.match(await dataOf(client, 1), /the data stream of request lonely did not come in time/);
  });

  it('has a bound on streams', async (t) => {
    const client = await forward(t, {});
    for (let id = 1; id < 2 * 512; id += 2)
      await client.open(id, { streamtype: 'data', port: '80', requestid: `${id}` });
    await client.open(1025, { streamtype: 'data', port: '80', requestid: 'one too many' });
    await client.until(FrameType.RstStream, 1025);
  });
});
