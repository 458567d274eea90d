/** A start that fails, at whatever stage, closes what it has opened by then, and says what it failed of. */
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { allSettled, firstError } from '../../src/daemon/closing.ts';
import { type Daemon, startDaemon } from '../support/daemon.ts';
import { processesOf } from '../support/leftovers.ts';
import { netnsOf } from '../support/netns.ts';
import { startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import type { Left, Start } from './starts-in-one-process.ts';

const program = join(import.meta.dirname, 'starts-in-one-process.ts');
const WAIT_MS = 60_000;

interface Stage {
  readonly what: string;
  /** Plants what the start fails of. */
  readonly plant: (dir: string) => Promise<unknown>;
  readonly config?: string;
  readonly isSocketTaken?: boolean;
  /** Files that are looked for, and that were there before. */
  readonly planted?: readonly string[];
  readonly message: RegExp;
}

const whenNetworkIsRead = async (daemon: Daemon): Promise<void> => {
  for (const until = Date.now() + WAIT_MS; !daemon.log().includes('is read from') && Date.now() < until; )
    await sleep(20);
};

const STAGES: readonly Stage[] = [
  {
    what: 'claiming the socket',
    plant: async () => undefined,
    isSocketTaken: true,
    message: /scribe\.sock is in use/,
  },
  {
    what: 'opening the journal',
    plant: (dir) => mkdir(join(dir, 'root/journal.db.lock')),
    message: /EISDIR.*journal\.db\.lock/,
  },
  {
    what: 'writing its pid, while the spawner starts',
    plant: (dir) => mkdir(join(dir, 'state/scribe.pid')),
    planted: ['state/scribe.pid'],
    message: /EISDIR.*scribe\.pid/,
  },
  {
    what: 'taking over, beside parts that open',
    plant: (dir) => writeFile(join(dir, 'state/netns'), ''),
    message: /EEXIST.*netns/,
  },
  {
    what: 'reaching the log keeper',
    plant: (dir) => writeFile(join(dir, 'state/log-keeper'), ''),
    message: /log-keeper/,
  },
  {
    what: 'starting what serves shims',
    plant: (dir) => writeFile(join(dir, 'state/io'), ''),
    message: /EEXIST.*io/,
  },
  {
    what: 'listening for sessions, with the engine under way',
    plant: async () => undefined,
    config: '[streaming]\naddress = "192.0.2.1"\nport = 10010\n',
    message: /The streaming server cannot listen/,
  },
  {
    what: 'opening the socket, after all else',
    plant: (dir) => mkdir(join(dir, 'state/scribe.sock')),
    planted: ['state/scribe.sock'],
    message: /scribe\.sock/,
  },
];

test('a start that fails at any stage leaves no socket, lock, child or thread behind, and says what it failed of', async (t) => {
  const top = await tempDir(t);
  const starts = await Promise.all(
    STAGES.map(async ({ config = '', plant, isSocketTaken = false }, index): Promise<Start> => {
      const dir = join(top, String(index));
      for (const part of ['root', 'state', 'cni']) await mkdir(join(dir, part), { recursive: true });
      await writeFile(join(dir, 'config.toml'), `${config}[journal]\ndisk_reserve = "16MiB"\n`);
      await plant(dir);
      return { dir, isSocketTaken };
    }),
  );
  const netns = await netnsOf(t);
  const child = await startProcess(t, netns.inside([process.execPath, program, JSON.stringify(starts)]));
  // It is not made to end: what is left open would keep it.
  const late = sleep(WAIT_MS, 'not at all', { ref: false });
  const ended = await Promise.race([child.ended, late]);
  const said = child
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{"message"'))
    .map((line) => JSON.parse(line) as Left);
  for (const [index, { what, planted = [], message }] of STAGES.entries()) {
    const { message: failure = child.output(), ...left } = said[index] ?? {};
    assert.match(failure, message, what);
    assert.deepEqual(left, { children: [], threads: [], openFiles: [], files: planted }, what);
  }
  assert.equal(ended, 0, `it ends: ${child.output()}`);
  const dirs = { root: top, state: top, cgroupParent: '', addresses: '' };
  for (const until = Date.now() + WAIT_MS; (await processesOf(dirs)).length > 0 && Date.now() < until; )
    await sleep(50);
  assert.deepEqual(await processesOf(dirs), []);
});

test('a start that fails while the network of the last life is read again says what it failed of', async (t) => {
  const network = (index: number) =>
    JSON.stringify({ cniVersion: '1.0.0', name: `n${index}`, plugins: [{ type: 'bridge' }] });
  // It takes its time to read so many.
  const names = Array.from({ length: 400 }, (_, index) => `${1000 + index}.conflist`);
  const confLists = Object.fromEntries(names.map((name, index) => [name, network(index)]));
  const daemon = await startDaemon(t, { confLists });
  await whenNetworkIsRead(daemon);
  await daemon.stop();
  await daemon.configure('[serve]\nsocket_group = "no-such-group"\n');
  await daemon.launch();
  assert.equal(await daemon.ended(), 1);
  assert.match(daemon.log(), /serve\.socket_group "no-such-group" is not in/);
  assert.doesNotMatch(daemon.log(), /the daemon ends, pods stay/);
  assert.deepEqual(
    (await readdir(daemon.dirs.root)).filter((name) => name.startsWith('crash-')),
    [],
  );
});

test('what went wrong first is told, and what could not be closed after it is logged', async () => {
  const logged: unknown[] = [];
  const closed: string[] = [];
  const failing = async (): Promise<void> => {
    await using opened = new AsyncDisposableStack();
    opened.defer(() => void closed.push('first'));
    opened.defer(() => Promise.reject(new Error('cannot close')));
    opened.defer(() => void closed.push('last'));
    throw new Error('cannot open');
  };
  const thrown = await failing().catch((error: unknown) =>
    firstError(error, { error: (fields) => logged.push(fields) }),
  );
  assert.deepEqual(thrown, new Error('cannot open'));
  // Nobody knows who worded it, and what of (C12).
  assert.match(JSON.stringify(logged), /^\[\{"error":\{"message":"Error: \[message left out\]","stack":"Error: /);
  assert.doesNotMatch(JSON.stringify(logged), /cannot close/);
  assert.deepEqual(closed, ['last', 'first']);
});

test('works that open something have all settled when one of them fails', async () => {
  let isOpen = false;
  const slow = async (): Promise<void> => {
    await sleep(10);
    isOpen = true;
  };
  await assert.rejects(allSettled([Promise.reject(new Error('no')), slow()]), /no/);
  assert.equal(isOpen, true);
});
