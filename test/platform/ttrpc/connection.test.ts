/** ttrpc client and server against each other and against raw bytes, over unix sockets as shims use them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createTtrpcClient, type TtrpcClient } from '../../../src/platform/ttrpc/client.ts';
import {
  createFrameReader,
  encodeFrame,
  type Frame,
  FrameType,
  frameDataBytesMax,
} from '../../../src/platform/ttrpc/frame.ts';
import { callMethod, handleMethod } from '../../../src/platform/ttrpc/method.ts';
import type { UnixListener } from '../../../src/platform/linux/unix-listener.ts';
import { listenTtrpc, type TtrpcServices } from '../../../src/platform/ttrpc/server.ts';
import { hasStatus, isClosed, isTimeout, TtrpcStatusError } from '../../../src/platform/ttrpc/status.ts';
import { TaskDefinition } from '../../../src/wire/runtime/task/v3/shim.ts';
import { Request, Response } from '../../../src/wire/ttrpc.ts';
import { GrpcCode } from '../../../src/domain/model/errors.ts';

const service = 'test.Service';
const connectMethod = TaskDefinition.methods.connect;

/** Answers that a test lets go by hand. */
const gates = new Map<string, () => void>();

const services: TtrpcServices = {
  [service]: {
    Echo: (payload) => Promise.resolve(payload),
    Held: async (payload) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      gates.set(payload.toString(), resolve);
      await promise;
      return payload;
    },
    Fails: () => Promise.reject(new TtrpcStatusError(GrpcCode.FAILED_PRECONDITION, 'not now')),
    Breaks: () => Promise.reject(new Error('broken')),
    Large: (payload) => Promise.resolve(Buffer.alloc(Number(payload.toString()))),
    Metadata: (_payload, { metadata }) => Promise.resolve(Buffer.from(metadata.get('some-key') ?? 'none')),
    Connect: handleMethod(connectMethod, ({ id }) => Promise.resolve({ shimPid: id.length, taskPid: 2, version: '3' })),
  },
};

describe('ttrpc over a unix socket', () => {
  let dir: string;
  let path: string;
  let listener: UnixListener;

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'scribe-ttrpc-'));
    path = join(dir, 'socket');
    listener = await listenTtrpc(path, services, { callsMax: 4 });
  });
  after(async () => {
    await listener.close();
    await rm(dir, { recursive: true });
  });

  const dial = (): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect(path, () => {
        resolve(socket);
      });
      socket.on('error', reject);
    });
  const withClient = async (use: (client: TtrpcClient) => Promise<void>): Promise<void> => {
    const client = createTtrpcClient(await dial(), 'the test server');
    try {
      await use(client);
    } finally {
      client.close();
      await client.closed;
    }
  };
  const call = (client: TtrpcClient, method: string, payload = '', timeoutMs: number | null = 5000): Promise<Buffer> =>
    client.call(service, method, Buffer.from(payload), { timeoutMs });
  const release = (name: string): void => {
    gates.get(name)?.();
    gates.delete(name);
  };
  const held = async (name: string): Promise<void> => {
    while (!gates.has(name)) await setImmediate();
  };

  it('gives the socket to root alone', async () => {
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  it('answers side by side and out of order', () =>
    withClient(async (client) => {
      const order: string[] = [];
      const first = call(client, 'Held', 'first').then(() => order.push('first'));
      const second = call(client, 'Held', 'second').then(() => order.push('second'));
      await held('second');
      release('second');
      await second;
      release('first');
      await first;
      assert.deepEqual(order, ['second', 'first']);
    }));

  it('knows an empty answer from none', () =>
    withClient(async (client) => {
      assert.equal((await call(client, 'Echo')).length, 0);
    }));

  it('names unknown services and methods', () =>
    withClient(async (client) => {
      await assert.rejects(
        client.call('no.Service', 'Nope', Buffer.alloc(0), { timeoutMs: 1000 }),
        (error) => hasStatus(error, GrpcCode.UNIMPLEMENTED) && String(error).endsWith('service no.Service'),
      );
      await assert.rejects(
        call(client, 'Nope'),
        (error) => hasStatus(error, GrpcCode.UNIMPLEMENTED) && String(error).endsWith('method Nope'),
      );
      for (const name of ['__proto__', 'constructor', 'toString']) {
        await assert.rejects(call(client, name), (error) => hasStatus(error, GrpcCode.UNIMPLEMENTED));
        await assert.rejects(client.call(name, 'call', Buffer.alloc(0), { timeoutMs: 1000 }), (error) =>
          hasStatus(error, GrpcCode.UNIMPLEMENTED),
        );
      }
    }));

  it('passes on codes and messages of failures', () =>
    withClient(async (client) => {
      await assert.rejects(call(client, 'Fails'), { name: 'TtrpcStatusError', code: 9, message: 'not now' });
      await assert.rejects(call(client, 'Breaks'), { code: GrpcCode.UNKNOWN, message: 'broken' });
    }));

  it('lower-cases metadata keys', () =>
    withClient(async (client) => {
      const answer = await client.call(service, 'Metadata', Buffer.alloc(0), {
        timeoutMs: 1000,
        metadata: { 'Some-Key': 'value' },
      });
      assert.equal(answer.toString(), 'value');
    }));

  it('carries typed methods, and refuses payloads that are no messages', () =>
    withClient(async (client) => {
      const answer = await callMethod(client, service, connectMethod, { id: 'abc' }, { timeoutMs: 1000 });
      assert.deepEqual(answer, { shimPid: 3, taskPid: 2, version: '3' });
      await assert.rejects(client.call(service, 'Connect', Buffer.from([0x0a, 0x7f]), { timeoutMs: 1000 }), (error) =>
        hasStatus(error, GrpcCode.INVALID_ARGUMENT),
      );
    }));

  it('forgets a call at its deadline and drops the late answer', () =>
    withClient(async (client) => {
      const late = call(client, 'Held', 'late', 30);
      await assert.rejects(late, isTimeout);
      release('late');
      assert.equal((await call(client, 'Echo', 'still here')).toString(), 'still here');
    }));

  it('refuses what is above the frame limit on either side, and goes on', () =>
    withClient(async (client) => {
      await assert.rejects(
        client.call(service, 'Echo', Buffer.alloc(frameDataBytesMax), { timeoutMs: 1000 }),
        (error) => hasStatus(error, GrpcCode.RESOURCE_EXHAUSTED),
      );
      await assert.rejects(call(client, 'Large', String(frameDataBytesMax)), (error) =>
        hasStatus(error, GrpcCode.RESOURCE_EXHAUSTED),
      );
      assert.equal((await call(client, 'Large', String(frameDataBytesMax - 100))).length, frameDataBytesMax - 100);
    }));

  it('bounds the calls under way on a connection', () =>
    withClient(async (client) => {
      const names = ['a', 'b', 'c', 'd'];
      const under = names.map((name) => call(client, 'Held', name));
      await held('d');
      await assert.rejects(call(client, 'Echo'), (error) => hasStatus(error, GrpcCode.RESOURCE_EXHAUSTED));
      names.forEach(release);
      await Promise.all(under);
      assert.equal((await call(client, 'Echo', 'x')).toString(), 'x');
    }));

  it('fails all pending calls at once when the connection closes', () =>
    withClient(async (client) => {
      const pending = [call(client, 'Held', 'x', null), call(client, 'Held', 'y', null)];
      await held('y');
      client.close();
      for (const one of pending) await assert.rejects(one, isClosed);
      await assert.rejects(call(client, 'Echo'), isClosed);
      assert.equal(client.isOpen(), false);
      release('x');
      release('y');
    }));

  /** Sends raw bytes and collects answers by stream id. */
  const raw = async (
    bytes: readonly Uint8Array[],
    answers: number,
    halfClose = false,
  ): Promise<Map<number, Response>> => {
    const socket = await dial();
    const got = new Map<number, Response>();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    socket.on(
      'data',
      createFrameReader((frame) => {
        assert.equal(frame.type, FrameType.Response);
        got.set(frame.streamId, Response.decode((frame as Frame).data));
        if (got.size === answers) resolve();
      }),
    );
    for (const piece of bytes) socket.write(piece);
    if (halfClose) socket.end();
    await done;
    socket.destroy();
    return got;
  };
  const request = (streamId: number, method = 'Echo', extra: Partial<Request> = {}): Buffer =>
    encodeFrame(
      streamId,
      FrameType.Request,
      0,
      Request.encode({ service, method, payload: Buffer.from('x'), timeoutNano: '0', metadata: [], ...extra }).finish(),
    );

  it('answers what breaks the protocol with a code, and goes on', async () => {
    const oversize = Buffer.alloc(10);
    oversize.writeUInt32BE(frameDataBytesMax + 5, 0);
    oversize.writeUInt32BE(5, 4);
    oversize.writeUInt8(FrameType.Request, 8);
    const got = await raw(
      [
        request(2),
        encodeFrame(3, FrameType.Request, 0, Buffer.from([0x0a, 0xff])),
        oversize,
        Buffer.alloc(frameDataBytesMax + 5),
        encodeFrame(9, 77, 0, Buffer.from('of no known type')),
        encodeFrame(3, FrameType.Data, 1, Buffer.from('no stream')),
        request(9),
      ],
      4,
    );
    assert.deepEqual(
      [...got].map(([id, { status }]) => [id, status?.code ?? 0]).sort(([a], [b]) => Number(a) - Number(b)),
      [
        [2, GrpcCode.INVALID_ARGUMENT],
        [3, GrpcCode.INVALID_ARGUMENT],
        [5, GrpcCode.RESOURCE_EXHAUSTED],
        [9, 0],
      ],
    );
  });

  it('refuses a stream id that comes again', async () => {
    const socket = await dial();
    const codes: number[] = [];
    const { promise: done, resolve } = Promise.withResolvers<void>();
    socket.on(
      'data',
      createFrameReader((frame) => {
        codes.push(Response.decode((frame as Frame).data).status?.code ?? 0);
        if (codes.length === 2) resolve();
      }),
    );
    socket.write(Buffer.concat([request(7), request(7)]));
    await done;
    socket.destroy();
    assert.deepEqual(
      codes.sort((a, b) => a - b),
      [0, GrpcCode.INVALID_ARGUMENT],
    );
  });

  it('answers pending calls after the peer has closed its half', async () => {
    const answers = raw([request(1, 'Held', { payload: Buffer.from('half') })], 1, true);
    await held('half');
    release('half');
    assert.equal((await answers).get(1)?.payload.toString(), 'half');
  });

  it('answers DEADLINE_EXCEEDED at the deadline of the caller', async () => {
    const got = await raw([request(1, 'Held', { payload: Buffer.from('slow'), timeoutNano: '20000000' })], 1);
    assert.equal(got.get(1)?.status?.code, GrpcCode.DEADLINE_EXCEEDED);
    release('slow');
  });

  it('takes the place of a dead socket, never of a file', async () => {
    const stale = join(dir, 'stale');
    const dead: Server = createServer();
    await once(dead.listen(stale), 'listening');
    const taken = await listenTtrpc(stale, services);
    await taken.close();
    dead.close();
    const file = join(dir, 'file');
    await writeFile(file, 'precious');
    await assert.rejects(listenTtrpc(file, services), /in the way/);
    await assert.rejects(listenTtrpc(join(dir, 'x'.repeat(120)), services), /longer than/);
  });
});

describe('a ttrpc client', () => {
  it('survives a server that answers garbage', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'scribe-ttrpc-'));
    const path = join(dir, 'socket');
    const answers = [
      encodeFrame(1, FrameType.Response, 0, Buffer.from([0xff, 0xff, 0xff])),
      encodeFrame(99, FrameType.Response, 0, Buffer.alloc(0)),
      encodeFrame(3, FrameType.Data, 1, Buffer.from('data')),
      encodeFrame(3, 200, 9, Buffer.from('what')),
    ];
    const oversize = Buffer.alloc(10);
    oversize.writeUInt32BE(0xffff_ffff, 0);
    oversize.writeUInt32BE(3, 4);
    oversize.writeUInt8(FrameType.Response, 8);
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        socket.write(Buffer.concat([...answers, oversize]));
      });
    });
    await once(server.listen(path), 'listening');
    const client = createTtrpcClient(connect(path), 'garbage');
    const first = client.call(service, 'A', Buffer.alloc(0), { timeoutMs: 2000 });
    const second = client.call(service, 'B', Buffer.alloc(0), { timeoutMs: 2000 });
    await assert.rejects(first, (error) => hasStatus(error, GrpcCode.INTERNAL));
    await assert.rejects(second, (error) => hasStatus(error, GrpcCode.RESOURCE_EXHAUSTED));
    assert.equal(client.isOpen(), true);
    client.close();
    await client.closed;
    server.close();
    await rm(dir, { recursive: true });
  });

  it('rejects calls when nobody listens', async () => {
    const client = createTtrpcClient(connect('/nonexistent/socket'), 'nobody');
    await assert.rejects(client.call(service, 'A', Buffer.alloc(0), { timeoutMs: 2000 }), isClosed);
    await client.closed;
  });
});
