/**
 * A disk that another process fills at once under a real daemon: it lives on its reserve, over a restart too, refuses what
 * needs room, stops and removes, and all is well again when there is room.
 */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { withCode } from '../support/failures.ts';
import { recordsOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode } from '../support/node.ts';
import { eventually, removePod, runPod } from '../support/pods.ts';
import { fillAtOnce, mountSmallDisk, resizeSmallDisk } from '../support/small-disk.ts';

const config = '[journal]\ndisk_reserve = "16MiB"\n';

describe('a disk that fills at once', () => {
  test('C7: the daemon lives, stops and removes, and heals when there is room', { timeout: 120_000 }, async (t) => {
    const prepare = ({ root }: { readonly root: string }): Promise<void> => mountSmallDisk(t, root, 1024);
    const { daemon } = await startNode(t, { config, prepare });
    const { root } = daemon.dirs;
    const typesOnDisk = async (): Promise<string[]> => (await recordsOf(daemon)).map(({ type }) => type);
    const sleeping = (name: string) => runPod(daemon, name, busyboxName, ['sleep', '1000']);
    const saying = (words: string) => eventually(words, async () => daemon.log().includes(words), 30_000);
    const refused = withCode(GrpcCode.RESOURCE_EXHAUSTED, /too full for anything but stopping and removing/);
    const one = await sleeping('one');
    const two = await sleeping('two');

    await resizeSmallDisk(root, 128);
    await fillAtOnce(root);
    await removePod(daemon, one.podSandboxId);
    await saying('the disk is full');
    await assert.rejects(sleeping('refused'), refused);

    await daemon.kill();
    await daemon.start();
    await assert.rejects(sleeping('refused'), refused);
    const doctor = await daemon.scribe('doctor', '--root', root, '--state', daemon.dirs.state);
    assert.match(doctor.stdout, /The disk of .* is full since/);
    const why = await daemon.scribe('why', 'default/refused', '--root', root);
    const isFull =
      /^The disk has been full for .* is refused without a record, .*; free some space on the file system of the/;
    assert.match(why.stdout, isFull);
    await removePod(daemon, two.podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
    assert.ok((await typesOnDisk()).includes('disk.filled'));

    await rm(join(root, 'others'));
    await saying('the disk has room again');
    const three = await sleeping('three');
    await removePod(daemon, three.podSandboxId);
    assert.ok((await typesOnDisk()).includes('disk.freed'));
    const history = await daemon.scribe('history', '--root', root);
    assert.match(history.stdout, /disk full .*only stopping and removing is taken/);
    assert.match(history.stdout, /disk has room again/);
    const verified = await daemon.scribe('verify', '--root', root);
    assert.equal(verified.exitCode, 0, verified.stdout + verified.stderr);
  });

  test('C20: under the state directory alone, while the daemon was down: it starts, and pods can be removed', {
    timeout: 120_000,
  }, async (t) => {
    const prepare = ({ state }: { readonly state: string }): Promise<void> => mountSmallDisk(t, state, 16);
    const { daemon } = await startNode(t, { prepare });
    const { state } = daemon.dirs;
    const pod = await runPod(daemon, 'one', busyboxName, ['sleep', '1000']);
    await daemon.stop();
    await fillAtOnce(state);
    await daemon.start();
    assert.match(daemon.log(), /scribe\.pid does not say which process the daemon is, for its disk is full/);
    await removePod(daemon, pod.podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
    await rm(join(state, 'others'));
  });
});
