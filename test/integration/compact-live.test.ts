/**
 * `scribe journal compact` beside a whole daemon with a pod: calls go on and are answered while their records are written
 * into a file that is made smaller, none is lost, and the next daemon goes on from it.
 */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { describe, test } from 'node:test';
import { ContainerState } from '../../src/wire/cri/api.ts';
import { connectWriter } from '../../src/journal/connect.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { callsAfter, headOf, journalPath } from '../support/journal.ts';
import { busyboxName, startNode } from '../support/node.ts';
import { runPod, statusOf } from '../support/pods.ts';

const ROOM_BYTES = 24 * 1024 * 1024;

/** As much room inside the file as pruning leaves on a node whose retention was made shorter. */
const leaveRoom = (path: string): void => {
  const db = connectWriter(path);
  db.exec('CREATE TABLE room (content BLOB)');
  db.prepare('INSERT INTO room VALUES (zeroblob(?))').run(ROOM_BYTES);
  db.exec('DROP TABLE room');
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
};

describe('compaction beside a live daemon', { timeout: 120_000 }, () => {
  const owner = cleanupAfterAll();

  test('the journal gets smaller while calls go on; none is lost, all verifies, and the next daemon goes on', async () => {
    const { daemon } = await startNode(owner);
    const { containerId } = await runPod(daemon, 'compacted', busyboxName, ['sleep', '1000']);
    await daemon.stop();
    const path = journalPath(daemon);
    leaveRoom(path);
    await daemon.start();
    const beforeSeq = headOf(daemon);
    const beforeBytes = statSync(path).size;
    assert.ok(beforeBytes > ROOM_BYTES);

    const answered: string[] = [];
    let isCompacting = true;
    const callUntilDone = async (client: number): Promise<void> => {
      while (isCompacting) {
        const word = `${client}-${answered.length}`;
        const { stdout } = await daemon.cri.runtime.execSync({ containerId, cmd: ['echo', word], timeout: '30' });
        assert.equal(stdout.toString(), `${word}\n`);
        answered.push(word);
      }
    };
    const clients = [1, 2].map(callUntilDone);
    const compacted = await daemon.scribe('journal', 'compact', '--root', daemon.dirs.root, '--socket', daemon.socket);
    isCompacting = false;
    await Promise.all(clients);
    assert.equal(compacted.exitCode, 0, compacted.stderr);
    assert.match(compacted.stdout, /MiB before, .* now; .*every hash is right/);
    assert.ok(statSync(path).size < beforeBytes - ROOM_BYTES / 2, `${beforeBytes} → ${statSync(path).size}`);

    const recordedSince = async (): Promise<string[]> =>
      (await callsAfter(daemon, beforeSeq)).flatMap(({ request, code }) =>
        request.method === 'ExecSync' && code === 0
          ? request.cmd.slice(1).filter((word) => typeof word === 'string')
          : [],
      );
    assert.ok(answered.length >= 2, 'no call came while the journal was compacted');
    assert.deepEqual((await recordedSince()).toSorted(), answered.toSorted());
    const verify = (): ReturnType<typeof daemon.scribe> =>
      daemon.scribe('verify', '--root', daemon.dirs.root, '--socket', daemon.socket);
    const live = await verify();
    assert.equal(live.exitCode, 0, live.stdout + live.stderr);

    await daemon.kill();
    await daemon.start();
    assert.equal((await statusOf(daemon, containerId)).state, ContainerState.CONTAINER_RUNNING);
    const { stdout } = await daemon.cri.runtime.execSync({ containerId, cmd: ['echo', 'after'], timeout: '30' });
    assert.equal(stdout.toString(), 'after\n');
    assert.deepEqual((await recordedSince()).toSorted(), [...answered, 'after'].toSorted());
    const restarted = await verify();
    assert.equal(restarted.exitCode, 0, restarted.stdout + restarted.stderr);
  });
});
