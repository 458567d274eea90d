/** client-go against the streaming server: what kubectl, crictl and the kubelet's own clients are made of. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { before, describe, it, type TestContext } from 'node:test';
import type { StreamingBackend, StreamingRequest } from '../../../src/adapters/streaming/types.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { type ClientProcess, startClient, streamingClient } from '../../support/streaming-client.ts';
import { attachRequest, execRequest, portForwardRequest, randomOutput, shell, startServer } from './support.ts';

const transports = ['spdy', 'websocket'] as const;
type Transport = (typeof transports)[number];

const bulkBytes = 64 * 1024 * 1024;

const digest = async (stream: AsyncIterable<Buffer>): Promise<string> => {
  const hash = createHash('sha256');
  for await (const chunk of stream) hash.update(chunk);
  return hash.digest('hex');
};

const flagsOf = (request: StreamingRequest): readonly string[] =>
  request.kind === 'PortForward'
    ? []
    : [`-tty=${request.tty}`, `-stdin=${request.stdin}`, `-stdout=${request.stdout}`, `-stderr=${request.stderr}`];

describe('client-go', () => {
  before(() => streamingClient(), { timeout: 600_000 });

  /** A client in a session of `request`, the server being made for it. */
  const session = async (
    t: TestContext,
    transport: Transport,
    request: StreamingRequest,
    backend: Partial<StreamingBackend> = { exec: shell },
    flags: readonly string[] = [],
  ): Promise<ClientProcess> => {
    const { server } = await startServer(t, backend);
    return startClient(t, ['exec', '-transport', transport, ...flagsOf(request), ...flags, server.urlFor(request)]);
  };

  for (const transport of transports) {
    describe(`over ${transport}`, () => {
      it('gets back what it sends, and the end of its stdin ends the command', async (t) => {
        const client = await session(t, transport, execRequest(['cat'], 'stdin stdout'));
        client.stdin.end('hello');
        assert.equal(await text(client.stdout), 'hello');
        assert.deepEqual(await client.ending, { exitCode: 0, error: '' });
      });

      it('tells stdout from stderr', async (t) => {
        const client = await session(t, transport, execRequest(['both'], 'stdout stderr'));
        const [stdout, stderr] = await Promise.all([text(client.stdout), text(client.stderr)]);
        assert.deepEqual([stdout, stderr], ['to stdout', 'to stderr']);
        assert.equal((await client.ending).error, '');
      });

      for (const exitCode of [1, 3, 255]) {
        it(`learns the exit code ${exitCode}`, async (t) => {
          const client = await session(t, transport, execRequest(['exit', String(exitCode)], 'stdout'));
          assert.equal(await text(client.stdout), 'before the end');
          const error = `command terminated with exit code ${exitCode}`;
          assert.deepEqual(await client.ending, { exitCode, error });
        });
      }

      it('is told why a command could not be run', async (t) => {
        const client = await session(t, transport, execRequest(['nonsense'], 'stdout'));
        const { error } = await client.ending;
        assert.equal(error, 'Internal error occurred: error executing command in container: no such program: nonsense');
      });

      it('has the sizes of its terminal heard', async (t) => {
        const request = execRequest(['sizes', '2'], 'tty stdin stdout');
        const client = await session(t, transport, request, { exec: shell }, ['-resize', '80x24,132x50']);
        assert.deepEqual(JSON.parse(await text(client.stdout)), [
          { width: 80, height: 24 },
          { width: 132, height: 50 },
        ]);
        assert.equal((await client.ending).error, '');
      });

      it('gets 64 MiB of output as they were written', async (t) => {
        const sent = createHash('sha256');
        const client = await session(t, transport, execRequest(['produce'], 'stdout'), {
          exec: async (_, { stdout }) => {
            assert.ok(stdout);
            const bytes = function* () {
              for (const chunk of randomOutput(bulkBytes)) {
                sent.update(chunk);
                yield chunk;
              }
            };
            await pipeline(bytes(), stdout);
            return { exitCode: 0 };
          },
        });
        const received = await digest(client.stdout);
        assert.deepEqual(await client.ending, { exitCode: 0, error: '' });
        assert.equal(received, sent.digest('hex'));
      });

      it('sends 64 MiB of input, which arrive as they were sent', async (t) => {
        const client = await session(t, transport, execRequest(['consume'], 'stdin stdout'), {
          exec: async (_, { stdin, stdout }) => {
            assert.ok(stdin);
            stdout?.write(await digest(stdin as AsyncIterable<Buffer>));
            return { exitCode: 0 };
          },
        });
        const sent = createHash('sha256');
        const bytes = function* () {
          for (const chunk of randomOutput(bulkBytes)) {
            sent.update(chunk);
            yield chunk;
          }
        };
        await pipeline(bytes(), client.stdin);
        const received = await text(client.stdout);
        assert.deepEqual(await client.ending, { exitCode: 0, error: '' });
        assert.equal(received, sent.digest('hex'));
      });

      it('learns the exit code of a command that ends without reading its input', async (t) => {
        const client = await session(t, transport, execRequest(['exit', '4'], 'stdin stdout'));
        void pipeline(randomOutput(8 * 1024 * 1024), client.stdin).catch(() => undefined);
        client.stdout.resume();
        assert.equal((await client.ending).exitCode, 4);
      });

      it('attaches', async (t) => {
        const client = await session(t, transport, attachRequest('stdin stdout'), {
          attach: async (_, { stdin, stdout }) => {
            assert.ok(stdin && stdout);
            await pipeline(stdin, stdout);
          },
        });
        client.stdin.end('attached');
        assert.equal(await text(client.stdout), 'attached');
        assert.deepEqual(await client.ending, { exitCode: 0, error: '' });
      });

      it('has its session aborted when it is killed', async (t) => {
        const { promise: aborted, resolve } = Promise.withResolvers<void>();
        const client = await session(t, transport, execRequest(['sleep'], 'stdin stdout'), {
          exec: async (request, streams) => {
            streams.stdout?.write('up');
            const result = await shell(request, streams);
            resolve();
            return result;
          },
        });
        await once(client.stdout, 'data');
        client.child.kill('SIGKILL');
        await aborted;
      });

      it('forwards ports, each connection for itself, with half-closing', async (t) => {
        const echo = createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket));
        echo.listen(0, '127.0.0.1');
        await once(echo, 'listening');
        t.after(() => echo.close());
        const { port: echoPort } = echo.address() as { port: number };
        const asked: number[] = [];
        const { server } = await startServer(t, {
          portForward: async (_, port, streams) => {
            asked.push(port);
            const { input, output } = await streams;
            if (port !== 8080) throw new FailureError('HostFailed', `nobody listens on ${port}`);
            const target = connect({ port: echoPort, host: '127.0.0.1', allowHalfOpen: true });
            await Promise.all([pipeline(input, target), pipeline(target, output)]);
          },
        });
        const open = async (port: number): Promise<{ readonly client: ClientProcess; readonly localPort: number }> => {
          const url = server.urlFor(portForwardRequest());
          const client = await startClient(t, ['forward', '-transport', transport, url, String(port)]);
          const [line] = (await once(client.stdout, 'data')) as [Buffer];
          return { client, localPort: Number(/127\.0\.0\.1:(\d+)/.exec(line.toString())?.[1]) };
        };
        const { localPort } = await open(8080);
        const talk = async (bytes: Buffer): Promise<Buffer> => {
          const socket = connect({ port: localPort, host: '127.0.0.1', allowHalfOpen: true });
          socket.end(bytes);
          return buffer(socket as Readable);
        };
        const sent = [1, 100, 3_000_000].map((size) => Buffer.concat([...randomOutput(size)]));
        const received = await Promise.all(sent.map(talk));
        for (const [index, bytes] of received.entries()) assert.ok(bytes.equals(sent[index] ?? Buffer.alloc(0)));
        assert.deepEqual(asked, [8080, 8080, 8080]);

        const refused = await open(81);
        const errors = once(refused.client.stderr, 'data');
        connect({ port: refused.localPort, host: '127.0.0.1' })
          .resume()
          .on('error', () => undefined);
        assert.match(String(await errors), /error forwarding port 81 to pod pod: nobody listens on 81/);
      });
    });
  }

  const inWords = 'error executing remote command: command terminated with exit code 3';
  for (const [protocol, ending] of [
    ['v4.channel.k8s.io', { exitCode: 3, error: 'command terminated with exit code 3' }],
    ['v3.channel.k8s.io', { exitCode: 0, error: inWords }],
    ['v2.channel.k8s.io', { exitCode: 0, error: inWords }],
    // A client of the first version may stop at the end of stdout, before it has read the error.
    ['channel.k8s.io', null],
  ] as const) {
    for (const transport of transports) {
      it(`speaks ${protocol} over ${transport}`, async (t) => {
        const request = execRequest(['exit', '3'], 'stdout');
        const client = await session(t, transport, request, { exec: shell }, ['-protocols', protocol]);
        assert.equal(await text(client.stdout), 'before the end');
        const told = await client.ending;
        if (ending !== null) assert.deepEqual(told, ending);
      });
    }
  }

  it('is refused with a URL that was used', async (t) => {
    const { server } = await startServer(t, { exec: shell });
    const url = server.urlFor(execRequest(['exit', '0'], 'stdout'));
    for (const transport of transports) {
      const first = await startClient(t, ['exec', '-transport', transport, '-stdout', url]);
      const { error } = await first.ending;
      if (transport === 'spdy') assert.equal(error, '');
      else assert.match(error, /404/);
    }
  });
});
