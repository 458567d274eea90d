/** Programs that are started before their input is there, with the real spawner (root is needed). */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcessStat } from '../../../src/platform/linux/processes.ts';
import { requireRoot } from '../../support/netns.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { endOf, KiB, request, shell, spawnerOf } from './support.ts';

const timeout = 25_000;

before(requireRoot);

describe('input that comes later', () => {
  it('lets a program wait for its input, which its time does not count', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const { promise: input, resolve: give } = Promise.withResolvers<Uint8Array>();
    const started = Promise.withResolvers<number>();
    const run = spawner.run(request('cat', [], { input, onStarted: started.resolve, timeoutMs: 300 }));
    const pid = await started.promise;
    await sleep(600);
    assert.notEqual(await readProcessStat(pid), null, 'it waits longer than it may run');
    const much = Buffer.alloc(300 * KiB, 'x');
    give(much);
    const { exitCode, timedOut, truncated, stdout } = await run;
    assert.deepEqual({ exitCode, timedOut, truncated }, { exitCode: 0, timedOut: false, truncated: true });
    assert.deepEqual(Buffer.from(stdout), much.subarray(0, 64 * KiB));
    const late = await spawner.run(
      shell('cat; sleep 300', { input: Promise.resolve(Buffer.from('x')), timeoutMs: 300 }),
    );
    assert.equal(late.timedOut, true, 'its time begins with its input');
  });

  it('kills a program that is refused its input, and fails in the words of that', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const { promise: input, reject: refuse } = Promise.withResolvers<Uint8Array>();
    const started = Promise.withResolvers<number>();
    const run = spawner.run(request('cat', [], { input, onStarted: started.resolve }));
    const pid = await started.promise;
    refuse(new Error('nothing is to be done'));
    await assert.rejects(run, /nothing is to be done/);
    await endOf(pid);
  });

  it('takes no harm from an input that comes when its program has ended', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const { promise: input, resolve: give } = Promise.withResolvers<Uint8Array>();
    assert.equal((await spawner.run(request('true', [], { input }))).exitCode, 0);
    give(Buffer.from('x'));
    assert.equal((await spawner.run(request('true'))).exitCode, 0);
  });
});
