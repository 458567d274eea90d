/** Programs that the spawner runs for as long as they will, with a connection to the daemon (root is needed). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { RunRequest, Spawner } from '../../../src/platform/spawner/types.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { withReason } from '../../support/failures.ts';
import { requireRoot } from '../../support/netns.ts';
import { tempDir } from '../../support/temp-dir.ts';

const timeout = 25_000;

const shell = (script: string, more: Partial<RunRequest>): RunRequest => ({
  command: 'sh',
  args: ['-c', script],
  env: { PATH: '/usr/bin:/bin' },
  cwd: '/',
  timeoutMs: 20_000,
  outputBytesMax: 65_536,
  ...more,
});

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

const spawnerIn = async (t: TestContext, dir: string): Promise<Spawner> => {
  const spawner = await startSpawner({ lockPath: join(dir, 'spawner.lock'), startTimeoutMs: 10_000 });
  onCleanup(t, () => spawner.close());
  return spawner;
};

before(requireRoot);

test('gives a program a stream to a socket at descriptor 3, and tells its pid', { timeout }, async (t) => {
  const dir = await tempDir(t);
  const spawner = await spawnerIn(t, dir);
  const socketPath = join(dir, 'there.sock');
  const server = createServer((socket) => socket.end('from the socket\n')).listen(socketPath);
  onCleanup(t, () => void server.close());
  await once(server, 'listening');
  let pid = 0;
  const onStarted = (started: number): void => void (pid = started);
  const ran = await spawner.run(shell('echo $$; ls /proc/self/fd; cat <&3', { socketPath, onStarted }));
  assert.equal(text(ran.stdout), `${pid}\n0\n1\n2\n3\n4\nfrom the socket\n`);
  const refused = spawner.run(shell('true', { socketPath: join(dir, 'nobody.sock') }));
  await assert.rejects(refused, withReason('HostLacks', /nobody\.sock/));
});

test('runs a program without a bound of time, and keeps the end of what it says', { timeout }, async (t) => {
  const spawner = await spawnerIn(t, await tempDir(t));
  const more = { timeoutMs: null, keepsEnd: true, outputBytesMax: 10 } as const;
  const ran = await spawner.run(shell('seq 1 100000; echo the end; echo short >&2', more));
  assert.deepEqual([text(ran.stdout), text(ran.stderr)], ['0\nthe end\n', 'short\n']);
  assert.deepEqual([ran.truncated, ran.timedOut, ran.exitCode], [true, false, 0]);
});
