/** A forwarded connection passes every byte on, however slowly it is taken, and every end; nothing of it is left afterwards. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { PassThrough, Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, it, type TestContext } from 'node:test';
import { setImmediate as otherTurns } from 'node:timers/promises';
import { forward } from '../../../src/adapters/port-forward/forward.ts';
import { netnsOf } from '../../support/netns.ts';

const LARGE_BYTES = 3_000_000;

const portOfPod = async (t: TestContext, serve: (socket: Socket) => void): Promise<number> => {
  const server = createServer({ allowHalfOpen: true }, serve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as { port: number }).port;
};

/** Holds much, and looks at each piece some turns later: by then more has been read. */
const slowTaker = (): { readonly output: Writable; readonly taken: () => Buffer } => {
  const pieces: Buffer[] = [];
  const output = new Writable({
    highWaterMark: 1_000_000,
    write: (chunk: Buffer, _encoding, done) => {
      void (async () => {
        for (let turn = 0; turn < 5; turn += 1) await otherTurns();
        pieces.push(Buffer.from(chunk));
        done();
      })();
    },
  });
  return { output, taken: () => Buffer.concat(pieces) };
};

const never = new AbortController().signal;

describe('a forwarded connection', { timeout: 20_000 }, () => {
  it('brings what the pod says whole to a slow client, and each end to the other side', async (t) => {
    const said = randomBytes(LARGE_BYTES);
    const asked: Promise<Buffer>[] = [];
    const port = await portOfPod(t, (socket) => {
      asked.push(buffer(socket));
      socket.end(said);
    });
    const input = new PassThrough();
    const { output, taken } = slowTaker();
    const forwarded = forward({ input, output }, { port, netnsPath: null }, never);
    input.end('question');
    assert.deepEqual(await forwarded, { toPodBytes: 8, fromPodBytes: LARGE_BYTES });
    assert.ok(output.writableFinished || (await once(output, 'finish')));
    assert.ok(taken().equals(said), 'what came is not what was said');
    assert.equal(String(await asked[0]), 'question');
  });

  it('is over for the client when the pod breaks it, and for the pod when the client goes', async (t) => {
    const gone = Promise.withResolvers<void>();
    const port = await portOfPod(t, (socket) => {
      socket.on('error', () => undefined).on('close', () => gone.resolve());
      socket.on('data', (said) => String(said) === 'break' && socket.resetAndDestroy());
    });
    const broken = { input: new PassThrough(), output: new PassThrough() };
    broken.input.write('break');
    assert.equal((await forward(broken, { port, netnsPath: null }, never)).fromPodBytes, 0);
    assert.equal((await buffer(broken.output)).length, 0);
    const client = new AbortController();
    const left = forward(
      { input: new PassThrough(), output: new PassThrough() },
      { port, netnsPath: null },
      client.signal,
    );
    client.abort();
    assert.deepEqual(await left, { toPodBytes: 0, fromPodBytes: 0 });
    await gone.promise;
  });

  it('is made in the namespace of the pod, and leaves the thread in its own', async (t) => {
    const { path: netnsPath } = await netnsOf(t);
    const before = readlinkSync('/proc/thread-self/ns/net');
    const port = await portOfPod(t, (socket) => socket.end('not the pod'));
    const streams = { input: new PassThrough(), output: new PassThrough() };
    await assert.rejects(forward(streams, { port, netnsPath }, never), /ECONNREFUSED 127\.0\.0\.1.*; .*::1/);
    assert.equal(readlinkSync('/proc/thread-self/ns/net'), before);
    const refused = forward(streams, { port, netnsPath: `${netnsPath}-gone` }, never);
    await assert.rejects(refused, /ENOENT.*-gone/);
  });
});
