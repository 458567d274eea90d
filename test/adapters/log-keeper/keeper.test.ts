/** The log keeper as the daemon sees it: real processes and real FIFOs. */
import assert from 'node:assert/strict';
import { lstat, mkdir, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcessStat } from '../../../src/platform/linux/processes.ts';
import { withReason } from '../../support/failures.ts';
import { eventually } from '../../support/pods.ts';
import { runOk } from '../../support/process.ts';
import { containerIn, contentOf, fixtureOf, nameOf, numbers, readLog, startCounter, startWriter } from './support.ts';

const closeTimeoutMs = 10_000;

describe('the log keeper', () => {
  it('writes both streams to one log, made with its directories and for its group only', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'both');
    await keeper.open(container);
    await keeper.open(container);
    assert.deepEqual(await keeper.list(), ['both']);
    const writer = await startWriter(t, container, 'echo one; sleep 0.05; echo two >&2; sleep 0.05; printf three');
    await writer.ended;
    await keeper.close('both', closeTimeoutMs);
    const records = (await readLog(container.logPath)).split('\n').map((line) => line.split(' ').slice(1).join(' '));
    assert.deepEqual(records, ['stdout F one', 'stderr F two', 'stdout P three', '']);
    assert.equal((await stat(container.logPath)).mode & 0o777, 0o640);
    assert.deepEqual(await keeper.list(), []);
    await keeper.close('both', closeTimeoutMs);
  });

  it('ends a container whose shim never came, and one whose output goes on, when the time is over', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const never = await containerIn(stateDir, 'never');
    await keeper.open(never);
    await keeper.close('never', closeTimeoutMs);
    const endless = await containerIn(stateDir, 'endless');
    await keeper.open(endless);
    await startWriter(t, endless, 'echo begun; exec sleep 60');
    await eventually('the first line', async () => (await readLog(endless.logPath)) !== '');
    await keeper.close('endless', 100);
    assert.deepEqual(await keeper.list(), []);
    assert.deepEqual(contentOf(await readLog(endless.logPath)), ['begun']);
  });

  it('splits lines where it was told to when their output was opened, whoever connects later', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const lengthsOf = async (logPath: string): Promise<string[]> =>
      (await readLog(logPath))
        .trimEnd()
        .split('\n')
        .map((line) => {
          const [, , tag = '', content = ''] = line.split(' ');
          return `${tag}${content.length}`;
        });
    const keeper = await connect(1024);
    const short = await containerIn(stateDir, 'short');
    await keeper.open(short);
    keeper.disconnect();
    const next = await connect(65_536);
    const long = await containerIn(stateDir, 'long');
    await Promise.all([next.open(short), next.open(long)]);
    const script = "head -c 70000 /dev/zero | tr '\\0' x; echo";
    const writers = await Promise.all([startWriter(t, short, script), startWriter(t, long, script)]);
    for (const writer of writers) assert.equal(await writer.ended, 0);
    await Promise.all(['short', 'long'].map((id) => next.close(id, closeTimeoutMs)));
    const expected = [...Array.from({ length: 68 }, () => 'P1024'), 'F368'];
    assert.deepEqual(await lengthsOf(short.logPath), expected);
    assert.deepEqual(await lengthsOf(long.logPath), ['P65536', 'F4464']);
  });

  it('fails to open a log that can never be, saying why, and reads nothing of it', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'nameless');
    const name = `${'x'.repeat(300)}.log`;
    await assert.rejects(keeper.open({ ...container, logPath: join(stateDir, name) }), {
      name: 'FailureError',
      message: /The log of container nameless cannot be written: .*ENAMETOOLONG/,
    });
    assert.deepEqual(await keeper.list(), []);
    await keeper.open(container);
    assert.deepEqual(await keeper.list(), ['nameless']);
  });

  it('discards output that has no log, so that nobody waits to write it', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = { ...(await containerIn(stateDir, 'discarded')), logPath: null };
    await keeper.open(container);
    const writer = await startWriter(t, container, 'head -c 1000000 /dev/zero');
    assert.equal(await writer.ended, 0);
    await assert.rejects(keeper.reopen('discarded', join(stateDir, 'log')), withReason('WrongState'));
    await keeper.close('discarded', closeTimeoutMs);
  });

  it('rotates: every line is in one of the files, none of them twice, nothing in the old one afterwards', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'rotated');
    await keeper.open(container);
    const counter = await startCounter(t, container.stdoutFifo, 1500);
    const rotated: string[] = [];
    for (let round = 0; round < 5; round += 1) {
      await sleep(150);
      const old = `${container.logPath}.${round}`;
      await rename(container.logPath, old);
      await keeper.reopen('rotated', container.logPath);
      rotated.push(await readLog(old));
    }
    await counter.ended;
    await keeper.close('rotated', closeTimeoutMs);
    const old = await Promise.all(rotated.map((_, round) => readLog(`${container.logPath}.${round}`)));
    assert.deepEqual(old, rotated);
    assert.deepEqual(contentOf([...rotated, await readLog(container.logPath)].join('')), numbers(1500));
  });

  it('goes on in the file that was put back, since the daemon died before it could say that another was opened', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'put-back');
    const { logPath } = container;
    await keeper.open(container);
    const counter = await startCounter(t, container.stdoutFifo, 1500);
    await eventually('the first lines', async () => (await readLog(logPath)).length > 1000);
    await rename(logPath, `${logPath}.rotated`);
    await keeper.reopen('put-back', logPath);
    await eventually('lines in the new file', async () => (await readLog(logPath)).length > 1000);
    keeper.disconnect();
    await rename(`${logPath}.rotated`, logPath);
    const lengthBefore = (await readLog(logPath)).length;
    await sleep(100);
    const next = await connect();
    await eventually('lines in the old file', async () => (await readLog(logPath)).length > lengthBefore);
    await counter.ended;
    await next.close('put-back', closeTimeoutMs);
    assert.deepEqual(contentOf(await readLog(logPath)), numbers(1500));
  });

  it('makes no log where one was removed, whoever connects', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'removed');
    await keeper.open(container);
    await rm(container.logPath);
    keeper.disconnect();
    const next = await connect();
    await next.close('removed', closeTimeoutMs);
    await assert.rejects(stat(container.logPath), { code: 'ENOENT' });
  });

  it('refuses to rotate what it does not read, and makes no file for it', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    await assert.rejects(keeper.reopen('unknown', join(stateDir, 'new.log')), withReason('WrongState'));
    assert.ok(!(await readdir(stateDir)).includes('new.log'));
    const container = await containerIn(stateDir, 'kept');
    await keeper.open(container);
    await startWriter(t, container, 'echo before; sleep 0.2; echo after; exec sleep 60');
    await mkdir(join(stateDir, 'directory.log'));
    await assert.rejects(keeper.reopen('kept', join(stateDir, 'directory.log')), withReason('HostFailed'));
    const content = await eventually('both lines', async () => {
      const lines = contentOf(await readLog(container.logPath));
      return lines.length === 2 && lines;
    });
    assert.deepEqual(content, ['before', 'after']);
  });

  it('reads the FIFOs that stand at their paths when a container is opened again', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'again');
    await keeper.open(container);
    await (await startWriter(t, container, 'echo first')).ended;
    await rm(container.stdoutFifo);
    await runOk(['mkfifo', container.stdoutFifo]);
    await keeper.open(container);
    await (await startWriter(t, container, 'echo second')).ended;
    await keeper.close('again', closeTimeoutMs);
    assert.deepEqual(contentOf(await readLog(container.logPath)), ['first', 'second']);
  });

  it('opens nothing but FIFOs by proper paths, for proper ids', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'proper');
    const file = join(stateDir, 'file');
    await writeFile(file, 'x');
    const link = join(stateDir, 'link');
    await symlink(container.stdoutFifo, link);
    await assert.rejects(keeper.open({ ...container, stdoutFifo: file }), withReason('HostFailed'));
    await assert.rejects(keeper.open({ ...container, stdoutFifo: link }), withReason('HostFailed'));
    await assert.rejects(keeper.open({ ...container, stdoutFifo: `${file}-absent` }), withReason('HostFailed'));
    await assert.rejects(keeper.open({ ...container, containerId: '../x' }), withReason('InvalidField'));
    await assert.rejects(keeper.open({ ...container, logPath: `${stateDir}/../x.log` }), withReason('InvalidField'));
    await assert.rejects(keeper.open({ ...container, logPath: 'x.log' }), withReason('InvalidField'));
    assert.deepEqual(await keeper.list(), []);
    await keeper.open(container);
    await assert.rejects(keeper.open({ ...container, stdoutFifo: container.stderrFifo }), withReason('WrongState'));
  });

  it('cuts off whoever does not speak its language, and serves on', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const path = join(stateDir, 'log-keeper/sock');
    assert.equal((await lstat(path)).mode & 0o777, 0o600);
    for (const nonsense of ['not JSON\n', '[]\n', '{"number":-1}\n', 'x'.repeat(1_000_000)]) {
      const socket = createConnection(path);
      socket.on('error', () => undefined);
      socket.end(nonsense);
      await new Promise((resolve) => {
        socket.resume().once('close', resolve);
      });
    }
    assert.deepEqual(await keeper.list(), []);
  });

  it('ends when told, with nothing open', async (t) => {
    const { connect } = await fixtureOf(t);
    const keeper = await connect();
    const name = nameOf(keeper);
    keeper.disconnect();
    await eventually('its end', async () => (await readProcessStat(name.pid))?.startTicks !== name.startTicks);
    await assert.rejects(keeper.list(), withReason('Interrupted'));
  });
});
