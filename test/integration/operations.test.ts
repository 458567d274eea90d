/** What a service manager and an administrator see of a real daemon: notifications, reload, its place, its log level. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { readCgroupFacts } from '../../src/platform/linux/cgroups.ts';
import { createNotify } from '../../src/platform/linux/notify.ts';
import { onCleanup } from '../support/cleanup.ts';
import { listenDatagrams } from '../support/datagrams.ts';
import { startDaemon } from '../support/daemon.ts';
import { callsAfter } from '../support/journal.ts';
import { tempDir } from '../support/temp-dir.ts';

const timeout = 60_000;

describe('notifications', () => {
  test('abstract names are notified too, and nobody is by default', async (t) => {
    const name = `@scribe-test-${randomBytes(4).toString('hex')}`;
    const socket = listenDatagrams(t, name);
    const problems: string[] = [];
    createNotify(undefined, (message) => problems.push(message)).ready();
    createNotify(name, (message) => problems.push(message)).stopping();
    assert.match(await socket.next(), /^STOPPING=1\n/);
    assert.deepEqual(problems, []);
  });

  test('a manager that is not there is a sentence, no exception', () => {
    const problems: string[] = [];
    createNotify('/nowhere/notify', (message) => problems.push(message)).ready();
    createNotify(`/${'x'.repeat(200)}`, (message) => problems.push(message)).ready();
    assert.equal(problems.length, 2);
    assert.match(problems[0] ?? '', /^The service manager could not be told READY=1: .*ENOENT/);
  });
});

describe('a daemon under a service manager', () => {
  test('tells it of start, reload and end, and reloads what can change', { timeout }, async (t) => {
    const path = join(await tempDir(t), 'notify');
    const socket = listenDatagrams(t, path);
    const config = '[serve]\nlog_level = "info"\n';
    const daemon = await startDaemon(t, { config, env: { NOTIFY_SOCKET: path } });
    const configPath = join(dirname(daemon.dirs.root), 'config.toml');
    const ready = await socket.next();
    assert.match(ready, /^READY=1\n/);
    assert.ok(ready.includes(`MAINPID=${daemon.pid()}`));

    const reload = async (text: string): Promise<void> => {
      await writeFile(configPath, text);
      process.kill(daemon.pid(), 'SIGHUP');
      assert.match(await socket.next(), /^RELOADING=1\nMONOTONIC_USEC=\d+$/);
      assert.match(await socket.next(), /^READY=1\n/);
    };
    const level = async (wanted: string): Promise<string> => {
      const { exitCode, stdout, stderr } = await daemon.scribe('log-level', '--socket', daemon.socket, wanted);
      assert.equal(exitCode, 0, stderr);
      return stdout.trim();
    };
    await reload('[serve]\nlog_level = "warn"\n[cni]\nplugin_timeout = "9s"\n');
    assert.equal(await level('info'), 'warn');
    assert.match(daemon.log(), /"key":"cni.plugin_timeout".*it takes a restart/);
    await reload('[serve]\nlog_levle = "warn"\n');
    assert.equal(await level('debug'), 'info', 'a bad file changed something');
    assert.match(daemon.log(), /log_levle.*the old one stays/);
    const wrong = await daemon.scribe('log-level', '--socket', daemon.socket, 'loud');
    assert.equal(wrong.exitCode, 2, 'a word that is none of the command line is told otherwise than others');
    assert.match(wrong.stderr, /There is no level loud; there are trace, debug, info, warn, error, fatal\.$/m);

    const asked = (await callsAfter(daemon, 0)).filter(({ request }) => request.method === 'SetLogLevel');
    assert.ok(
      asked.length > 0 && asked.every(({ caller }) => caller?.program === 'scribe'),
      'a command is not known as ours',
    );

    const ended = daemon.stop();
    assert.match(await socket.next(), /^STOPPING=1\n/);
    assert.equal(await ended, 0);
  });

  test('takes its place: control group and OOM score', { timeout }, async (t) => {
    const cgroup = `/scribe-test-own-${randomBytes(4).toString('hex')}/daemon`;
    const { controllers } = await readCgroupFacts();
    const mountPoints = [...new Set(Object.values(controllers))];
    // Registered first, so that it runs last: the daemon is gone by then.
    onCleanup(t, async () => {
      for (const path of [cgroup, dirname(cgroup)]) for (const mount of mountPoints) await rmdir(join(mount, path));
    });
    const own = Number(await readFile('/proc/self/oom_score_adj', 'utf8'));
    const config = `[serve]\ncgroup = "${cgroup}"\noom_score_adj = ${Math.max(own, 100)}\n`;
    const daemon = await startDaemon(t, { config });
    for (const mount of mountPoints) {
      const pids = (await readFile(join(mount, cgroup, 'cgroup.procs'), 'utf8')).trim().split('\n');
      assert.ok(pids.includes(String(daemon.pid())), `the daemon is not in ${mount}${cgroup}`);
      assert.ok(pids.length >= 3, 'spawner and log keeper are not with it');
    }
    assert.equal(Number(await readFile(`/proc/${daemon.pid()}/oom_score_adj`, 'utf8')), Math.max(own, 100));
    assert.equal(await daemon.stop(), 0);
    // The log keeper outlives the daemon; it is what the groups wait for.
    const keepers = (await readFile(join(mountPoints[0] ?? '', cgroup, 'cgroup.procs'), 'utf8')).trim().split('\n');
    for (const pid of keepers.filter(Boolean)) process.kill(Number(pid), 'SIGKILL');
  });
});
