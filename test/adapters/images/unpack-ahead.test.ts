/**
 * Unpacking processes that are started ahead: how many there are, when, and who gets them. A spawner stands in that starts
 * nothing, for what is looked at is when it is asked; what such a process does is in the tests of unpacking.
 */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, it, type TestContext } from 'node:test';
import { defaultImageLimits } from '../../../src/adapters/images/types.ts';
import { createUnpackerProcesses } from '../../../src/adapters/images/unpack/ahead.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import type { RunRequest, RunResult } from '../../../src/platform/spawner/types.ts';

interface Started {
  readonly request: RunRequest;
  readonly directories: string[];
  /** It ends with these words. */
  readonly end: (report: object | null) => void;
}

const ended: RunResult = {
  ...{ exitCode: 0, signalName: null, timedOut: false, truncated: false },
  ...{ stdout: new Uint8Array(), stderr: new Uint8Array() },
};
const done = { kind: 'done', usedBytes: 1, inodesUsed: 1 };

const standIn = (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const started: Started[] = [];
  const run = (request: RunRequest): Promise<RunResult> => {
    const result = Promise.withResolvers<RunResult>();
    const directories: string[] = [];
    request.signal?.addEventListener('abort', () => result.reject(new FailureError('Cancelled', 'killed')));
    void request.told?.then(({ root }) => directories.push(root));
    const end = (report: object | null): void => {
      if (report !== null) request.onStdout?.(Buffer.from(`${JSON.stringify(report)}\n`));
      result.resolve({ ...ended, exitCode: report === null ? 1 : 0 });
    };
    started.push({ request, directories, end });
    return result.promise;
  };
  const processes = createUnpackerProcesses({ run }, defaultImageLimits);
  const unpack = (directory: string) =>
    processes.run({
      ...{ form: 'layer', directory, diffId: null, archivePath: '/blob', name: 'A layer' },
      ...{ signal: new AbortController().signal, onProgress: () => undefined },
    });
  const isGone = (index: number): boolean => started[index]?.request.signal?.aborted === true;
  return { started, processes, unpack, isGone, pass: (ms: number) => t.mock.timers.tick(ms) };
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

  it('follows a second after the last layer, and ends when nothing comes', async (t) => {
    const { started, unpack, isGone, pass } = standIn(t);
    const unpacked = unpack('/first');
    started[0]?.end(done);
    await unpacked;
    pass(999);
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
