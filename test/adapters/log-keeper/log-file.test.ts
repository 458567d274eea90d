/** Logs that can't be written, or not in time: no container waits, and what is lost is counted and said. */
import assert from 'node:assert/strict';
import { lstat, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OpenLogRequest } from '../../../src/adapters/log-keeper/types.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { requireRoot } from '../../support/netns.ts';
import { eventually } from '../../support/pods.ts';
import { run, runOk } from '../../support/process.ts';
import { containerIn, contentOf, fixtureOf, numbers, readLog, startWriter } from './support.ts';

const closeTimeoutMs = 10_000;
const lossPattern = /^scribe: (\d+) log records were lost here because the log could not be written$/;

const mountAt = async (t: TestContext, dir: string, args: readonly string[]): Promise<void> => {
  requireRoot();
  await mkdir(dir, { recursive: true });
  await runOk(['mount', ...args, dir]);
  onCleanup(t, async () => void (await runOk(['umount', '--lazy', dir])));
};

/** The content without our own notes, and how many records those say were lost. */
const withoutNotes = (content: readonly string[]): { readonly output: string[]; readonly lost: number } => ({
  output: content.filter((line) => !lossPattern.test(line)),
  lost: content.reduce((sum, line) => sum + Number(lossPattern.exec(line)?.[1] ?? 0), 0),
});

describe('logs in trouble', () => {
  it('C16: a full disk stalls nobody; whole records stay, the lost ones are counted', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'full');
    const disk = dirname(container.logPath);
    await mountAt(t, disk, ['-t', 'tmpfs', '-o', 'size=128k', 'tmpfs']);
    await keeper.open(container);
    const first = await startWriter(t, container, 'seq 0 9999; echo full; exec sleep 60');
    await eventually('the full disk', async () => (await readLog(container.logPath)).length > 120_000);
    assert.ok(first.isAlive());
    const [trouble, ...others] = await eventually('the trouble', async () => {
      const troubles = await keeper.troubles();
      return troubles.some(({ lostRecords }) => lostRecords > 0) && troubles;
    });
    assert.deepEqual([trouble?.containerId, trouble?.logPath, others], ['full', container.logPath, []]);
    assert.match(trouble?.why ?? '', /^ENOSPC/);
    const agoMs = Date.now() - (trouble?.sinceMs ?? 0);
    assert.ok(agoMs >= 0 && agoMs < 60_000, `${agoMs} ms ago`);
    await runOk(['mount', '-o', 'remount,size=4m', disk]);
    const noted = await eventually('the note', async () => {
      const content = contentOf(await readLog(container.logPath));
      return lossPattern.test(content.at(-1) ?? '') && content;
    });
    assert.deepEqual(await keeper.troubles(), []);
    const { output, lost } = withoutNotes(noted);
    assert.equal(output.length + lost, 10_001);
    assert.deepEqual(output, numbers(output.length));
    await (await startWriter(t, container, 'echo more')).ended;
    await first.stop();
    await keeper.close('full', closeTimeoutMs);
    assert.deepEqual(contentOf(await readLog(container.logPath)), [...noted, 'more']);
    const said = await readFile(join(stateDir, 'log-keeper/keeper.log'), 'utf8');
    assert.match(said, /Dropping output, the log .*\/full\/0\.log can't be written: ENOSPC/);
    assert.match(said, /Writing the log .*\/full\/0\.log again; \d+ records were lost/);
  });

  it('C16: a directory that cannot be made stalls nobody; the log begins when it can', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'blocked');
    await writeFile(join(stateDir, 'logs'), 'in the way');
    await keeper.open(container);
    const writer = await startWriter(t, container, 'seq 1 5000; printf "no end"');
    assert.equal(await writer.ended, 0);
    await rm(join(stateDir, 'logs'));
    await eventually('the note', async () => (await readLog(container.logPath).catch(() => '')) !== '');
    await keeper.close('blocked', closeTimeoutMs);
    const { output, lost } = withoutNotes(contentOf(await readLog(container.logPath)));
    assert.equal(output.length + lost, 5001);
    assert.ok(lost >= 5000);
  });

  it('writes to no file that a link leads to, and to nothing that is no file', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const target = join(stateDir, 'target');
    await writeFile(target, 'untouched');
    const plants = [
      ['link', (path: string) => symlink(target, path)],
      ['fifo', (path: string) => runOk(['mkfifo', path])],
      ['directory', (path: string) => mkdir(path)],
    ] as const;
    for (const [containerId, plant] of plants) {
      const container = await containerIn(stateDir, containerId);
      await mkdir(dirname(container.logPath), { recursive: true });
      await plant(container.logPath);
      await keeper.open(container);
      assert.equal(await (await startWriter(t, container, 'seq 1 20000')).ended, 0);
      await keeper.close(containerId, closeTimeoutMs);
      assert.ok(!(await lstat(container.logPath)).isFile());
    }
    assert.equal(await readFile(target, 'utf8'), 'untouched');
  });

  it('C16: a disk that hangs stalls those who log to it, once it is known to be slow', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const [hanging, other] = [await containerIn(stateDir, 'hanging'), await containerIn(stateDir, 'other')];
    const image = join(stateDir, 'image');
    const disk = dirname(hanging.logPath);
    await runOk(['truncate', '--size=16M', image]);
    await runOk(['mkfs.ext4', '-q', image]);
    await mountAt(t, disk, ['-o', 'loop', image]);
    onCleanup(t, async () => void (await run(['fsfreeze', '--unfreeze', disk])));
    const freeze = () => runOk(['fsfreeze', '--freeze', disk]);
    const unfreeze = () => runOk(['fsfreeze', '--unfreeze', disk]);
    const say = async (container: OpenLogRequest & { readonly stderrFifo: string }, text: string): Promise<void> => {
      await (await startWriter(t, container, `echo ${text}`)).ended;
    };
    const logged = (container: { readonly logPath: string }, text: string) =>
      eventually(text, async () => contentOf(await readLog(container.logPath)).at(-1) === text);
    for (const container of [hanging, other]) {
      await keeper.open(container);
      await startWriter(t, container, 'exec sleep 60');
    }

    // The first slow write is felt by all: nobody could know.
    await freeze();
    await say(hanging, 'one');
    await sleep(300);
    await unfreeze();
    await logged(hanging, 'one');

    await freeze();
    await say(hanging, 'two');
    await say(other, 'two');
    await logged(other, 'two');
    assert.deepEqual(await keeper.list(), ['hanging', 'other']);
    assert.deepEqual(contentOf(await readLog(hanging.logPath)), ['one']);
    await unfreeze();
    await logged(hanging, 'two');
    await say(hanging, 'three');
    await logged(hanging, 'three');
    assert.deepEqual(contentOf(await readLog(hanging.logPath)), ['one', 'two', 'three']);
  });
});
