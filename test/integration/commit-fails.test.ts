/**
 * C7 with a real daemon: the kernel refuses what it writes to the journal's files (a limit on the size of files, which
 * gives EFBIG where a broken disk gives EIO). The daemon ends at once, leaves its last words, pods stay, and the next
 * start has every call that was answered.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { PodSandboxState } from '../../src/wire/cri/api.ts';
import type { BodyOf } from '../../src/domain/model/records.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { type Daemon, startDaemon } from '../support/daemon.ts';
import { journalPath, recordsOf } from '../support/journal.ts';
import { ownPids, podConfig } from '../support/pods.ts';
import { runOk } from '../support/process.ts';

/** Has the daemon meet the refusal as an error; by default the kernel would end it with a signal. */
const meetsRefusals = "--import=data:text/javascript,process.on('SIGXFSZ',()=>undefined)";
const fileBytesMax = 16 * 1024;
const patienceMs = 30_000;

/** Changes the pod CIDR until no answer comes; the changes that were answered. */
async function changeUntilRefused({ cri }: Daemon): Promise<string[]> {
  const answered: string[] = [];
  const untilMs = performance.now() + patienceMs;
  for (let n = 1; performance.now() < untilMs; n += 1) {
    const podCidr = `10.${n >> 8}.${n & 255}.0/24`;
    const runtimeConfig = { networkConfig: { podCidr } };
    const failed = await cri.runtime.updateRuntimeConfig({ runtimeConfig }).then(
      () => false,
      () => true,
    );
    if (failed) return answered;
    answered.push(podCidr);
  }
  throw new Error(`${answered.length} changes were answered, and none was refused`);
}

test('C7: a daemon whose commit fails ends, its pods stay, and the next start knows all that was answered', async (t) => {
  const daemon = await startDaemon(t, { env: { NODE_OPTIONS: meetsRefusals } });
  const { podSandboxId } = await daemon.cri.runtime.runPodSandbox({ config: podConfig(daemon, 'stays', ownPids) });
  const before = await changeUntil(daemon, 20);
  await runOk(['prlimit', '--pid', String(daemon.pid()), `--fsize=${fileBytesMax}`]);
  const after = await changeUntilRefused(daemon);
  const how = await Promise.race([daemon.ended(), sleep(patienceMs, 'still there', { ref: false })]);
  assert.equal(how, 1, daemon.log());
  assert.match(daemon.log(), /the engine cannot go on: the daemon ends, pods stay|the journal failed: the daemon ends/);
  assert.ok(existsSync(join(daemon.dirs.state, 'crash.txt')));

  await daemon.start();
  assert.ok(!existsSync(join(daemon.dirs.state, 'crash.txt')));
  const records = await recordsOf(daemon);
  const started = records.findLast(({ type }) => type === 'daemon.started')?.body as BodyOf<'daemon.started'>;
  assert.match(started.crash ?? '', /takes nothing more since a commit failed: .*(disk I\/O error|full)/);
  const changed = records.flatMap(({ type, body }) =>
    type === 'node.configured' ? [(body as BodyOf<'node.configured'>).podCidr] : [],
  );
  const answered = [...before, ...after];
  assert.deepEqual(changed.slice(0, answered.length), answered);
  // The one that was under way may have become durable without an answer.
  assert.ok(changed.length <= answered.length + 1, `${changed.length} changes, ${answered.length} answers`);
  const { items } = await daemon.cri.runtime.listPodSandbox();
  assert.deepEqual(
    items.map(({ id, state }) => ({ id, state })),
    [{ id: podSandboxId, state: PodSandboxState.SANDBOX_READY }],
  );
  assert.deepEqual((await verifyJournal(journalPath(daemon))).findings, []);
  const history = await daemon.scribe('history', '--root', daemon.dirs.root);
  assert.match(history.stdout, /the one before ended with: Error: the journal/);
});

async function changeUntil({ cri }: Daemon, count: number): Promise<string[]> {
  const answered: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const podCidr = `192.168.${n}.0/24`;
    await cri.runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr } } });
    answered.push(podCidr);
  }
  return answered;
}
