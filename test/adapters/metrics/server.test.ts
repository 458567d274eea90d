/** The server of the metrics before clients that ask too much, too often, or take nothing. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { describe, it, type TestContext } from 'node:test';
import { startMetricsServer } from '../../../src/adapters/metrics/server.ts';
import { onCleanup } from '../../support/cleanup.ts';

const timeoutMs = 500;
const scrape = 'GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n';

const startServer = async (t: TestContext, text: () => Promise<string>) => {
  const server = await startMetricsServer({ host: '127.0.0.1', port: 0, contentType: 'text/plain', text, timeoutMs });
  onCleanup(t, server.close);
  const open = (): Socket => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(server.url).port) });
    onCleanup(t, () => void socket.destroy());
    socket.on('error', () => undefined);
    return socket;
  };
  return { url: server.url, open };
};

describe('the server of the metrics', () => {
  it('reads the figures once for a client that asks a thousand times at once', async (t) => {
    let reads = 0;
    const { open } = await startServer(t, async () => {
      reads += 1;
      return 'figures\n';
    });
    const one = open();
    one.write(scrape);
    assert.match(await textOf(one), /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nfigures\n$/s);
    const many = open();
    many.write(scrape.repeat(1_000));
    await once(many.resume(), 'close');
    assert.equal(reads, 2);
  });

  it('gives all who ask at the same time the same figures', async (t) => {
    let reads = 0;
    const { url } = await startServer(t, async () => {
      reads += 1;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return `figures ${reads}\n`;
    });
    const ask = async (): Promise<string> => (await fetch(url)).text();
    assert.deepEqual(new Set(await Promise.all(Array.from({ length: 20 }, ask))), new Set(['figures 1\n']));
    assert.equal(await ask(), 'figures 2\n');
  });

  it('says what failed, and reads afresh for the next', async (t) => {
    let reads = 0;
    const { url } = await startServer(t, async () => {
      reads += 1;
      if (reads === 1) throw new Error('no figures');
      return 'figures\n';
    });
    const failed = await fetch(url);
    assert.deepEqual([failed.status, await failed.text()], [500, 'no figures\n']);
    assert.equal((await fetch(url)).status, 200);
  });

  it('lets go of clients that send nothing, half a request, or take nothing', async (t) => {
    const { url, open } = await startServer(t, async () => 'x'.repeat(50_000_000));
    const [silent, half, deaf] = [open(), open(), open()];
    half.write('GET /metrics HTTP/1.1\r\nHo');
    deaf.write(scrape);
    deaf.pause();
    const [, , length] = await Promise.all([
      once(silent.resume(), 'close'),
      once(half.resume(), 'close'),
      new Promise<number>((resolve) => {
        setTimeout(() => {
          // Whatever was on the way is read; the rest must not come.
          void textOf(deaf).then(
            (answer) => resolve(answer.length),
            () => resolve(0),
          );
        }, 4 * timeoutMs);
      }),
    ]);
    assert.ok(length < 50_000_000, `${length} bytes were kept for a client that took none`);
    assert.equal((await (await fetch(url)).text()).length, 50_000_000);
  });
});
