/** C20 with real daemons: what a start finds damaged is a finding, and the end of a part that all depends on is its end. */
import assert from 'node:assert/strict';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { PodSandboxState } from '../../src/wire/cri/api.ts';
import { openJournal } from '../../src/journal/open.ts';
import { type Daemon, startDaemon } from '../support/daemon.ts';
import { headOf, recordsOf } from '../support/journal.ts';
import { processes } from '../support/leftovers.ts';
import { ownPids, podConfig } from '../support/pods.ts';

const patienceMs = 30_000;

test('C20: a bad shim, image store, pause program and key are findings, and the daemon starts and runs pods', async (t) => {
  const config = ['[runtime.handlers.bad]', 'runtime_type = "io.containerd.nothing.v2"'].join('\n');
  const daemon = await startDaemon(t, {
    config,
    async prepare({ root }) {
      await writeFile(join(root, 'secrets.key'), 'five!');
      await writeFile(join(root, 'journal.db.key'), 'no key');
      await writeFile(join(root, 'images'), 'a file where a directory belongs');
      await writeFile(join(root, 'pause'), 'the same');
    },
  });
  const doctor = await daemon.scribe('doctor', '--root', daemon.dirs.root, '--socket', daemon.socket);
  const told = doctor.stdout + doctor.stderr;
  assert.match(told, /secrets\.key, is damaged \(it has 5 bytes instead of 32\)/);
  assert.match(told, /journal\.db\.key/);
  assert.match(told, /The image store .*images cannot be used: /);
  assert.match(told, /The pause program cannot be put into .*pause/);
  const { runtime } = daemon.cri;
  await runtime.runPodSandbox({ config: podConfig(daemon, 'fine', ownPids) });
  await assert.rejects(
    runtime.runPodSandbox({ config: podConfig(daemon, 'bad-shim', ownPids), runtimeHandler: 'bad' }),
  );
  await assert.rejects(runtime.runPodSandbox({ config: podConfig(daemon, 'bad-pause') }));
  await assert.rejects(daemon.cri.image.pullImage({ image: { image: 'registry.example/app:1' } }));
  assert.equal(daemon.log().includes('the daemon ends'), false);
  const aside = (await readdir(daemon.dirs.root)).filter((name) => name.startsWith('secrets.key.damaged-'));
  assert.equal(aside.length, 1);
  // Repaired, it starts without a word of it.
  await daemon.stop();
  for (const name of ['images', 'pause']) await rm(join(daemon.dirs.root, name));
  await daemon.start();
  const again = await daemon.scribe('doctor', '--root', daemon.dirs.root, '--socket', daemon.socket);
  assert.doesNotMatch(again.stdout + again.stderr, /is damaged|cannot be used|cannot be put/);
});

/** As if a newer scribe had gone on with the node: one start by later rules, and a record of another form. */
const goOnAsNewer = async ({ dirs }: Daemon): Promise<void> => {
  const { journal } = openJournal({ path: join(dirs.root, 'journal.db') });
  const records = await Array.fromAsync(journal.read());
  const [start, last] = [records.findLast(({ type }) => type === 'daemon.started'), records.at(-1)];
  assert.ok(start !== undefined && last !== undefined);
  const body = start.body.replace(/"rules":\d+,"version":"[^"]*"/, '"rules":999,"version":"99.0.0"');
  await journal.append([
    { ...start, seq: last.seq + 1, body },
    { ...last, seq: last.seq + 2, type: 'container.requested', v: 99, stream: 'container/later', body: '{}' },
  ]);
  await journal.close();
};

test('C20: what a newer scribe wrote is a finding, and the daemon starts', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.stop();
  await goOnAsNewer(daemon);
  const seq = headOf(daemon);
  await daemon.start();
  const { stdout } = await daemon.scribe('doctor', '--root', daemon.dirs.root, '--socket', daemon.socket, '--json');
  const found = `A newer scribe had this node, and 1 of its records, from record ${seq} on, are passed over: .* scribe 99\\.0\\.0 wrote it \\(container\\.requested of version 99, .*use scribe 99\\.0\\.0 or later\\.`;
  assert.match(stdout, new RegExp(found));
  assert.match(daemon.log(), new RegExp(found));
  // This scribe has the node by now, and did not write that record.
  await daemon.stop();
  await daemon.start();
  assert.match(daemon.log(), new RegExp(found));
  const why = await daemon.scribe('at', 'now', 'get', 'pods', '--root', daemon.dirs.root);
  assert.match(why.stderr, new RegExp(`may be wrong, as of record ${seq}: scribe 99\\.0\\.0 wrote it`));
});

test('C20: when the spawner is killed the daemon ends as a whole, pods stay, and the next start says why', async (t) => {
  const daemon = await startDaemon(t);
  const { podSandboxId } = await daemon.cri.runtime.runPodSandbox({ config: podConfig(daemon, 'stays', ownPids) });
  const children = (await processes()).filter(({ parent }) => parent === daemon.pid());
  const spawner = children.find(({ commandLine }) => commandLine.includes('spawner'));
  assert.ok(spawner !== undefined);
  const head = headOf(daemon);
  process.kill(spawner.pid, 'SIGKILL');
  assert.equal(await Promise.race([daemon.ended(), sleep(patienceMs, 'still there', { ref: false })]), 1);
  assert.match(await readFile(join(daemon.dirs.state, 'crash.txt'), 'utf8'), /^Error: the spawner ended: /);
  await daemon.start();
  const started = (await recordsOf(daemon, { fromSeq: head + 1 })).find(({ type }) => type === 'daemon.started');
  assert.match(
    (started?.body as { crash: string }).crash,
    /^Error: the spawner ended: It ended by itself or was killed/,
  );
  const { items } = await daemon.cri.runtime.listPodSandbox();
  assert.deepEqual(
    items.map(({ id, state }) => ({ id, state })),
    [{ id: podSandboxId, state: PodSandboxState.SANDBOX_READY }],
  );
});
