/** Logs beneath their pod's directory: no link on the way leads one elsewhere, whenever it is put there. */
import assert from 'node:assert/strict';
import { closeSync, constants, writeSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { openBeneath } from '../../../src/adapters/log-keeper/open-beneath.ts';
import { eventually } from '../../support/pods.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { containerIn, contentOf, fixtureOf, readLog, startWriter } from './support.ts';

const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;

describe('a log beneath its directory', () => {
  it('is made with the directories on the way, which are made if missing', async (t) => {
    const dir = await tempDir(t);
    const path = join(dir, 'pod/main/deep/0.log');
    for (const text of ['one', 'two']) {
      const fd = openBeneath(join(dir, 'pod'), path, FLAGS, 0o640);
      writeSync(fd, text);
      closeSync(fd);
    }
    assert.equal(await readFile(path, 'utf8'), 'onetwo');
    await symlink('pod', join(dir, 'link'));
    closeSync(openBeneath(join(dir, 'link'), join(dir, 'link/main/1.log'), FLAGS, 0o640));
    assert.deepEqual(
      (await readdir(join(dir, 'pod/main'))).toSorted(),
      ['1.log', 'deep'],
      'what leads to it may be a link',
    );
  });

  it('is given up where its directory takes none', () => {
    const nowhere = '/proc/scribe-has-none';
    assert.throws(() => openBeneath(nowhere, `${nowhere}/main/0.log`, FLAGS, 0o640), { code: 'ENOENT' });
  });

  it('is not opened through a link, at the end, in the middle or dangling', async (t) => {
    const dir = await tempDir(t);
    const [pod, elsewhere] = [join(dir, 'pod'), join(dir, 'elsewhere')];
    await mkdir(join(pod, 'main'), { recursive: true });
    await mkdir(join(elsewhere, 'deep'), { recursive: true });
    await writeFile(join(elsewhere, 'precious'), 'as it was');
    await symlink(elsewhere, join(pod, 'directory'));
    await symlink(join(elsewhere, 'precious'), join(pod, 'main/file'));
    await symlink(join(elsewhere, 'new'), join(pod, 'main/dangling'));
    await symlink('main', join(pod, 'inside'));
    for (const name of ['directory/0.log', 'directory/deep/0.log', 'main/file', 'main/dangling', 'inside/0.log']) {
      assert.throws(() => openBeneath(pod, join(pod, name), FLAGS, 0o640), /can't be opened: (ELOOP|ENOTDIR)/, name);
    }
    assert.deepEqual((await readdir(elsewhere, { recursive: true })).toSorted(), ['deep', 'precious']);
    assert.equal(await readFile(join(elsewhere, 'precious'), 'utf8'), 'as it was');
  });

  it('is opened anew by the keeper where it belongs, and not where a link leads that came meanwhile', async (t) => {
    const { connect, stateDir } = await fixtureOf(t);
    const keeper = await connect();
    const container = await containerIn(stateDir, 'led');
    const elsewhere = join(stateDir, 'elsewhere');
    await mkdir(elsewhere);
    await keeper.open({ ...container, logDirectory: join(stateDir, 'logs') });
    const writer = await startWriter(t, container, 'echo before; exec sleep 100');
    await eventually('the first line', async () => contentOf(await readLog(container.logPath)).includes('before'));
    const made = dirname(container.logPath);
    await rename(made, `${made}.old`);
    await symlink(elsewhere, made);
    await assert.rejects(keeper.reopen('led', container.logPath), /can't be opened: ENOTDIR/);
    assert.deepEqual(await readdir(elsewhere), []);
    await rm(made);
    await keeper.reopen('led', container.logPath);
    assert.equal(await readLog(container.logPath), '');
    writer.kill('SIGKILL');
    await writer.ended;
    await keeper.close('led', 10_000);
  });
});
