/** What `scribe export` makes of the answers that receivers of OTLP give: refusals, waits that they ask for, other addresses. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { post } from '../../src/cli/export/otlp.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tell } from './story.ts';
import { type Root, rootWith, scribe } from './support.ts';

describe('a receiver of OTLP', () => {
  const owner: Owner = cleanupAfterAll();
  let root: Root;

  before(async () => {
    root = await rootWith(owner, (await tell()).records);
  });

  test('what one refuses is said, once, and an answer that is none of OTLP is no receipt', async (t) => {
    const answers = [
      '{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too \\u001b[1mold"}}',
      '<html>log in</html>',
    ];
    let posts = 0;
    const server = createServer((request, response) => {
      posts += 1;
      request.resume().on('end', () => response.writeHead(200).end(answers[0]));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const cursor = join(await tempDir(t), 'cursor');
    const words = ['export', '--root', root.dir, '--format', 'otlp', '--endpoint', `http://127.0.0.1:${port}`];
    const partly = await scribe([...words, '--cursor-file', cursor]);
    assert.equal(partly.exitStatus, 1);
    assert.match(
      partly.stderr,
      /^scribe: http:\S+ refused 3 of the records, and must not be sent them again: too \\u\{1b\}\[1mold\n$/,
    );
    const again = await scribe([...words, '--cursor-file', cursor]);
    assert.deepEqual([again.exitStatus, posts], [0, 1]);
    answers.shift();
    assert.match(
      JSON.stringify(await post(`http://127.0.0.1:${port}/v1/logs`, '{}')),
      /not taken.*its answer is no OTLP/,
    );
  });

  test('one says how long it wants to be left alone, and one that sends elsewhere is not followed', async (t) => {
    const posts: number[] = [];
    const answers: [status: number, headers: Record<string, string>][] = [
      [429, { 'retry-after': '1' }],
      [503, { 'retry-after': 'soon' }],
      [200, {}],
      [307, { location: 'http://127.0.0.1:1/v1/logs' }],
    ];
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        posts.push(performance.now());
        response.writeHead(...(answers.shift() ?? [500, {}])).end('{}');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const words = ['export', '--root', root.dir, '--format', 'otlp', '--endpoint', `http://127.0.0.1:${port}`];
    assert.equal((await scribe(words)).exitStatus, 0);
    const [first = 0, second = 0] = posts;
    assert.ok(second - first >= 990, `asked again after ${second - first} ms`);
    const sent = await scribe(words);
    assert.deepEqual([sent.exitStatus, posts.length], [1, 4]);
    assert.match(sent.stderr, /sends elsewhere \(HTTP status 307\): name the receiver's own address as --endpoint\./);
  });
});
