/** The CRI socket against bugs, big messages, clients that go away, and clients that mean harm. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, stat } from 'node:fs/promises';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { describe, it } from 'node:test';
import { ListContainersRequest, RuntimeServiceDefinition } from '../../../src/wire/cri/api.ts';
import { FailureError, GrpcCode } from '../../../src/domain/model/errors.ts';
import { readProcessStat } from '../../../src/platform/linux/processes.ts';
import type { CallReply, SubmitCall } from '../../../src/engine/ports.ts';
import { codeOf } from '../../../scripts/lib/cri-client.ts';
import { eventually } from '../../support/pods.ts';
import { runOk } from '../../support/process.ts';
import {
  container,
  idOf,
  type RawClient,
  rawClient,
  startEngine,
  startServer,
  testModel,
  type TestServer,
} from './support.ts';

const service = RuntimeServiceDefinition.fullName;
const sizeMax = 16 * 1024 * 1024;

const hasCode =
  (code: number, details = /^/) =>
  (error: unknown): boolean => {
    assert.equal(codeOf(error), code, String(error));
    assert.match((error as { details: string }).details, details);
    return true;
  };

const stillServes = async ({ cri }: TestServer): Promise<void> => {
  assert.equal((await cri.runtime.version({})).runtimeName, 'scribe');
};

/** A connection with nothing behind it yet. */
const dial = async (path: string): Promise<Socket> => {
  const socket = connect(path);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
};

describe('failures', { timeout: 20_000 }, () => {
  it('an unexpected exception is INTERNAL, tells the client nothing, and tells the daemon all', async (t) => {
    const bug = new TypeError("secret: can't read x of undefined");
    const throws = (): never => {
      throw bug;
    };
    const view = testModel();
    view.put({ containers: [container(idOf('c'), idOf('a'))] });
    const server = await startServer(t, {
      view,
      submit: () => Promise.reject(bug),
      parts: {
        imageFsInfo: throws,
        statsOfAll: () => Promise.reject(bug),
        events: { subscribe: () => Promise.reject(bug), passedOver: () => 0 },
      },
    });
    const { runtime, image } = server.cri;
    const vague = hasCode(GrpcCode.INTERNAL, /^\w+ failed unexpectedly; see the daemon's log\.$/);
    await assert.rejects(runtime.startContainer({ containerId: 'c' }), vague);
    await assert.rejects(image.imageFsInfo({}), vague);
    await assert.rejects(runtime.listContainerStats({}), vague);
    await assert.rejects(runtime.getContainerEvents({})[Symbol.asyncIterator]().next(), vague);
    assert.deepEqual(server.bugs, [bug, bug, bug, bug]);
    assert.deepEqual(
      server.reads.map(({ method, code }) => [method, code]),
      [
        ['ImageFsInfo', GrpcCode.INTERNAL],
        ['ListContainerStats', GrpcCode.INTERNAL],
        ['GetContainerEvents', GrpcCode.INTERNAL],
      ],
    );
    await stillServes(server);
  });

  it('a failure keeps its code and words, whatever they hold, as far as headers can', async (t) => {
    let message = '';
    const fails: SubmitCall = () =>
      Promise.resolve({ outcome: { ok: false, failure: { reason: 'CniFailed', message } }, attachment: null });
    const server = await startServer(t, { submit: fails });
    const call = () => server.cri.runtime.startContainer({ containerId: 'c' });
    for (message of ['plain', 'ünï 100% \n\r\0 "🙂"', '%zz', '']) {
      await assert.rejects(call(), (error) => {
        assert.equal(codeOf(error), GrpcCode.UNKNOWN);
        assert.equal((error as { details: string }).details, message);
        return true;
      });
    }
    for (message of ['🙂'.repeat(1_000_000), `x${'🙂'.repeat(100_000)}`, '\ud800 alone']) {
      await assert.rejects(call(), hasCode(GrpcCode.UNKNOWN));
    }
    await stillServes(server);
  });

  it('a message that cannot be decoded is refused', async (t) => {
    const server = await startServer(t);
    const client = rawClient(t, server.socket);
    // A field that ends before its length does, a number that never ends, and a kind of field that there is not.
    const wireType7 = Buffer.alloc(1_000, 0x0f);
    for (const bytes of [Buffer.from([0x0a, 0xff]), Buffer.from('ffffffffffffffffffff', 'hex'), wireType7]) {
      const { code } = await client.call(`/${service}/ListContainers`, bytes);
      assert.notEqual(code, GrpcCode.OK);
    }
    assert.deepEqual(server.bugs, []);
    await stillServes(server);
  });
});

/** Lists containers with a request of so many bytes and a few. */
const asking = (client: RawClient) => (bytes: number) => {
  // A field that nobody knows: tag 1000, length-delimited.
  const length = [0, 7, 14, 21].map((shift) => ((bytes >> shift) & 0x7f) | (shift < 21 ? 0x80 : 0));
  const request = Buffer.concat([Buffer.from([0xc2, 0x3e, ...length]), Buffer.alloc(bytes)]);
  return client.call(`/${service}/ListContainers`, request);
};

describe('sizes', { timeout: 30_000 }, () => {
  it('requests and replies may have as much as is configured, and no more', async (t) => {
    const messageBytesMax = 1024 * 1024;
    const view = testModel();
    const server = await startServer(t, { view, parts: { messageBytesMax } });
    const client = rawClient(t, server.socket);
    const ask = asking(client);
    assert.equal((await ask(messageBytesMax - 6)).code, GrpcCode.OK);
    assert.equal((await ask(messageBytesMax)).code, GrpcCode.RESOURCE_EXHAUSTED);
    const config = { metadata: { name: 'x'.repeat(messageBytesMax) } };
    view.put({ containers: [container(idOf('c1'), idOf('a'), { config })] });
    assert.equal((await client.call(`/${service}/ListContainers`)).code, GrpcCode.RESOURCE_EXHAUSTED);
    await stillServes(server);
  });

  it('requests and replies may have 16 MiB and no more', async (t) => {
    const view = testModel();
    const server = await startServer(t, { view });
    const client = rawClient(t, server.socket);
    const ask = asking(client);
    assert.equal((await ask(sizeMax - 6)).code, GrpcCode.OK);
    assert.equal((await ask(sizeMax)).code, GrpcCode.RESOURCE_EXHAUSTED);

    const config = { metadata: { name: 'x'.repeat(sizeMax / 2) } };
    view.put({ containers: [container(idOf('c1'), idOf('a'), { config })] });
    assert.ok((await client.call(`/${service}/ListContainers`)).bytes.length > sizeMax / 2);
    view.put({ containers: [container(idOf('c2'), idOf('a'), { config })] });
    assert.equal((await client.call(`/${service}/ListContainers`)).code, GrpcCode.RESOURCE_EXHAUSTED);
    await stillServes(server);
  });
});

describe('callers', { timeout: 20_000 }, () => {
  it('C10: a call is journaled with who called, as the kernel tells it', async (t) => {
    const { engine, view, recorded } = await startEngine(t);
    const server = await startServer(t, { view, submit: engine.call });
    await server.cri.runtime.stopContainer({ containerId: 'mine' });
    const client = new URL('../../../scripts/lib/cri-client.ts', import.meta.url).href;
    const script = `
      const { readFileSync } = await import('node:fs');
      const { criClient } = await import(${JSON.stringify(client)});
      const cri = criClient(${JSON.stringify(server.socket)});
      await cri.runtime.stopContainer({ containerId: 'of a child' });
      const stat = readFileSync('/proc/self/stat', 'utf8');
      console.log(JSON.stringify([process.pid, stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]]));
      cri.close();
    `;
    const [childPid, childTicks] = JSON.parse(await runOk([process.execPath, '--input-type=module', '-e', script])) as [
      number,
      string,
    ];
    const mine = await readProcessStat(process.pid);
    const executable = process.execPath;
    assert.deepEqual(
      recorded('call.received').map(({ caller }) => caller),
      [
        { pid: process.pid, uid: process.getuid?.(), executable, startTicks: mine?.startTicks },
        { pid: childPid, uid: process.getuid?.(), executable, startTicks: childTicks },
      ],
    );
  });

  it("C10: the caller's deadline is journaled, and none where there is none", async (t) => {
    const { engine, view, recorded } = await startEngine(t);
    const server = await startServer(t, { view, submit: engine.call });
    await server.cri.runtime.stopContainer({ containerId: 'x' }, { timeoutMs: 30_000 });
    await server.cri.runtime.stopContainer({ containerId: 'x' }, { timeoutMs: Infinity });
    const [timed, endless] = recorded('call.received');
    const leftMs = Number(BigInt(timed?.deadlineNs ?? '0') / 1_000_000n) - Date.now();
    assert.ok(leftMs > 20_000 && leftMs <= 30_001, `${leftMs} ms`);
    assert.equal(endless?.deadlineNs, null);
  });

  it('the socket is for its owner and group only', async (t) => {
    const { socket } = await startServer(t);
    assert.equal((await stat(socket)).mode & 0o777, 0o660);
    // Of anybody else, though the directory lets them in.
    await chmod(dirname(socket), 0o755);
    const script = `require('net').connect(${JSON.stringify(socket)}).on('error', (e) => console.log(e.code))`;
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', process.execPath, '-e', script];
    assert.equal((await runOk(nobody)).trim(), 'EACCES');
  });
});

describe('the end of the daemon', { timeout: 60_000 }, () => {
  const versionOf = (server: TestServer) => server.cri.runtime.version({});
  const ending = hasCode(GrpcCode.UNAVAILABLE, /daemon is ending/);

  it('waits for calls under way, answers them, and takes no more', async (t) => {
    const answer = Promise.withResolvers<CallReply>();
    const server = await startServer(t, { submit: () => answer.promise });
    const call = server.cri.runtime.stopContainer({ containerId: 'any', timeout: '0' });
    await eventually('the call is taken', async () => (await versionOf(server)).version !== '');
    const drained = server.drain(60_000);
    await assert.rejects(versionOf(server), ending);
    answer.resolve({ outcome: { ok: true, value: {} }, attachment: null });
    assert.equal(await drained, 0);
    await call;
  });

  it('waits no longer than it may', async (t) => {
    const server = await startServer(t, { submit: () => new Promise(() => undefined) });
    const call = server.cri.runtime.stopContainer({ containerId: 'any', timeout: '0' });
    call.catch(() => undefined);
    await eventually('the call is taken', async () => (await versionOf(server)).version !== '');
    assert.equal(await server.drain(50), 1);
  });

  it('is told at once to those who only follow events', async (t) => {
    const server = await startServer(t);
    const followed = server.cri.runtime.getContainerEvents({})[Symbol.asyncIterator]().next();
    const told = assert.rejects(followed, ending);
    await eventually('somebody follows', async () => (await versionOf(server)).version !== '');
    assert.equal(await server.drain(60_000), 0);
    await told;
  });
});

describe('clients that go away', { timeout: 20_000 }, () => {
  const pulling = async (t: Parameters<typeof startEngine>[0]) => {
    const held = Promise.withResolvers<never>();
    const test = await startEngine(t, { PullImage: () => held.promise });
    const server = await startServer(t, { view: test.view, submit: test.engine.call });
    const fail = (): void => held.reject(new FailureError('RegistryFailed', 'The registry has gone.'));
    return { ...test, server, fail };
  };
  const image = { image: { image: 'registry.test/a:1' } };

  it('C5: a cancelled call detaches and runs on; a retry joins it', async (t) => {
    const { engine, server, recorded, fail } = await pulling(t);
    const abort = new AbortController();
    const first = server.cri.image.pullImage(image, { signal: abort.signal });
    await eventually('the pull runs', async () => Promise.resolve(engine.underWay().length === 1));
    abort.abort();
    await assert.rejects(first, hasCode(GrpcCode.CANCELLED));
    await eventually('it is detached', async () => Promise.resolve(recorded('call.detached').length === 1));
    assert.equal(engine.underWay().length, 1);
    const second = server.cri.image.pullImage(image);
    await eventually('it is retried', async () => Promise.resolve(recorded('call.received').length === 2));
    assert.equal(engine.underWay().length, 1);
    fail();
    await assert.rejects(second, hasCode(GrpcCode.UNAVAILABLE, /registry has gone/));
    assert.deepEqual(
      recorded('call.completed').map(({ detached }) => detached ?? false),
      [true, false],
    );
  });

  it('hands on the runtime handler that an image is pulled for', async (t) => {
    const effects: unknown[] = [];
    const test = await startEngine(t, {
      PullImage: (effect) => {
        effects.push(effect);
        return Promise.reject(new FailureError('RegistryFailed', 'That is enough.'));
      },
    });
    const { cri } = await startServer(t, { view: test.view, submit: test.engine.call });
    for (const runtimeHandler of ['kata', '']) {
      const asked = cri.image.pullImage({ image: { image: 'registry.test/a:1', runtimeHandler } });
      await assert.rejects(asked, hasCode(GrpcCode.UNAVAILABLE, /That is enough/));
    }
    const pull = { kind: 'PullImage', reference: 'registry.test/a:1', credentials: null };
    assert.deepEqual(effects, [{ ...pull, runtimeHandler: 'kata' }, pull]);
    const received = test.recorded('call.received').map(({ request }) => 'runtimeHandler' in request);
    assert.deepEqual(received, [true, false]);
  });

  it('C5: so does one whose deadline has passed, and one whose connection is cut', async (t) => {
    const { engine, server, recorded } = await pulling(t);
    const late = server.cri.image.pullImage(image, { timeoutMs: 100 });
    await assert.rejects(late, hasCode(GrpcCode.DEADLINE_EXCEEDED));
    await eventually('it is detached', async () => Promise.resolve(recorded('call.detached').length === 1));

    const session = connectHttp2('http://localhost', { createConnection: () => connect(server.socket) });
    session.on('error', () => undefined);
    const name = Buffer.from('registry.test/a:1');
    const spec = Buffer.concat([Buffer.from([0x0a, name.length]), name]);
    const message = Buffer.concat([Buffer.from([0x0a, spec.length]), spec]);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/runtime.v1.ImageService/PullImage',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => undefined);
    stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
    await eventually('the pull is asked for', async () => Promise.resolve(recorded('call.received').length === 2));
    session.destroy();
    await eventually('it is detached', async () => Promise.resolve(recorded('call.detached').length === 2));
    assert.equal(engine.underWay().length, 1);
    assert.deepEqual(server.bugs, []);
    await stillServes(server);
  });
});

describe('clients that mean harm', { timeout: 30_000 }, () => {
  it('many streams at once hold up nobody', async (t) => {
    const server = await startServer(t);
    const abort = new AbortController();
    const streams = Array.from({ length: 400 }, async () => {
      const events = server.cri.runtime.getContainerEvents({}, { signal: abort.signal });
      await assert.rejects(events[Symbol.asyncIterator]().next(), hasCode(GrpcCode.CANCELLED));
    });
    await Promise.all(Array.from({ length: 200 }, () => stillServes(server)));
    abort.abort();
    await Promise.all(streams);
    await stillServes(server);
  });

  it('streams that are reset as soon as they are opened do not crash the server', async (t) => {
    const server = await startServer(t);
    for (let round = 0; round < 3; round += 1) {
      const session = connectHttp2('http://localhost', { createConnection: () => connect(server.socket) });
      session.on('error', () => undefined);
      await once(session, 'connect');
      for (let n = 0; n < 3_000 && !session.destroyed && !session.closed; n += 1) {
        const stream = session.request({
          ':method': 'POST',
          ':path': `/${service}/${n % 2 === 0 ? 'ListContainers' : 'GetContainerEvents'}`,
          'content-type': 'application/grpc',
          te: 'trailers',
        });
        stream.on('error', () => undefined);
        if (n % 3 === 0) stream.end(Buffer.alloc(5));
        stream.close(constants.NGHTTP2_CANCEL);
        if (n % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await stillServes(server);
      session.destroy();
    }
    assert.deepEqual(server.bugs, []);
  });

  it('connections that say nothing, nonsense, half a preface, or end at once are no trouble', async (t) => {
    const server = await startServer(t);
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    const silent = await Promise.all(Array.from({ length: 20 }, () => dial(server.socket)));
    for (const bytes of [randomBytes(5_000), preface.subarray(0, 10), Buffer.concat([preface, randomBytes(5_000)])]) {
      const socket = await dial(server.socket);
      socket.write(bytes);
      await stillServes(server);
      socket.destroy();
    }
    for (let n = 0; n < 200; n += 1) (await dial(server.socket)).destroy();
    await stillServes(server);
    for (const socket of silent) socket.destroy();
    assert.deepEqual(server.bugs, []);
  });

  it('calls of unknown methods, wrong paths, and no content type are refused', async (t) => {
    const server = await startServer(t);
    const client = rawClient(t, server.socket);
    for (const path of [
      '/',
      '//',
      `/${service}/`,
      `/${service}/__proto__`,
      '/runtime.v1alpha2.RuntimeService/Version',
    ]) {
      assert.equal((await client.call(path)).code, GrpcCode.UNIMPLEMENTED, path);
    }
    const session = connectHttp2('http://localhost', { createConnection: () => connect(server.socket) });
    const stream = session.request({ ':method': 'GET', ':path': '/' });
    const [headers] = (await once(stream, 'response')) as [{ ':status': number }];
    assert.equal(headers[':status'], 415);
    session.destroy();
    const empty = await client.call(
      `/${service}/ListContainers`,
      ListContainersRequest.encode({ filter: undefined }).finish(),
    );
    assert.equal(empty.code, GrpcCode.OK);
  });
});
