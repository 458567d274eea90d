/** The vault of secrets: tokens that tell nothing, values that are kept in memory for a while and nowhere else. */
import assert from 'node:assert/strict';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createSecretVault } from '../../../src/adapters/bundle/secrets.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { withReason } from '../../support/failures.ts';
import { tempDir } from '../../support/temp-dir.ts';

describe('the vault', () => {
  it('gives the same value the same token, across restarts, and another node another', async (t) => {
    const dir = await tempDir(t);
    const keyPath = join(dir, 'key');
    const first = await createSecretVault(keyPath);
    onCleanup(t, first.close);
    const token = first.tokenOf('hunter2');
    assert.match(token, /^secret:[\w-]{22}$/);
    assert.equal(first.tokenOf(Buffer.from('hunter2')), token);
    assert.notEqual(first.tokenOf('hunter3'), token);
    assert.equal((await stat(keyPath)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(dir), ['key']);
    const restarted = await createSecretVault(keyPath);
    onCleanup(t, restarted.close);
    assert.throws(() => restarted.fill(token), withReason('Interrupted'));
    assert.equal(restarted.tokenOf('hunter2'), token);
    const other = await createSecretVault(join(dir, 'other-key'));
    onCleanup(t, other.close);
    assert.notEqual(other.tokenOf('hunter2'), token);
  });

  it('gives values back byte for byte, and its own copy of them', async (t) => {
    const vault = await createSecretVault(join(await tempDir(t), 'key'));
    onCleanup(t, vault.close);
    const value = Buffer.from([0xff, 0xfe, 0, 0x41]);
    const token = vault.tokenOf(value);
    value.fill(0);
    assert.deepEqual([...vault.fill(token)], [0xff, 0xfe, 0, 0x41]);
    assert.throws(() => vault.fill('secret:AAAAAAAAAAAAAAAAAAAAAA'), withReason('Interrupted'));
    assert.throws(() => vault.fill('__proto__'), withReason('Interrupted'));
    vault.close();
    assert.throws(() => vault.fill(token), withReason('Interrupted'));
  });

  it('forgets a value some time after it was last seen', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let now = 0;
    const pass = (ms: number): void => {
      now += ms;
      t.mock.timers.tick(ms);
    };
    const vault = await createSecretVault(join(await tempDir(t), 'key'), { keepMs: 400, nowMs: () => now });
    onCleanup(t, vault.close);
    const [early, renewed] = [vault.tokenOf('early'), vault.tokenOf('renewed')];
    pass(250);
    vault.tokenOf('renewed');
    pass(149);
    assert.equal(Buffer.from(vault.fill(early)).toString(), 'early');
    pass(1);
    assert.throws(() => vault.fill(early), withReason('Interrupted'));
    assert.equal(Buffer.from(vault.fill(renewed)).toString(), 'renewed');
    pass(250);
    assert.throws(() => vault.fill(renewed), withReason('Interrupted'));
    const again = vault.tokenOf('early');
    assert.equal(Buffer.from(vault.fill(again)).toString(), 'early');
    pass(400);
    assert.throws(() => vault.fill(again), withReason('Interrupted'));
  });

  it('C20: sets a key aside that is none, makes another, and says so', async (t) => {
    const dir = await tempDir(t);
    const keyPath = join(dir, 'key');
    await writeFile(keyPath, 'short');
    const reports: string[] = [];
    const vault = await createSecretVault(keyPath, { report: (message) => void reports.push(message) });
    assert.equal((await readFile(keyPath)).length, 32);
    const [aside = ''] = (await readdir(dir)).filter((name) => name.startsWith('key.damaged-'));
    assert.equal(await readFile(join(dir, aside), 'utf8'), 'short');
    assert.equal(reports.length, 1);
    assert.match(
      reports[0] ?? '',
      /key, is damaged \(it has 5 bytes instead of 32\); it is set aside at .*key\.damaged-/,
    );
    assert.equal(Buffer.from(vault.fill(vault.tokenOf('value'))).toString(), 'value');
    vault.close();
  });

  it('C20: goes on with a key that can neither be read nor written', async (t) => {
    const keyPath = join(await tempDir(t), 'none', 'key');
    const reports: string[] = [];
    const vault = await createSecretVault(keyPath, { report: (message) => void reports.push(message) });
    assert.match(reports[0] ?? '', /cannot be written to .*, and is lost with this daemon: ENOENT/);
    assert.equal(Buffer.from(vault.fill(vault.tokenOf('value'))).toString(), 'value');
    vault.close();
  });
});
