/** `scribe image`: what is sent to the daemon, and what is shown of it, on a terminal and where there is none. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Image } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { createTransfer } from '../../src/cli/image/transfer.ts';
import { createProgress } from '../../src/cli/progress.ts';
import { tempDir } from '../support/temp-dir.ts';
import { fakeDaemon, type Progress } from './fake-daemon.ts';
import { jsonLines, scribe, sink } from './support.ts';

const digest = (digits: string): string => `sha256:${digits.repeat(32)}`;
const terminal = { columns: 100, rows: 24 };

const layer = (digits: string, phase: string, done: number, total: number): Progress => ({
  digest: digest(digits),
  phase,
  bytesDone: String(done),
  bytesTotal: String(total),
});

describe('image pull', () => {
  test('asks for the image and prints its id; steps are lines where there is no terminal', async (t) => {
    const asked: unknown[] = [];
    const { socketPath } = await fakeDaemon(t, {
      async pull(request, send) {
        asked.push(request);
        send(layer('ab', 'downloading', 0, 2048));
        send(layer('ab', 'downloading', 2048, 2048));
        send(layer('cd', 'downloading', 0, 0));
        send(layer('ab', 'unpacking', 0, 2048));
        send(layer('ab', 'done', 2048, 2048));
        send({ phase: 'done', imageIds: [digest('ef')] });
        return null;
      },
    });
    const { exitStatus, stdout, stderr } = await scribe(['image', 'pull', '--socket', socketPath, 'busybox']);
    assert.equal(exitStatus, 0, stderr);
    assert.equal(stdout, `${digest('ef')}\n`);
    assert.equal(
      stderr,
      'ababababababa: downloading, 2.0 KiB\ncdcdcdcdcdcdc: downloading\nababababababa: unpacking, 2.0 KiB\nababababababa: done, 2.0 KiB\n',
    );
    assert.deepEqual(asked, [{ image: 'busybox', username: '', password: '' }]);
  });

  test('a password comes from standard input, without the end of its line', async (t) => {
    const asked: unknown[] = [];
    const { socketPath } = await fakeDaemon(t, {
      async pull(request) {
        asked.push(request);
        return null;
      },
    });
    const words = ['image', 'pull', '--socket', socketPath, '--username', 'me', '--password-stdin', 'app:1'];
    assert.equal((await scribe(words, { stdin: 'pass word \r\n' })).exitStatus, 0);
    assert.deepEqual(asked, [{ image: 'app:1', username: 'me', password: 'pass word ' }]);
    const none = await scribe(words, { stdin: '\n' });
    assert.equal(none.exitStatus, 2);
    assert.match(none.stderr, /There is no password on standard input/);
  });

  test("what the daemon says of a failure is said, with gRPC's name for it", async (t) => {
    const { socketPath } = await fakeDaemon(t, {
      pull: async () => ({ code: GrpcCode.NOT_FOUND, details: 'The registry knows of no busybox:9.' }),
    });
    const { exitStatus, stdout, stderr } = await scribe(['image', 'pull', '--socket', socketPath, 'busybox:9']);
    assert.equal(exitStatus, 1);
    assert.equal(stdout, '');
    assert.equal(stderr, 'scribe: The registry knows of no busybox:9. (NOT_FOUND)\n');
  });

  test('without a daemon it says how to get one', async (t) => {
    const dir = await tempDir(t);
    const none = await scribe(['image', 'pull', '--socket', join(dir, 'none.sock'), 'busybox']);
    assert.equal(none.exitStatus, 1);
    assert.match(
      none.stderr,
      /^scribe: There is no daemon at .*none\.sock: there is no such socket\. Start it with "scribe serve"/,
    );
    await writeFile(join(dir, 'file'), '');
    const file = await scribe(['image', 'ls', '--socket', join(dir, 'file')]);
    assert.match(file.stderr, /: nobody listens\./);
  });

  test('a malicious daemon cannot steer the terminal', async (t) => {
    const { socketPath } = await fakeDaemon(t, {
      async pull(_request, send) {
        send({ digest: 'x\u001b[2J', phase: '\u001b[31mred', bytesDone: '1', bytesTotal: '2' });
        send({ phase: 'done', imageIds: ['\u001b]0;title\u0007'] });
        return null;
      },
    });
    const { stdout, stderr } = await scribe(['image', 'pull', '--socket', socketPath, 'x']);
    assert.doesNotMatch(`${stdout}${stderr}`.replaceAll('\n', ''), /\p{Cc}/u);
  });
});

describe('image load', () => {
  const gathering = (got: Buffer[]) => ({
    async load(requests: AsyncIterable<{ readonly chunk: Buffer }>, send: (progress: Progress) => void) {
      for await (const { chunk } of requests) got.push(chunk);
      send({ phase: 'done', imageIds: [digest('01'), digest('02')] });
      return null;
    },
  });

  test('sends the whole archive, in messages of bounded size, and prints every id', async (t) => {
    const got: Buffer[] = [];
    const { socketPath } = await fakeDaemon(t, gathering(got));
    const path = join(await tempDir(t), 'image.tar');
    const archive = Buffer.alloc(3_000_000, 'scribe');
    await writeFile(path, archive);
    const { exitStatus, stdout, stderr } = await scribe(['image', 'load', '--socket', socketPath, path]);
    assert.equal(exitStatus, 0, stderr);
    assert.equal(stdout, `${digest('01')}\n${digest('02')}\n`);
    assert.match(stderr, /image\.tar: sending, 2\.9 MiB\n/);
    assert.ok(Buffer.concat(got).equals(archive));
    assert.ok(Math.max(...got.map(({ length }) => length)) <= 256 * 1024);
  });

  test('- reads standard input', async (t) => {
    const got: Buffer[] = [];
    const { socketPath } = await fakeDaemon(t, gathering(got));
    const { exitStatus } = await scribe(['image', 'load', '--socket', socketPath, '-'], { stdin: 'a tar file' });
    assert.equal(exitStatus, 0);
    assert.equal(Buffer.concat(got).toString(), 'a tar file');
  });

  test('what cannot be read is said before anything is asked', async (t) => {
    const dir = await tempDir(t);
    const missing = await scribe(['image', 'load', '--socket', join(dir, 'none'), join(dir, 'missing.tar')]);
    assert.equal(missing.exitStatus, 1);
    assert.match(missing.stderr, /^scribe: There is no archive at .*missing\.tar\.$/m);
    await mkdir(join(dir, 'layout'));
    const layout = await scribe(['image', 'load', '--socket', join(dir, 'none'), join(dir, 'layout')]);
    assert.match(layout.stderr, /layout is a directory; pack it first: tar -C /);
  });

  test('an archive that the daemon refuses half-way ends it at once', async (t) => {
    const { socketPath } = await fakeDaemon(t, {
      async load(requests) {
        await requests[Symbol.asyncIterator]().next();
        return { code: GrpcCode.INVALID_ARGUMENT, details: 'This is no archive of images.' };
      },
    });
    const path = join(await tempDir(t), 'image.tar');
    await writeFile(path, Buffer.alloc(30_000_000));
    const { exitStatus, stderr } = await scribe(['image', 'load', '--socket', socketPath, path]);
    assert.equal(exitStatus, 1);
    assert.match(stderr, /scribe: This is no archive of images\. \(INVALID_ARGUMENT\)\n$/);
  });
});

describe('image ls', () => {
  const images = [
    Image.fromPartial({ id: digest('22'), repoTags: ['registry.test/b:1', 'registry.test/b:2'], size: '2097152' }),
    Image.fromPartial({ id: digest('11'), repoDigests: [`registry.test/a@${digest('33')}`], size: '10' }),
    Image.fromPartial({ id: digest('44'), size: '1024' }),
  ];

  test('has a row for every tag, and for images without', async (t) => {
    const { socketPath } = await fakeDaemon(t, { images });
    const { exitStatus, stdout } = await scribe(['image', 'ls', '--socket', socketPath]);
    assert.equal(exitStatus, 0);
    const rows = stdout.split('\n').map((line) => line.split(/ {2,}/));
    assert.deepEqual(rows, [
      ['IMAGE', 'ID', 'SIZE'],
      ['registry.test/b:1', '2222222222222', '2.0 MiB'],
      ['registry.test/b:2', '2222222222222', '2.0 MiB'],
      [`registry.test/a@${digest('33')}`, '1111111111111', '10 B'],
      ['<none>', '4444444444444', '1.0 KiB'],
      [''],
    ]);
  });

  test('has an object for every image in JSON', async (t) => {
    const { socketPath } = await fakeDaemon(t, { images });
    const { stdout } = await scribe(['image', 'ls', '--json', '--socket', socketPath]);
    assert.deepEqual(jsonLines(stdout)[0], {
      id: digest('22'),
      repoTags: ['registry.test/b:1', 'registry.test/b:2'],
      repoDigests: [],
      sizeBytes: '2097152',
    });
  });
});

describe('progress on a terminal', () => {
  const clearLine = '\r\u001b[2K';
  const lineUp = '\u001b[1A';

  /** What a terminal shows after all of this: lines that were cleared or drawn over are gone. */
  const screen = (text: string): string[] => {
    const rows: string[] = [''];
    let row = 0;
    for (const [part = ''] of text.matchAll(/\r|\n|\u001b\[2K|\u001b\[1A|[^\r\n\u001b]+/g)) {
      if (part === '\n') row += 1;
      else if (part === lineUp) row -= 1;
      else if (part === '\u001b[2K') rows[row] = '';
      else if (part !== '\r') rows[row] = (rows[row] ?? '') + part;
      rows[row] ??= '';
    }
    return rows;
  };

  test('a line for each layer is drawn over itself, with its share, bytes and rate', () => {
    const { output, text } = sink(terminal);
    let nowMs = 0;
    const transfer = createTransfer({ stderr: output }, () => nowMs);
    transfer.note('aaa', 'downloading', 0, 4_194_304);
    for (nowMs = 1000; nowMs <= 2000; nowMs += 500) transfer.note('aaa', 'downloading', nowMs * 1048.576, 4_194_304);
    transfer.note('bbb', 'downloading', 0, 0);
    nowMs += 1000;
    transfer.note('bbb', 'downloading', 512, 0);
    assert.deepEqual(screen(text()), [
      'aaa  downloading  [============            ]  2.0 MiB of 4.0 MiB  1.0 MiB/s',
      'bbb  downloading  512 B  512 B/s',
    ]);
    transfer.note('aaa', 'done', 4_194_304, 4_194_304);
    transfer.end();
    assert.deepEqual(screen(text()), ['aaa  done         4.0 MiB', 'bbb  downloading  512 B  512 B/s', '']);
  });

  test('no more is drawn than fits, nor more often than is seen', () => {
    const { output, text } = sink({ columns: 10, rows: 4 });
    let nowMs = 0;
    const progress = createProgress(output, () => nowMs);
    progress.draw(() => ['one', 'two', 'three', 'four', 'a line that is far too long']);
    assert.deepEqual(screen(text()), ['three', 'four', 'a line th'.slice(0, 9)]);
    const before = text();
    nowMs = 50;
    progress.draw(() => assert.fail('too early'));
    assert.equal(text(), before);
    nowMs = 150;
    progress.draw(() => ['x']);
    assert.deepEqual(screen(text()), ['x', '', '']);
    progress.clear();
    assert.deepEqual(screen(text()), ['', '', '']);
    assert.ok(text().endsWith(clearLine));
    progress.draw(() => ['next step']);
    assert.deepEqual(screen(text()), ['next step', '', '']);
  });

  test('a pull leaves its last state and the id', async (t) => {
    const { socketPath } = await fakeDaemon(t, {
      async pull(_request, send) {
        send(layer('ab', 'unpacking', 1024, 2048));
        send(layer('ab', 'done', 2048, 2048));
        send({ phase: 'done', imageIds: [digest('ef')] });
        return null;
      },
    });
    const { stdout, stderr } = await scribe(['image', 'pull', '--socket', socketPath, 'x'], { terminal });
    assert.equal(stdout, `${digest('ef')}\n`);
    assert.deepEqual(screen(stderr), ['ababababababa  done         2.0 KiB', '']);
  });
});
