/** NRI's multiplexing: ttrpc both ways over one stream, the frames as Go plugins bear them, and streams that lie. */
import assert from 'node:assert/strict';
import { duplexPair } from 'node:stream';
import { describe, it } from 'node:test';
import { createMux, PLUGIN_CONN, RUNTIME_CONN } from '../../../src/adapters/nri/mux.ts';
import { createTtrpcClient } from '../../../src/platform/ttrpc/client.ts';
import { encodeFrame, FrameType } from '../../../src/platform/ttrpc/frame.ts';
import { serveTtrpc } from '../../../src/platform/ttrpc/server.ts';

const echo = { 'test.Echo': { Say: async (payload: Uint8Array) => payload } };
const options = { timeoutMs: 30_000 };

const frameOf = (connId: number, body: Buffer): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(connId, 0);
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
};

describe("NRI's multiplexing", { timeout: 60_000 }, () => {
  it('carries calls of any size both ways at once', async () => {
    const [here, there] = duplexPair();
    const [runtime, plugin] = [createMux(here), createMux(there)];
    void serveTtrpc(plugin.connection(PLUGIN_CONN), echo);
    void serveTtrpc(runtime.connection(RUNTIME_CONN), echo);
    const toPlugin = createTtrpcClient(runtime.connection(PLUGIN_CONN), 'the plugin');
    const toRuntime = createTtrpcClient(plugin.connection(RUNTIME_CONN), 'the runtime');
    const sizes = [0, 1, 4000, 4096, 4097, 60_000, 3_500_000];
    await Promise.all(
      sizes.flatMap((size) =>
        [toPlugin, toRuntime].map(async (client) => {
          const payload = Buffer.alloc(size, size % 251);
          assert.ok((await client.call('test.Echo', 'Say', payload, options)).equals(payload), `${size} bytes`);
        }),
      ),
    );
    runtime.close();
    assert.equal(await plugin.closed, undefined);
  });

  it('sends short frames of ttrpc whole, and of long ones the header alone and then the rest', async () => {
    const [here, there] = duplexPair();
    const connection = createMux(here).connection(PLUGIN_CONN);
    const bodies: number[] = [];
    for (const size of [100, 4086, 4087, 100_000]) {
      connection.write(encodeFrame(1, FrameType.Request, 0, Buffer.alloc(size)));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await new Promise((resolve) => setImmediate(resolve));
    const all = there.read() as Buffer;
    for (let at = 0; at < all.length; at += 8 + all.readUInt32BE(at + 4)) {
      assert.equal(all.readUInt32BE(at), PLUGIN_CONN);
      bodies.push(all.readUInt32BE(at + 4));
    }
    assert.deepEqual(bodies, [110, 4096, 10, 4087, 10, 100_000]);
  });

  it('lets short frames of ttrpc that wait together share one', async () => {
    const [here, there] = duplexPair();
    const connection = createMux(here).connection(PLUGIN_CONN);
    for (const size of [10, 1000, 2000, 1500, 5000, 20, 20])
      connection.write(encodeFrame(1, FrameType.Request, 0, Buffer.alloc(size)));
    const bodies: number[] = [];
    const bytes: Buffer[] = [];
    while (bodies.length < 6) {
      await new Promise((resolve) => setImmediate(resolve));
      bytes.push((there.read() as Buffer | null) ?? Buffer.alloc(0));
      bodies.length = 0;
      const all = Buffer.concat(bytes);
      for (let at = 0; at + 8 <= all.length; at += 8 + all.readUInt32BE(at + 4)) bodies.push(all.readUInt32BE(at + 4));
    }
    // The first went before there was another.
    assert.deepEqual(bodies, [20, 1010 + 2010, 1510, 10, 5000, 30 + 30]);
  });

  it('reads no more than is taken from any connection', async () => {
    const [here, there] = duplexPair();
    const mux = createMux(here);
    const connection = mux.connection(RUNTIME_CONN);
    const body = Buffer.alloc(60_000);
    let written = 0;
    while (there.write(frameOf(RUNTIME_CONN, body)) || written < 100) {
      written += 1;
      await new Promise((resolve) => setImmediate(resolve));
      if (written >= 1_000) break;
    }
    assert.ok(connection.readableLength <= 300_000, `${connection.readableLength} bytes are held`);
    let taken = 0;
    const all = (written + 1) * body.length;
    connection.on('data', (chunk: Buffer) => {
      taken += chunk.length;
    });
    while (taken < all - body.length) await new Promise((resolve) => setImmediate(resolve));
  });

  it('puts frames together however they arrive, and drops those of connections that nobody knows', async () => {
    const [here, there] = duplexPair();
    const mux = createMux(here);
    const connection = mux.connection(RUNTIME_CONN);
    const heard: Buffer[] = [];
    connection.on('data', (chunk: Buffer) => heard.push(chunk));
    const bytes = Buffer.concat([
      frameOf(RUNTIME_CONN, Buffer.from('one')),
      frameOf(77, Buffer.from('nobody')),
      frameOf(RUNTIME_CONN, Buffer.alloc(0)),
      frameOf(RUNTIME_CONN, Buffer.from('two')),
    ]);
    for (const byte of bytes) there.write(Buffer.of(byte));
    there.end();
    await mux.closed;
    assert.equal(Buffer.concat(heard).toString(), 'onetwo');
  });

  it('ends at a frame that is above the limit, with all connections, and says why', async () => {
    const [here, there] = duplexPair();
    const mux = createMux(here);
    const client = createTtrpcClient(mux.connection(PLUGIN_CONN), 'the plugin');
    const call = client.call('test.Echo', 'Say', Buffer.alloc(0), options);
    there.write(Buffer.from([0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]));
    await assert.rejects(call, /closed before it answered/);
    assert.match(String(await mux.closed), /4294967295 bytes is above the limit/);
    assert.ok(mux.connection(RUNTIME_CONN).destroyed);
  });
});
