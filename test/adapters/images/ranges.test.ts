/** Large blobs that are fetched in ranges side by side, and gone on with. Needs root, docker-registry and nginx. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { imageLayout } from '../../../src/adapters/images/layout.ts';
import { gapsBetween, joined, openPieces } from '../../../src/adapters/images/pieces.ts';
import { RANGE_BYTES, RANGED_BYTES_MIN, rangesOf } from '../../../src/adapters/images/registry/ranges.ts';
import { freePort } from '../../support/free-port.ts';
import { buildImage } from '../../support/images/build.ts';
import { type Interceptor, sendBlob, startFaultServer } from '../../support/images/fault-server.ts';
import { startFilledRegistry } from '../../support/images/registry.ts';
import { startStore } from '../../support/images/store.ts';
import { tar } from '../../support/images/tar.ts';
import { eventually } from '../../support/pods.ts';
import { startProcess } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const MIB = 1024 * 1024;
/** No two MiB are the same. */
const content = Buffer.alloc(RANGED_BYTES_MIN + MIB);
for (let at = 0; at < content.length; at += 64) content.writeUInt32LE(Math.imul(at + 1, 2_654_435_761) >>> 0, at);
const image = buildImage([{ tar: tar([{ path: 'file', data: content }]), compression: 'none' }]);
const digest = image.layers[0]?.digest ?? '';
const bytes = image.blobs.get(digest) ?? Buffer.alloc(0);
const ranges = rangesOf([{ from: 0, to: bytes.length }]);
const program = join(import.meta.dirname, '../../support/images/pull-process.ts');

const forLayer =
  (take: (range: string | undefined, ...rest: Parameters<Interceptor>) => boolean): Interceptor =>
  (request, response) =>
    request.path.endsWith(digest) && take(request.headers.range, request, response);

const fromOf = (range: string | undefined): number => Number(/^bytes=(\d+)-/.exec(range ?? '')?.[1]);
const lengthOf = (range: string | undefined): number => {
  const [, from, last] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? [];
  return Number(last) + 1 - Number(from);
};

describe('what is there of a download', () => {
  it('is joined, and what is missing lies between', () => {
    const there = joined([
      { from: 20, to: 30 },
      { from: 0, to: 5 },
      { from: 5, to: 10 },
      { from: 25, to: 27 },
    ]);
    assert.deepEqual(there, [
      { from: 0, to: 10 },
      { from: 20, to: 30 },
    ]);
    assert.deepEqual(gapsBetween(there, 40), [
      { from: 10, to: 20 },
      { from: 30, to: 40 },
    ]);
    assert.deepEqual(gapsBetween([], 3), [{ from: 0, to: 3 }]);
    const missing = [{ from: RANGE_BYTES - 1, to: RANGE_BYTES + 1 }];
    assert.deepEqual(rangesOf(missing), [
      { from: RANGE_BYTES - 1, to: RANGE_BYTES },
      { from: RANGE_BYTES, to: RANGE_BYTES + 1 },
    ]);
  });

  it('is read back but for a line that was cut off, which spoils no later one', async (t) => {
    const path = join(await tempDir(t), 'pieces');
    await writeFile(path, '0 10\n20 30\nnonsense\n40 5');
    const pieces = openPieces(path, 100);
    assert.equal(pieces.frontier(), 10);
    pieces.begin();
    pieces.note({ from: 50, to: 60 });
    pieces.close();
    assert.deepEqual(openPieces(path, 100).missing(60), [
      { from: 10, to: 20 },
      { from: 30, to: 50 },
    ]);
  });
});

describe('a large layer', { timeout: 120_000 }, () => {
  const checkPulled = async (t: TestContext, reference: string): Promise<void> => {
    const store = await startStore(t);
    const pulled = await store.pull(reference);
    const [directory = ''] = store.layerDirs(pulled);
    assert.ok(content.equals(await readFile(join(directory, 'file'))));
    assert.deepEqual(await readdir(imageLayout(store.root).ingest), []);
  };

  it('is fetched in ranges from docker-registry behind nginx', async (t) => {
    const registry = await startFilledRegistry(t);
    await registry.push('app', 'v1', image);
    const directory = await tempDir(t);
    const port = await freePort();
    const log = join(directory, 'access.log');
    await mkdir(join(directory, 'logs'));
    await writeFile(
      join(directory, 'nginx.conf'),
      `daemon off; master_process off; pid ${directory}/nginx.pid; error_log stderr; events {}
       http { log_format ranges '$status $http_range'; access_log ${log} ranges; client_body_temp_path ${directory}/body; proxy_temp_path ${directory}/proxy;
         fastcgi_temp_path ${directory}/f; uwsgi_temp_path ${directory}/u; scgi_temp_path ${directory}/s;
         server { listen 127.0.0.1:${port}; location / { proxy_pass http://${registry.host}; proxy_set_header Host $http_host; } } }`,
    );
    await startProcess(t, ['nginx', '-e', 'stderr', '-p', directory, '-c', join(directory, 'nginx.conf')]);
    const isThere = () =>
      fetch(`http://127.0.0.1:${port}/v2/`).then(
        ({ ok }) => ok,
        () => false,
      );
    await eventually('nginx answers', isThere);
    await checkPulled(t, `127.0.0.1:${port}/app:v1`);
    const lines = (await readFile(log, 'utf8')).trim().split('\n');
    assert.deepEqual(
      lines.filter((line) => line.includes('bytes=')).toSorted(),
      ranges.map(({ from, to }) => `206 bytes=${from}-${to - 1}`).toSorted(),
    );
  });

  it('loses a MiB of each range when its pull is killed, and not those that were there', async (t) => {
    const server = await startFaultServer(t);
    server.serve('app', 'v1', image);
    const asked: string[] = [];
    const partBytes = 5 * MIB;
    let isKilled = false;
    server.intercept(
      forLayer((range, _request, response) => {
        asked.push(range ?? 'all');
        const from = fromOf(range);
        if (isKilled || from === 0) return false;
        const last = from + lengthOf(range) - 1;
        response.writeHead(206, {
          'content-length': lengthOf(range),
          'content-range': `bytes ${from}-${last}/${bytes.length}`,
        });
        response.write(bytes.subarray(from, from + partBytes));
        return true;
      }),
    );
    const root = join(await tempDir(t), 'root');
    await mkdir(root);
    const argv = [process.execPath, program, root, `${server.host}/app:v1`];
    const pull = await startProcess(t, argv);
    const notes = join(imageLayout(root).ingest, `${digest.slice(7)}.pieces`);
    // The first range whole, and five MiB of each of four others.
    const notedMib = async (): Promise<number> =>
      (await readFile(notes, 'utf8').catch(() => '')).trim().split('\n').length;
    await eventually('ranges are noted', async () => asked.length === 5 && (await notedMib()) >= 16 + 3 * 4, 30_000);
    pull.kill('SIGKILL');
    await pull.ended;
    isKilled = true;
    asked.length = 0;
    const next = await startProcess(t, argv);
    await next.until(/pulled/, 60_000);
    const again = asked.reduce((sum, range) => sum + lengthOf(range), 0);
    assert.ok(again <= bytes.length - RANGE_BYTES - 3 * (partBytes - MIB), `${again} of ${bytes.length} bytes again`);
    assert.ok(again > 0 && asked.every((range) => fromOf(range) >= RANGE_BYTES));
    assert.deepEqual(await readdir(imageLayout(root).ingest), []);
  });

  it('is fetched whole from a server that knows no ranges, or lies about them', async (t) => {
    const second = ranges[1]?.from ?? 0;
    const refusing = (status: number) => ({
      [`answers ${status}`]: (_range: unknown, _request: unknown, response: Parameters<Interceptor>[1]) =>
        Boolean(response.writeHead(status).end()),
    });
    const liars: Record<string, Parameters<typeof forLayer>[0]> = {
      ...refusing(400),
      ...refusing(403),
      ...refusing(501),
      'sends all of it': (_range, _request, response) => Boolean(response.writeHead(200).end(bytes)),
      'refuses a range': (range, _request, response) =>
        fromOf(range) === second && Boolean(response.writeHead(416).end()),
      'sends another range': (range, request, response) => {
        if (fromOf(range) !== second) return false;
        sendBlob({ ...request, headers: { range: 'bytes=0-9' } }, response, bytes);
        return true;
      },
      'sends more than was asked for': (range, _request, response) => {
        const to = second + lengthOf(range);
        if (fromOf(range) !== second) return false;
        response.writeHead(206, { 'content-range': `bytes ${second}-${to - 1}/${bytes.length}` });
        response.end(bytes.subarray(second, to + 1));
        return true;
      },
      'sends other bytes': (range, request, response) => {
        if (fromOf(range) !== second) return false;
        sendBlob(request, response, Buffer.alloc(bytes.length, 'x'));
        return true;
      },
    };
    for (const [what, lie] of Object.entries(liars)) {
      const server = await startFaultServer(t);
      server.serve('app', 'v1', image);
      server.intercept(forLayer((range, ...rest) => range !== undefined && lie(range, ...rest)));
      await checkPulled(t, `${server.host}/app:v1`);
      const asked = server.requestsFor(digest).map(({ headers }) => headers.range);
      const isWhole = what === 'sends all of it' ? asked.length === 1 : asked.at(-1) === undefined;
      assert.ok(isWhole, `${what}: ${asked.join(', ')}`);
    }
  });
});
