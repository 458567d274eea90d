/** Sessions over WebSocket, message by message: channels, base64, half-closing, forwarded ports, and bounds. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { StreamingServerOptions } from '../../../src/adapters/streaming/server.ts';
import type { SessionStreams, StreamingBackend, StreamingRequest } from '../../../src/adapters/streaming/types.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { execRequest, portForwardRequest, shell, startServer } from './support.ts';

const Channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
const normalClosure = 1000;

interface Message {
  readonly data: Buffer;
  readonly isBinary: boolean;
}

interface Client {
  readonly socket: WebSocket;
  /** All messages and the code of the goodbye, once the connection has closed. */
  readonly all: Promise<{ readonly messages: readonly Message[]; readonly code: number }>;
  readonly warnings: readonly string[];
}

const open = async (
  t: TestContext,
  request: StreamingRequest,
  protocol: string | undefined,
  backend: Partial<StreamingBackend> = { exec: shell },
  options: Partial<StreamingServerOptions> = {},
  query = '',
): Promise<Client> => {
  const { server, warnings } = await startServer(t, backend, options);
  const socket = new WebSocket(server.urlFor(request) + query, protocol === undefined ? [] : [protocol]);
  onCleanup(t, () => {
    socket.terminate();
  });
  const messages: Message[] = [];
  socket.on('message', (data: Buffer, isBinary) => messages.push({ data, isBinary }));
  socket.on('error', () => undefined);
  const all = once(socket, 'close').then(([code]: unknown[]) => ({ messages, code: Number(code) }));
  await once(socket, 'open');
  return { socket, all, warnings };
};

const on = (channel: number, text: string): Buffer => Buffer.concat([Buffer.of(channel), Buffer.from(text)]);

/** What came on one channel, put together. */
const textOf = (messages: readonly Message[], channel: number): string =>
  Buffer.concat(messages.filter(({ data }) => data[0] === channel).map(({ data }) => data.subarray(1))).toString();

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

describe('a session over WebSocket', () => {
  it('greets, divides its channels, tells its ending and closes normally', async (t) => {
    const { socket, all } = await open(t, execRequest(['both'], 'stdout stderr'), 'v5.channel.k8s.io');
    assert.equal(socket.protocol, 'v5.channel.k8s.io');
    const { messages, code } = await all;
    assert.deepEqual(messages[0]?.data, Buffer.of(Channel.stdout));
    assert.equal(textOf(messages, Channel.stdout), 'to stdout');
    assert.equal(textOf(messages, Channel.stderr), 'to stderr');
    assert.deepEqual(JSON.parse(textOf(messages, Channel.error)), { metadata: {}, status: 'Success' });
    assert.equal(code, normalClosure);
    assert.ok(messages.every(({ isBinary }) => isBinary));
  });

  for (const protocol of ['base64.channel.k8s.io', 'v4.base64.channel.k8s.io']) {
    it(`speaks ${protocol}, as text`, async (t) => {
      const { backend, started, end } = held();
      const { socket, all } = await open(t, execRequest(['x'], 'stdin stdout'), protocol, backend);
      const { stdin, stdout } = await started;
      socket.send(`0${Buffer.from('bytes \0\xff').toString('base64')}`);
      assert.ok(stdin);
      const [received] = (await once(stdin, 'data')) as [Buffer];
      stdout?.write(received);
      end();
      const { messages } = await all;
      assert.ok(messages.every(({ isBinary }) => !isBinary));
      assert.deepEqual(messages[0]?.data.toString(), '1');
      assert.equal(messages[1]?.data.toString(), `1${Buffer.from('bytes \0\xff').toString('base64')}`);
    });
  }

  it('takes a client that offers no protocol for one of the first version', async (t) => {
    const { socket, all } = await open(t, execRequest(['exit', '3'], 'stdout'), undefined);
    assert.equal(socket.protocol, '');
    assert.equal(textOf((await all).messages, Channel.error), 'command terminated with exit code 3');
  });

  it('ends its input at the message for that, in version 5', async (t) => {
    const { socket, all } = await open(t, execRequest(['cat'], 'stdin stdout'), 'v5.channel.k8s.io');
    socket.send(on(Channel.stdin, 'some'));
    socket.send(Buffer.of(255, Channel.stdin));
    assert.equal(textOf((await all).messages, Channel.stdout), 'some');
  });

  it('closes when that message names no channel', async (t) => {
    const { socket, all } = await open(t, execRequest(['sleep'], 'stdin stdout'), 'v5.channel.k8s.io');
    socket.send(Buffer.of(255, 9));
    assert.equal((await all).code, 1002);
  });

  it('hears sizes of a terminal, and passes over what is none', async (t) => {
    const { socket, all } = await open(t, execRequest(['sizes', '2'], 'tty stdin stdout'), 'v4.channel.k8s.io');
    socket.send(on(Channel.resize, '{"Width":80,"Hei'));
    socket.send(on(Channel.resize, 'ght":24}{"Width":-1,"Height":1}{"Width":"x"}}{"Width":1,"Height":65535}'));
    assert.deepEqual(JSON.parse(textOf((await all).messages, Channel.stdout)), [
      { width: 80, height: 24 },
      { width: 1, height: 65_535 },
    ]);
  });

  it('drops what is sent on channels that are not there', async (t) => {
    const { socket, all } = await open(t, execRequest(['cat'], 'stdin stdout'), 'v5.channel.k8s.io');
    for (const message of [Buffer.alloc(0), on(Channel.stdout, 'x'), on(77, 'x'), on(Channel.resize, 'x')]) {
      socket.send(message);
    }
    socket.send(on(Channel.stdin, 'fine'));
    socket.send(Buffer.of(255, Channel.stdin));
    assert.equal(textOf((await all).messages, Channel.stdout), 'fine');
  });

  it('refuses messages above its bound', async (t) => {
    const { socket, all, warnings } = await open(t, execRequest(['sleep'], 'stdin'), 'v4.channel.k8s.io');
    socket.send(Buffer.alloc(5_000_000));
    assert.equal((await all).code, 1009);
    assert.match(warnings.join(), /broke the protocol/);
  });

  it('is over, with its signal, when the client goes', async (t) => {
    const { backend, started, end } = held();
    const { socket } = await open(t, execRequest(['x'], 'stdin stdout'), 'v4.channel.k8s.io', backend);
    const { stdin, signal } = await started;
    assert.ok(stdin);
    const wasAborted = once(stdin, 'close').then(() => signal.aborted);
    socket.close();
    assert.equal(await wasAborted, true);
    end();
  });

  it('is over when nothing moves for too long, whatever pings are sent', async (t) => {
    const { backend, started, end } = held();
    const request = execRequest(['x'], 'stdin');
    const { socket, all } = await open(t, request, 'v4.channel.k8s.io', backend, { idleTimeoutMs: 300 });
    const timer = setInterval(() => {
      socket.ping();
    }, 50);
    t.after(() => {
      clearInterval(timer);
    });
    const ponged = once(socket, 'pong');
    const { signal } = await started;
    await ponged;
    await all;
    assert.equal(signal.aborted, true);
    end();
  });

  it('lets a client send as much as is read, and no more', async (t) => {
    const { backend, started, end } = held();
    const { socket } = await open(t, execRequest(['x'], 'stdin'), 'v5.channel.k8s.io', backend);
    const { stdin } = await started;
    assert.ok(stdin);
    const message = on(Channel.stdin, 'x'.repeat(65_536));
    const total = 32 * 1024 * 1024;
    let sent = 0;
    while (sent < total && socket.bufferedAmount < 1_000_000) {
      socket.send(message);
      sent += 65_536;
      await setImmediate();
    }
    assert.ok(sent < total, 'nothing held the client back');
    socket.send(Buffer.of(255, Channel.stdin));
    let received = 0;
    for await (const bytes of stdin as AsyncIterable<Buffer>) received += bytes.length;
    assert.equal(received, sent);
    end();
  });
});

describe('port-forward over WebSocket channels', () => {
  const request = portForwardRequest;
  const portForward: StreamingBackend['portForward'] = async (_, port, streams) => {
    const { input, output } = await streams;
    if (port === 81) throw new Error('nobody there');
    const [received] = (await once(input, 'data')) as [Buffer];
    output.end(`${port}: ${received.toString()}`);
  };

  for (const [where, ports, query] of [
    ['call', [80, 81], ''],
    ['URL', [], '?port=80,81'],
    ['URL, twice', [], '?port=80&port=81'],
  ] as const) {
    it(`has two channels for each port of the ${where}`, async (t) => {
      const { socket, all } = await open(t, request(ports), 'v4.channel.k8s.io', { portForward }, {}, query);
      socket.send(on(0, 'hello'));
      const { messages, code } = await all;
      assert.equal(textOf(messages, 0), `${'P\0'}80: hello`);
      assert.equal(textOf(messages, 1), 'P\0');
      assert.equal(textOf(messages, 2), 'Q\0');
      assert.equal(textOf(messages, 3), `${'Q\0'}error forwarding port 81 to pod pod: nobody there`);
      assert.equal(code, normalClosure);
    });
  }

  for (const query of ['', '?port=', '?port=0', '?port=80,x', `?port=${'80,'.repeat(40)}80`]) {
    it(`refuses the ports of '${query.slice(0, 20)}'`, async (t) => {
      const { server } = await startServer(t, { portForward });
      const socket = new WebSocket(server.urlFor(request([])) + query, 'v4.channel.k8s.io');
      const [error] = (await once(socket, 'error')) as [Error];
      assert.match(error.message, /400/);
    });
  }
});
