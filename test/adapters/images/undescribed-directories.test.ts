/** What directories look like that a layer has and does not describe: as those below it. Needs root. */
import assert from 'node:assert/strict';
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { readXattr } from '../../../src/platform/linux/syscalls.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { tar } from '../../support/images/tar.ts';
import { startWorkshop, type Workshop } from '../../support/images/unpacking.ts';

describe('directories that a layer does not describe', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let workshop: Workshop;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    workshop = await startWorkshop(owner);
  });

  /** More of them are completed by a thread. */
  const many = Array.from({ length: 600 }, (_, number) => ({ path: `more-${number}/file`, data: 'x' }));
  for (const [howMany, more] of [
    ['a few', []],
    ['many', many],
  ] as const) {
    it(`have the looks that they have below: ${howMany}`, async () => {
      const base = tar([
        { path: './', flag: '5', mode: 0o711, uid: 5, gid: 6 },
        { path: 'tmp/', flag: '5', mode: 0o1777, mtime: 1_600_000_000 },
        { path: 'home/', flag: '5', mode: 0o755 },
        { path: 'home/user/', flag: '5', mode: 0o700, uid: 1000, gid: 1000 },
        { path: 'lib', flag: '2', linkPath: 'usr/lib' },
      ]);
      const middle = tar([{ path: 'home/', flag: '5', mode: 0o750 }]);
      const top = tar([
        { path: 'tmp/file', data: 'x' },
        { path: 'home/user/.config/file', data: 'x' },
        { path: 'lib/file', data: 'x' },
        { path: 'new/file', data: 'x' },
        ...more,
      ]);
      const [, , layer = ''] = await workshop.unpack(base, middle, top);
      const looks = async (path: string): Promise<string> => {
        const { mode, uid, gid } = await lstat(join(layer, path));
        return `${(mode & 0o7777).toString(8)} ${uid}:${gid}`;
      };
      assert.equal(await looks('.'), '711 5:6');
      assert.equal(await looks('tmp'), '1777 0:0');
      assert.equal((await lstat(join(layer, 'tmp'))).mtimeMs, 1_600_000_000_000);
      assert.equal(await looks('home'), '750 0:0');
      assert.equal(await looks('home/user'), '700 1000:1000');
      assert.equal(await looks('home/user/.config'), '755 0:0');
      assert.equal(await looks('lib'), '755 0:0');
      assert.equal(await looks('new'), '755 0:0');
    });

    it(`have the access lists and attributes that they have below: ${howMany}`, async () => {
      // user::rwx, user:1234:rwx, group::---, mask::rwx, other::---
      const entries = [
        [1, 7, 0xffffffff],
        [2, 7, 1234],
        [4, 0, 0xffffffff],
        [0x10, 7, 0xffffffff],
        [0x20, 0, 0xffffffff],
      ] as const;
      const list = Buffer.alloc(4 + 8 * entries.length);
      list.writeUInt32LE(2);
      for (const [index, [tag, permissions, id]] of entries.entries()) {
        list.writeUInt16LE(tag, 4 + 8 * index);
        list.writeUInt16LE(permissions, 6 + 8 * index);
        list.writeUInt32LE(id, 8 + 8 * index);
      }
      const acl = 'system.posix_acl_access';
      const pax = { 'SCHILY.xattr.user.whose': 'the image', [`SCHILY.xattr.${acl}`]: list };
      const [, layer = ''] = await workshop.unpack(
        tar([
          { path: 'shared/', flag: '5', mode: 0o770, gid: 50, pax },
          { path: 'hidden/', flag: '5', mode: 0o770, pax },
        ]),
        tar([{ path: 'shared/file', data: 'x' }, { path: '.wh.hidden' }, { path: 'hidden/file', data: 'x' }, ...more]),
      );
      const { mode, gid } = await lstat(join(layer, 'shared'));
      assert.deepEqual([mode & 0o7777, gid], [0o770, 50]);
      assert.deepEqual(Buffer.from((await readXattr(join(layer, 'shared'), acl)) ?? []), list);
      assert.equal(Buffer.from((await readXattr(join(layer, 'shared'), 'user.whose')) ?? []).toString(), 'the image');
      for (const path of ['shared/file', 'hidden', 'hidden/file'])
        assert.equal(await readXattr(join(layer, path), acl), null, path);
    });
  }
});
