/** The log keeper when a daemon, a keeper or its state file comes to grief: what may be lost then, and what not. */
import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { appendFile, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readProcessStat } from '../../../src/platform/linux/processes.ts';
import { withReason } from '../../support/failures.ts';
import { eventually } from '../../support/pods.ts';
import { startProcess } from '../../support/process.ts';
import {
  containerIn,
  contentOf,
  fixtureOf,
  killProcess,
  nameOf,
  numbers,
  readLog,
  startCounter,
  startWriter,
} from './support.ts';

const SIGTERM = 15;
const daemonPath = fileURLToPath(new URL('./daemon.ts', import.meta.url));
const closeTimeoutMs = 10_000;

/** Of this process. */
const openFiles = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      // The descriptor that the directory was read through.
      return [];
    }
  });

describe('deaths around the log keeper', { concurrency: 3 }, () => {
  it('C16: loses and doubles no line over ten kills of the daemon, and nobody waits for it', async (t) => {
    const { stateDir } = await fixtureOf(t);
    const container = await containerIn(stateDir, 'counting');
    const daemon = async () => {
      const argv = [process.execPath, daemonPath, stateDir, JSON.stringify(container)];
      const process_ = await startProcess(t, argv);
      return { process: process_, said: await process_.until(/connected to (\d+), reading (.*)/) };
    };
    let running = await daemon();
    const [, firstKeeper] = running.said;
    const lines = 6000;
    const counter = await startCounter(t, container.stdoutFifo, lines);
    for (let kill = 0; kill < 10; kill += 1) {
      // At moments that differ between runs, for some of which there is no daemon at all.
      await sleep(Math.random() * 100);
      running.process.kill('SIGKILL');
      await running.process.ended;
      await sleep(Math.random() * 100);
      running = await daemon();
      assert.deepEqual(running.said.slice(1), [firstKeeper, 'counting']);
    }
    const [, longestMs] = await counter.until(/longest write (\d+) ms/, 20_000);
    const content = await eventually('the last line', async () => {
      const counted = contentOf(await readLog(container.logPath));
      return counted.length >= lines && counted;
    });
    assert.deepEqual(content, numbers(lines));
    assert.ok(Number(longestMs) < 1000, `a write waited for ${longestMs} ms`);
  });

  it('C16: goes on in a new process when the old one is killed; only what that had in hand is lost', async (t) => {
    const { connect, stateDir, messages, news } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'counting');
    await keeper.open(container);
    const lines = 4000;
    const counter = await startCounter(t, container.stdoutFifo, lines);
    const kills = 5;
    for (let kill = 0; kill < kills; kill += 1) {
      await sleep(Math.random() * 200);
      const old = nameOf(keeper);
      await killProcess(old);
      assert.deepEqual(await keeper.list(), ['counting']);
      assert.notDeepEqual(nameOf(keeper), old);
    }
    await counter.until(/counted/, 20_000);
    await counter.ended;
    await keeper.close('counting', closeTimeoutMs);
    const said = contentOf(await readLog(container.logPath));
    const content = said.filter((line) => !line.startsWith('scribe: ')).map(Number);
    assert.ok(
      content.every((value, index) => index === 0 || value > (content[index - 1] ?? 0)),
      'none is doubled',
    );
    t.diagnostic(`${lines - content.length} of ${lines} lines were lost by ${kills} kills of the keeper`);
    // At 1,000 lines a second a read takes in a few lines; more than that per kill was lost elsewhere.
    assert.ok(lines - content.length <= kills * 20, `${lines - content.length} lines were lost`);
    assert.equal(messages.filter((message) => message.includes('was replaced')).length, kills);
    // Where they may be missing, the log and a record say so.
    assert.equal(said.filter((line) => line.startsWith('scribe: the log keeper was killed')).length, kills);
    const [first, ...later] = news.filter(({ kind }) => kind === 'LogKeeperStarted');
    assert.deepEqual(first?.kind === 'LogKeeperStarted' && first.doubtful, []);
    assert.deepEqual(
      later.map((told) => told.kind === 'LogKeeperStarted' && told.doubtful),
      Array.from({ length: kills }, () => ['counting']),
    );
    assert.deepEqual(
      news.flatMap((told) => (told.kind === 'LogKeeperEnded' ? [told.reason] : [])),
      Array.from({ length: kills }, () => 'it was killed, or ended by an error'),
    );
  });

  it('C16: writes again what a killed keeper had in hand, from where its records began', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'in-hand');
    await keeper.open(container);
    const writer = await startWriter(t, container, 'seq 0 4; exec sleep 60');
    await eventually('the first lines', async () => contentOf(await readLog(container.logPath)).length === 5);
    const old = nameOf(keeper);
    process.kill(old.pid, 'SIGSTOP');
    // As if it had been killed in the middle of writing: one record is there, the next in part.
    const { ino, size } = await stat(container.logPath);
    const head = {
      containerId: 'in-hand',
      stream: 'stdout',
      place: { inode: ino, sizeBytes: size },
      heldBytes: 2,
      dataBytes: 7,
    };
    await writeFile(join(stateDir, 'log-keeper/in-hand'), `${JSON.stringify(head)}\nha5\n6\n7\nh`);
    await appendFile(container.logPath, '2026-01-01T00:00:00.000000000Z stdout F ha5\n2026-01-01T00:0');
    await killProcess(old);
    assert.deepEqual(await keeper.list(), ['in-hand']);
    await (await startWriter(t, container, 'echo alf')).ended;
    await writer.stop();
    await keeper.close('in-hand', closeTimeoutMs);
    const content = contentOf(await readLog(container.logPath)).filter((line) => !line.startsWith('scribe: '));
    assert.deepEqual(content, [...numbers(5), 'ha5', '6', '7', 'half']);
  });

  it('C16: keeps what is written while no keeper lives, though the writer ends meanwhile', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'ended');
    await keeper.open(container);
    const old = nameOf(keeper);
    process.kill(old.pid, 'SIGSTOP');
    await (await startWriter(t, container, 'seq 0 999; echo error >&2')).ended;
    await killProcess(old);
    await keeper.close('ended', closeTimeoutMs);
    assert.deepEqual(
      contentOf(await readLog(container.logPath)).filter((line) => line !== 'error' && !line.startsWith('scribe: ')),
      numbers(1000),
    );
  });

  it('C16: hands unfinished lines over when it is ended in order: nothing is lost', async (t) => {
    const { connect, stateDir, news } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'unfinished');
    await keeper.open(container);
    const lines = 2000;
    const counter = await startCounter(t, container.stdoutFifo, lines);
    const prompter = await startWriter(t, container, 'printf "half a " >&2; sleep 1; echo line >&2');
    await eventually('the first lines', async () => (await readLog(container.logPath)).length > 1000);
    for (let ends = 0; ends < 3; ends += 1) {
      await killProcess(nameOf(keeper), SIGTERM);
      assert.deepEqual(await keeper.list(), ['unfinished']);
    }
    await Promise.all([counter.ended, prompter.ended]);
    await keeper.close('unfinished', closeTimeoutMs);
    const content = contentOf(await readLog(container.logPath));
    assert.deepEqual(
      content.filter((line) => line.startsWith('half')),
      ['half a line'],
    );
    assert.deepEqual(
      content.filter((line) => !line.startsWith('half')),
      numbers(lines),
    );
    assert.ok(news.every((told) => told.kind === 'LogKeeperEnded' || told.doubtful.length === 0));
    assert.ok(news.some((told) => told.kind === 'LogKeeperEnded' && told.reason === 'it has ended in order'));
  });

  it('C16: opens again what the daemon knows of, when the state file is lost or damaged', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'known');
    await keeper.open(container);
    await startWriter(t, container, 'while :; do echo line; sleep 0.02; done');
    const statePath = join(stateDir, 'log-keeper/state.json');
    for (const damage of ['', '{"bootId":', JSON.stringify({ containers: 'none' })]) {
      await writeFile(statePath, damage);
      await killProcess(nameOf(keeper));
      assert.deepEqual(await keeper.list(), ['known']);
      const before = (await readLog(container.logPath)).length;
      await eventually('more lines', async () => (await readLog(container.logPath)).length > before);
      assert.match(await readFile(statePath, 'utf8'), /"known"/);
    }
  });

  it('C16: leaves the FIFOs alone as long as no daemon has spoken to it, and ends', async (t) => {
    const { connect, stateDir, spawner } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'mine');
    await keeper.open(container);
    // As if a daemon had started a keeper and died before its hello.
    const main = join(import.meta.dirname, '../../../src/adapters/log-keeper/keeper-main.ts');
    const dir = join(stateDir, 'log-keeper');
    const stray = await spawner.startDetached({
      command: process.execPath,
      args: [main, dir, 'stray', '1500'],
      env: {},
      cwd: '/',
      outputPath: join(dir, 'keeper.log'),
    });
    await eventually('the other keeper', async () => (await readdir(dir)).includes('stray.ready'));
    const counter = await startCounter(t, container.stdoutFifo, 500);
    await counter.ended;
    await keeper.close('mine', closeTimeoutMs);
    assert.deepEqual(contentOf(await readLog(container.logPath)), numbers(500));
    // Nobody wants it, so it ends by itself; the other one has a client.
    await eventually('its end', async () => (await readProcessStat(stray.pid))?.startTicks !== stray.startTicks);
    assert.ok(!(await readdir(dir)).includes('stray.ready'));
    assert.deepEqual(await keeper.list(), []);
  });

  it('C16: is replaced when it does not answer', async (t) => {
    const { connect, stateDir, messages } = await fixtureOf(t);
    const first = await connect();
    const container = await containerIn(stateDir, 'hung');
    await first.open(container);
    const hung = nameOf(first);
    process.kill(hung.pid, 'SIGSTOP');
    const second = await connect();
    assert.notEqual(second.pid, hung.pid);
    assert.deepEqual(await second.list(), ['hung']);
    assert.ok(messages.some((message) => message.includes('was killed')));
    assert.notEqual((await readProcessStat(hung.pid))?.startTicks, hung.startTicks);
  });

  it('is done with a container that a keeper did not close in time, and so is the next keeper', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'unclosed');
    await keeper.open(container);
    const hung = nameOf(keeper);
    process.kill(hung.pid, 'SIGSTOP');
    // Less than nothing, so that the time of the request itself is over soon.
    await assert.rejects(keeper.close('unclosed', -29_500), withReason('TimedOut'));
    const held = openFiles().filter((path) => path === container.stdoutFifo || path === container.stderrFifo);
    assert.deepEqual(held, []);
    await rm(dirname(container.stdoutFifo), { recursive: true });
    await killProcess(hung);
    await eventually('another keeper', async () => keeper.pid !== hung.pid);
    assert.deepEqual(await keeper.list(), []);
  });
});
