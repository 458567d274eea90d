/** Who is at the other end of connections, by real ones: nothing is kept of one that has gone, however soon it went. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createPeers } from '../../../src/adapters/cri/peers.ts';
import { eventually } from '../../support/pods.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** In one of ten its end comes while its process is looked at. */
const connections = 300;
/** As peers.ts numbers them. */
const addresses = Array.from({ length: connections }, (_, index) => `unix:${index + 1}`);

interface Tested {
  readonly path: string;
  readonly known: () => readonly string[];
  readonly admitted: () => number;
  readonly settled: () => number;
}

const listen = async (t: TestContext): Promise<Tested> => {
  const path = join(await tempDir(t), 'cri.sock');
  const peers = createPeers();
  let [admitted, settled] = [0, 0];
  const admit = async (socket: Socket): Promise<void> => {
    try {
      await peers.admit(socket);
      admitted += 1;
      socket.resume();
    } catch {
      socket.destroy();
    } finally {
      settled += 1;
    }
  };
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    void admit(socket);
  });
  server.listen(path);
  await once(server, 'listening');
  t.after(() => server.close());
  return {
    path,
    known: () => addresses.filter((address) => peers.callerAt(address) !== null),
    admitted: () => admitted,
    settled: () => settled,
  };
};

test('a peer is known by its process while it is connected', { timeout: 20_000 }, async (t) => {
  const { path, known, admitted } = await listen(t);
  const client = connect(path);
  await eventually('it is admitted', async () => admitted() === 1);
  assert.deepEqual(known(), ['unix:1']);
  client.destroy();
  await eventually('it is forgotten', async () => known().length === 0);
});

test('of one that goes while its process is looked at nothing stays', { timeout: 20_000 }, async (t) => {
  const { path, known, settled } = await listen(t);
  for (let connection = 0; connection < connections; connection += 1) {
    const client = connect(path);
    client.on('error', () => undefined);
    await once(client, 'connect');
    client.destroy();
  }
  await eventually('all were looked at', async () => settled() === connections);
  await eventually('none is known', async () => known().length === 0);
});
