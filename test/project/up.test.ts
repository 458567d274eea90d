/**
 * `npm run up` and `npm run down` as a newcomer has them, in a network namespace and directories of the test's own: a
 * daemon, a running pod with log lines and an exec, its history, and everything gone afterwards. Runs alone.
 */
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { type TestContext, test } from 'node:test';
import { criTool } from '../support/cri-tools.ts';
import { onCleanup } from '../support/cleanup.ts';
import { leftovers, mountsBelow, noLeftovers, processesOf } from '../support/leftovers.ts';
import { type Netns, netnsOf } from '../support/netns.ts';
import { type CommandResult, run, runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const top = join(import.meta.dirname, '../..');

interface Place {
  readonly netns: Netns;
  /** Holds the two. */
  readonly dir: string;
  readonly root: string;
  readonly state: string;
  readonly socket: string;
  readonly npmRun: (...words: readonly string[]) => Promise<CommandResult>;
}

const placeOf = async (t: TestContext): Promise<Place> => {
  const netns = await netnsOf(t);
  const dir = await tempDir(t);
  const [root, state] = [join(dir, 'root'), join(dir, 'state')];
  // As plain su leaves it on Debian.
  const PATH = (process.env['PATH'] ?? '')
    .split(':')
    .filter((directory) => !directory.endsWith('/sbin'))
    .join(':');
  const env = { ...process.env, PATH, SCRIBE_ROOT: root, SCRIBE_STATE: state };
  const npmRun: Place['npmRun'] = (...words) =>
    run(netns.inside(['npm', 'run', '--silent', ...words]), { cwd: top, env, timeoutMs: 60_000 });
  onCleanup(t, async () => {
    await npmRun('down', '--', '--all');
    for (const { path } of (await mountsBelow([dir])).reverse()) await run(['umount', '--lazy', path]);
  });
  return { netns, dir, root, state, socket: join(state, 'scribe.sock'), npmRun };
};

test('up gives a running pod that crictl can use, a second up reuses the daemon, down leaves nothing but the journal', async (t) => {
  const { netns, root, state, socket, npmRun } = await placeOf(t);

  const up = await npmRun('up');
  assert.equal(up.exitCode, 0, up.stdout + up.stderr);
  assert.match(up.stdout, /no CNI configuration in .*: made a bridge network, for this daemon only/);
  assert.doesNotMatch(up.stdout, /iptables has no nat table/);
  assert.match(up.stdout, /the daemon serves: scribe \S+, pid \d+, after \d+ ms/);
  assert.match(up.stdout, /stdout F line 3 from demo/);
  assert.match(up.stdout, /inet 10\.\d+\.\d+\.\d+\/16/);
  for (const method of ['RunPodSandbox', 'CreateContainer', 'StartContainer', 'ExecSync'])
    assert.match(up.stdout, new RegExp(method));
  assert.ok(up.stdout.includes(`unix://${socket}`));

  const crictl = (...words: readonly string[]): Promise<string> =>
    runOk(
      netns.inside([
        criTool('crictl'),
        '--runtime-endpoint',
        `unix://${socket}`,
        '--image-endpoint',
        `unix://${socket}`,
        ...words,
      ]),
    );
  assert.match(await crictl('pods'), /Ready\s+demo\s+default/);
  const containerId = (await crictl('ps', '--quiet', '--name', 'talker')).trim();
  assert.match(containerId, /^[0-9a-f]{64}$/);
  assert.match(await crictl('logs', containerId), /^line 1 from demo/);
  assert.equal((await crictl('exec', '--sync', containerId, 'hostname')).trim(), 'demo');

  const pid = await readFile(join(state, 'scribe.pid'), 'utf8');
  const again = await npmRun('up');
  assert.equal(again.exitCode, 0, again.stdout + again.stderr);
  assert.match(again.stdout, /the daemon runs already/);
  assert.equal(await readFile(join(state, 'scribe.pid'), 'utf8'), pid);

  const down = await npmRun('down');
  assert.equal(down.exitCode, 0, down.stdout + down.stderr);
  assert.match(down.stdout, /has ended/);
  const dirs = { root, state, cgroupParent: '/none-of-its-own', addresses: join(state, 'cni-addresses') };
  assert.deepEqual(await leftovers(dirs), noLeftovers);
  assert.deepEqual(await processesOf(dirs), []);
  assert.doesNotMatch(await runOk(netns.inside(['ip', 'link'])), /scribe0/);

  const history = await runOk([join(top, 'bin/scribe'), 'history', '--root', root]);
  assert.match(history, /RemovePodSandbox/);
});

test('down where a killed daemon has left its pod says how to end that', async (t) => {
  const { state, npmRun } = await placeOf(t);
  const up = await npmRun('up');
  assert.equal(up.exitCode, 0, up.stdout + up.stderr);
  process.kill(Number(await readFile(join(state, 'scribe.pid'), 'utf8')), 'SIGKILL');
  const down = await npmRun('down');
  assert.equal(down.exitCode, 1);
  assert.match(down.stderr, /no daemon runs .* but 1 of its pods may: 'npm run up' takes them over/);
  assert.equal((await npmRun('up')).exitCode, 0);
  assert.equal((await npmRun('down')).exitCode, 0);
});

test('paths may be relative, and hold what a shell would split; the umask and a zone that Node does not know are no matter', async (t) => {
  const { netns, dir } = await placeOf(t);
  const words = ['--root', `${relative(top, dir)}/ä root`, '--state', `${relative(top, dir)}/ä state`];
  const npmRun = (command: string): Promise<CommandResult> => {
    const argv = ['sh', '-c', 'umask 077; exec "$@"', 'sh', 'npm', 'run', '--silent', command, '--', ...words];
    const env = { ...process.env, TZ: 'CET-1CEST,M3.5.0,M10.5.0/3', SCRIBE_ROOT: '', SCRIBE_STATE: '' };
    return run(netns.inside(argv), { cwd: top, env, timeoutMs: 60_000 });
  };
  onCleanup(t, async () => void (await npmRun('down')));
  const up = await npmRun('up');
  assert.equal(up.exitCode, 0, up.stdout + up.stderr);
  const shown = `--root '${dir}/ä root' --state '${dir}/ä state'`;
  assert.ok(up.stdout.includes(`npm run down -- ${shown} `), up.stdout);
  // Root of a pod with users of its own has to come through it.
  assert.equal((await stat(join(dir, 'ä state'))).mode & 0o777, 0o711);
  const down = await run(netns.inside(['sh', '-c', `npm run --silent down -- ${shown}`]), { cwd: top });
  assert.equal(down.exitCode, 0, down.stdout + down.stderr);
  assert.match(down.stdout, /removed the demo pod/);
});

test('whoever reads only the first line has a running pod all the same, and a full disk is told of in a sentence', async (t) => {
  const { netns, root, state, npmRun } = await placeOf(t);
  const env = { ...process.env, SCRIBE_ROOT: root, SCRIBE_STATE: state };
  const piped = (line: string): Promise<CommandResult> =>
    run(netns.inside(['bash', '-o', 'pipefail', '-c', line]), { cwd: top, env, timeoutMs: 60_000 });
  const up = await piped('npm run --silent up | head -n 1');
  assert.deepEqual([up.exitCode, up.stderr], [0, '']);
  const calls = await runOk([join(top, 'bin/scribe'), 'history', '--root', root, '--method', 'ExecSync']);
  assert.match(calls, /exit 0 \(ip addr show eth0\)/);
  const down = await piped('npm run --silent down > /dev/full');
  assert.deepEqual([down.exitCode, down.stdout], [1, '']);
  assert.match(down.stderr, /^Standard output cannot be written to: ENOSPC[^\n]*\.\n$/);
  assert.match((await npmRun('down')).stdout, /no daemon runs/);
});

test('down without a daemon says so and succeeds', async (t) => {
  const { npmRun, state } = await placeOf(t);
  const down = await npmRun('down');
  assert.equal(down.exitCode, 0);
  assert.ok(down.stdout.includes(`no daemon runs with state ${state}`));
});
