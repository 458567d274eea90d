/**
 * Eight sessions at once, each with much output: all of it arrives, memory stays flat, and the loop is never held up.
 * SCRIBE_BULK_BYTES says how much each has (64 MiB unless told). Runs alone: it measures.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { before, describe, it, type TestContext } from 'node:test';
import { onCleanup } from '../../support/cleanup.ts';
import { startClient, streamingClient } from '../../support/streaming-client.ts';
import type { Cost } from './server-child.ts';

const sessions = 8;
const sizeBytes = Number(process.env['SCRIBE_BULK_BYTES'] ?? 64 * 1024 * 1024);
const growthBytesMax = 128 * 1024 * 1024;
/** Far above what a busy machine takes away from a process, far below what waiting for a whole stream would cost. */
const delayMsMax = 500;

const startServer = async (t: TestContext) => {
  const argv = [join(import.meta.dirname, 'server-child.ts'), String(sessions), String(sizeBytes)];
  const child = spawn(process.execPath, ['--max-semi-space-size=2', ...argv], { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  onCleanup(t, async () => {
    child.kill('SIGKILL');
    await closed;
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async <T>(): Promise<T> => {
    const line = await lines.next();
    assert.ok(line.done !== true, 'the server ended');
    return JSON.parse(line.value) as T;
  };
  return {
    urls: await next<string[]>(),
    cost: () => {
      child.stdin.end();
      return next<Cost>();
    },
  };
};

describe('eight sessions at once', () => {
  before(() => streamingClient(), { timeout: 600_000 });

  for (const transport of ['spdy', 'websocket']) {
    it(`are served over ${transport}`, { timeout: 300_000 }, async (t) => {
      const server = await startServer(t);
      const receive = async (url: string): Promise<{ readonly bytes: number; readonly blocks: number }> => {
        const client = await startClient(t, ['exec', '-transport', transport, '-stdout', url]);
        // The output is one block again and again: each is hashed, and all hashes have to be the same.
        const blockBytes = 65_521;
        const hashes = new Set<string>();
        let hash = createHash('sha1');
        let bytes = 0;
        for await (const chunk of client.stdout as AsyncIterable<Buffer>) {
          for (let rest = chunk; rest.length > 0; ) {
            const piece = rest.subarray(0, blockBytes - (bytes % blockBytes));
            hash.update(piece);
            bytes += piece.length;
            rest = rest.subarray(piece.length);
            if (bytes % blockBytes > 0) continue;
            hashes.add(hash.digest('hex'));
            hash = createHash('sha1');
          }
        }
        assert.deepEqual(await client.ending, { exitCode: 0, error: '' });
        return { bytes, blocks: hashes.size };
      };
      const received = await Promise.all(server.urls.map(receive));
      for (const one of received) assert.deepEqual(one, { bytes: sizeBytes, blocks: 1 });
      const { rssBytesBefore, rssBytesMax, delayMsMax: delayed } = await server.cost();
      const grown = Math.round((rssBytesMax - rssBytesBefore) / 1024 / 1024);
      t.diagnostic(
        `RSS at most ${Math.round(rssBytesMax / 1024 / 1024)} MiB, ${grown} more than before; the loop was held up for ${delayed.toFixed(1)} ms at most`,
      );
      assert.ok(rssBytesMax - rssBytesBefore < growthBytesMax, `RSS grew by ${grown} MiB`);
      assert.ok(delayed < delayMsMax, `the loop was held up for ${delayed} ms`);
    });
  }
});
