/**
 * Unpacking processes that are started ahead: how many there are, when, and who gets them. A spawner stands in that starts
 * nothing, for what is looked at is when it is asked; what such a process does is in the tests of unpacking.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, it, type TestContext } from 'node:test';
import { defaultImageLimits } from '../../../src/adapters/images/types.ts';
import { createUnpackerProcesses } from '../../../src/adapters/images/unpack/processes.ts';
import { NODE_FLAGS } from '../../../src/adapters/images/unpack/run-child.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import type { RunRequest, RunResult } from '../../../src/platform/spawner/types.ts';

interface Started {
  readonly request: RunRequest;
  readonly directories: string[];
  /** It says that, or ends. */
  readonly end: (report: object | null) => void;
}

const ended: RunResult = {
  ...{ exitCode: 0, signalName: null, timedOut: false, truncated: false },
  ...{ stdout: new Uint8Array(), stderr: new Uint8Array() },
};
const done = { kind: 'done', usedBytes: 1, inodesUsed: 1 };

/** `apartMs`: so much later is it each time that a process is taken. */
const standIn = (t: TestContext, apartMs = 1_000) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const started: Started[] = [];
  let nowMs = 0;
  const run = (request: RunRequest): Promise<RunResult> => {
    const result = Promise.withResolvers<RunResult>();
    const directories: string[] = [];
    request.signal?.addEventListener('abort', () => result.reject(new FailureError('Cancelled', 'killed')));
    request.told?.(({ root }) => directories.push(root?.directory ?? ''));
    const end = (report: object | null): void => {
      if (report === null) result.resolve({ ...ended, exitCode: 1 });
      else request.onStdout?.(Buffer.from(`${JSON.stringify(report)}\n`));
    };
    started.push({ request, directories, end });
    return result.promise;
  };
  const home = {
    root: { directory: '/home', readOnly: 'in' },
    putArchive: () => Promise.resolve({ archivePath: '/in/archive', isOutside: false }),
    ...{ makeLayer: async () => '', takeLayer: async () => {} },
  };
  const homes = { make: () => Promise.resolve(home), remove: async () => {} };
  const processes = createUnpackerProcesses({ run }, defaultImageLimits, homes, () => (nowMs += apartMs));
  const unpack = (directory: string) =>
    processes.run({
      ...{ form: 'files', directory, place: null, diffId: null, archivePath: '/archive', name: 'An archive' },
      ...{ signal: new AbortController().signal, onProgress: () => undefined },
    });
  /** Layers of one image, the base is 0. */
  const layers = Array.from({ length: 4 }, (_, index) => ({
    chainId: `chain ${index}`,
    below: Array.from({ length: index }, (_, lower) => `chain ${lower}`),
    isQuick: false,
  }));
  const unpackLayer = (index: number, vouched?: Promise<void>) =>
    processes.run(
      {
        ...{ form: 'layer', directory: '/layer', place: layers[index] ?? null, diffId: null, archivePath: '/blob' },
        ...{ name: 'A layer', signal: new AbortController().signal, onProgress: () => undefined },
      },
      vouched,
    );
  /** Until what was begun has told a process, or heard of it. */
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
  };
  const isGone = (index: number): boolean => started[index]?.request.signal?.aborted === true;
  const pass = (ms: number): void => t.mock.timers.tick(ms);
  return { started, processes, unpack, layers, unpackLayer, settled, isGone, pass };
};

describe('an unpacking process that was started ahead', () => {
  it('is one, waits for a layer, and takes no second one', async (t) => {
    const { started, processes, unpack } = standIn(t);
    processes.expect();
    processes.expect();
    assert.equal(started.length, 1);
    const both = [unpack('/first'), unpack('/second')];
    await nextTurn();
    assert.deepEqual(
      started.map(({ directories }) => directories),
      [['/first'], ['/second']],
    );
    for (const { end } of started) end(done);
    assert.deepEqual(
      (await Promise.all(both)).map(({ done: { usedBytes } }) => usedBytes),
      [1, 1],
    );
  });

  it('follows at once when one was taken less than half a second after another: more will come', async (t) => {
    const { started, unpack, settled } = standIn(t, 499);
    void unpack('/first');
    await settled();
    assert.equal(started.length, 1);
    void unpack('/second');
    await settled();
    assert.equal(started.length, 3);
    void unpack('/third');
    await settled();
    assert.deepEqual(
      started.map(({ directories }) => directories),
      [['/first'], ['/second'], ['/third'], []],
    );
  });

  it('follows a moment after the last layer, and ends when nothing comes', async (t) => {
    const { started, unpack, isGone, pass } = standIn(t);
    const unpacked = unpack('/first');
    started[0]?.end(done);
    await unpacked;
    pass(299);
    assert.equal(started.length, 1);
    pass(1);
    assert.equal(started.length, 2);
    pass(14_999);
    assert.equal(isGone(1), false);
    pass(1);
    assert.equal(isGone(1), true);
    pass(60_000);
    assert.equal(started.length, 2);
  });

  it('is not given out when it has died, and ends with the adapter', async (t) => {
    const { started, processes, unpack, isGone, pass } = standIn(t);
    processes.expect();
    started[0]?.end(null);
    await nextTurn();
    const unpacked = unpack('/first');
    await nextTurn();
    assert.deepEqual(started[1]?.directories, ['/first']);
    started[1].end(done);
    await unpacked;
    processes.expect();
    processes.close();
    assert.equal(isGone(2), true);
    processes.expect();
    pass(60_000);
    assert.equal(started.length, 3);
  });
});

describe('an unpacking process that has unpacked a layer', () => {
  it('goes on with one above it that is awaited, and with no other', async (t) => {
    const { started, processes, layers, unpackLayer, settled, isGone } = standIn(t);
    for (const index of [0, 2, 3]) processes.await(layers[index] ?? assert.fail());
    const second = unpackLayer(1);
    await settled();
    started[0]?.end(done);
    await second;
    assert.equal(isGone(0), false);
    void unpackLayer(0);
    await settled();
    assert.equal(started.length, 2, 'the layer below got the process of the one above');
    const third = unpackLayer(2);
    await settled();
    assert.equal(started.length, 2);
    assert.equal(started[0]?.directories.length, 2);
    started[0].end(done);
    await third;
    assert.equal(isGone(0), false);
  });

  it('ends when none above it is awaited any more, or does not come for a second', async (t) => {
    const { started, processes, layers, unpackLayer, settled, isGone, pass } = standIn(t);
    const unpackFirst = async (): Promise<void> => {
      const unpacked = unpackLayer(0);
      await settled();
      started.at(-1)?.end(done);
      await unpacked;
    };
    await unpackFirst();
    assert.equal(isGone(0), true);
    const forget = processes.await(layers[1] ?? assert.fail());
    await unpackFirst();
    assert.equal(isGone(1), false);
    forget();
    assert.equal(isGone(1), true);
    processes.await(layers[1] ?? assert.fail());
    await unpackFirst();
    pass(999);
    assert.equal(isGone(2), false);
    pass(1);
    assert.equal(isGone(2), true);
  });

  it('goes on only when what it has read was vouched for', async (t) => {
    const { started, processes, layers, unpackLayer, settled, isGone } = standIn(t);
    processes.await(layers[1] ?? assert.fail());
    const vouched = Promise.withResolvers<void>();
    const lower = unpackLayer(0, vouched.promise);
    await settled();
    started[0]?.end(done);
    await settled();
    void unpackLayer(1);
    await settled();
    assert.equal(started.length, 2, 'the layer above got a process that had read what may be anybody’s');
    vouched.reject(new Error('another digest'));
    await assert.rejects(lower, /another digest/);
    assert.equal(isGone(0), true);
  });
});

describe('the flags of an unpacking process', () => {
  it('leave V8 the compiled code that Node brings along', () => {
    const tagWith = (flags: readonly string[]): string =>
      execFileSync(process.execPath, [...flags, '--print', 'v8.cachedDataVersionTag()'], { encoding: 'utf8' });
    assert.equal(tagWith(NODE_FLAGS), tagWith([]));
    assert.notEqual(tagWith([...NODE_FLAGS, '--initial-old-space-size=64']), tagWith([]));
  });
});
