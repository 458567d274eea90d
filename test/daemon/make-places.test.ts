/** The daemon's directories as a start makes or narrows them. Needs root. */
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makePlaces } from '../../src/daemon/make-places.ts';
import type { Config } from '../../src/config/config.ts';
import { onCleanup } from '../support/cleanup.ts';
import { requireRoot } from '../support/netns.ts';
import { tempDir } from '../support/temp-dir.ts';

const serveOf = (rootDir: string, stateDir: string): Config['serve'] => ({ rootDir, stateDir }) as Config['serve'];
const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o7777).toString(8);

test('what is missing is made, what is as it should be is left, and of neither is anything told', async (t) => {
  const dir = await tempDir(t);
  const places = serveOf(join(dir, 'a/root'), join(dir, 'b/state'));
  const told: string[] = [];
  for (let round = 0; round < 2; round += 1) makePlaces(places, (message) => void told.push(message));
  assert.equal(told.length, 0);
  assert.deepEqual([await modeOf(places.rootDir), await modeOf(places.stateDir)], ['700', '711']);
  await chmod(places.stateDir, 0o700);
  makePlaces(places, (message) => void told.push(message));
  assert.equal(await modeOf(places.stateDir), '700', 'nothing is opened');
  assert.equal(told.length, 0);
});

test('what is open or of somebody else is narrowed and taken, through a link too, and told of once', async (t) => {
  requireRoot();
  const dir = await tempDir(t);
  await mkdir(join(dir, 'elsewhere'), { mode: 0o755 });
  await symlink('elsewhere', join(dir, 'root'));
  await writeFile(join(dir, 'elsewhere/secrets.key'), 'x', { mode: 0o644 });
  await mkdir(join(dir, 'state/bundles'), { recursive: true });
  await chmod(join(dir, 'state'), 0o777);
  await chown(join(dir, 'state'), 1000, 1000);
  const told: string[] = [];
  const places = serveOf(join(dir, 'root'), join(dir, 'state'));
  for (let round = 0; round < 2; round += 1) makePlaces(places, (message) => void told.push(message));
  const modes = ['elsewhere', 'elsewhere/secrets.key', 'state', 'state/bundles'].map((name) => modeOf(join(dir, name)));
  assert.deepEqual(await Promise.all(modes), ['700', '600', '711', '711']);
  assert.equal((await stat(join(dir, 'state'))).uid, 0);
  assert.equal(told.length, 5);
  assert.match(told.join('\n'), /state belonged to user 1000/);
});

test('a directory that all of the node need is left as it is, and told of', async (t) => {
  requireRoot();
  const dir = await tempDir(t);
  const { mode } = await stat('/mnt');
  onCleanup(t, () => chmod('/mnt', mode & 0o7777));
  await symlink('/mnt', join(dir, 'link'));
  for (const rootDir of ['/mnt', join(dir, 'link')]) {
    const told: string[] = [];
    makePlaces(serveOf(rootDir, join(dir, 'state')), (message) => void told.push(message));
    assert.match(told.join('\n'), /is a directory that others on this node need as it is/);
    assert.equal((await stat('/mnt')).mode, mode);
  }
});

test('what is in the way of a directory is told with the option that names another one', async (t) => {
  const dir = await tempDir(t);
  await writeFile(join(dir, 'file'), '');
  for (const [places, option] of [
    [serveOf(join(dir, 'file'), join(dir, 'state')), 'root'],
    [serveOf(join(dir, 'root'), join(dir, 'file/state')), 'state'],
  ] as const) {
    const message = new RegExp(`^There can be no directory ${dir}/file\\S*: E\\w+: .*--${option}, or ${option} of`);
    assert.throws(() => makePlaces(places, assert.fail), { name: 'FailureError', message });
  }
});
