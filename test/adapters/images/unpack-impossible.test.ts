/** Members of layers that no kernel makes as they are described: what is refused, and in which words. Needs root. */
import assert from 'node:assert/strict';
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { deviceNumber } from '../../../src/platform/linux/syscalls.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { failureOf } from '../../support/images/store.ts';
import { tar } from '../../support/images/tar.ts';
import { startWorkshop, type Workshop } from '../../support/images/unpacking.ts';

describe('layers with what no kernel makes', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let workshop: Workshop;

  before(async () => {
    workshop = await startWorkshop(owner);
  });

  it('refuses device numbers that the kernel would cut to others, 4096:0 to that of a whiteout', async () => {
    for (const [major, minor] of [
      [0x1000, 0],
      [0, 0x10_0000],
    ] as const)
      for (const flag of ['3', '4']) {
        const failure = await failureOf(workshop.unpack(tar([{ path: 'd', flag, major, minor }])));
        assert.equal(failure.reason, 'ImageInvalid');
        assert.match(failure.message, /the device "d" has a number \(\d+:\d+\) that none can have/);
      }
    const [layer = ''] = await workshop.unpack(tar([{ path: 'd', flag: '4', major: 0xfff, minor: 0xf_ffff }]));
    assert.equal((await lstat(join(layer, 'd'))).rdev, deviceNumber(0xfff, 0xf_ffff));
  });

  it('shows no more than the beginning of a name that is too long', async () => {
    const path = `${'n'.repeat(250)}/`.repeat(16);
    const { reason, message } = await failureOf(
      workshop.unpack(tar([{ path: 'f', pax: { path: path.padEnd(4095, 'f') } }])),
    );
    assert.equal(reason, 'ImageInvalid');
    assert.match(message, /ENAMETOOLONG: name too long, .*n\.\.\.\.$/);
    assert.ok(message.length < 600, `${message.length} characters`);
  });

  it('names attributes that no such file can have, with the file', async () => {
    const defaultAcl = Buffer.from('0200000001000600ffffffff04000400ffffffff20000400ffffffff', 'hex');
    const [long, acl] = [`user.${'n'.repeat(300)}`, 'system.posix_acl_default'];
    const odd: readonly (readonly [name: string, value: Buffer | string, shown: RegExp])[] = [
      [
        'security.capability',
        'x',
        /"f" has an extended attribute \(security\.capability, 1 bytes\) that .* \(EINVAL\)/,
      ],
      [long, 'x', /"f" has an extended attribute \(user\.n{95}, 1 bytes\) that .* \(ERANGE\)/],
      ['user.a', Buffer.alloc(70_000), /"f" has an extended attribute \(user\.a, 70000 bytes\) that .* \(E2BIG\)/],
      [acl, defaultAcl, /"f" has an extended attribute \(system\.posix_acl_default, 28 bytes\) that .* \(EACCES\)/],
    ];
    for (const [name, value, shown] of odd) {
      const failure = await failureOf(workshop.unpack(tar([{ path: 'f', pax: { [`SCHILY.xattr.${name}`]: value } }])));
      assert.equal(failure.reason, 'ImageInvalid');
      assert.match(failure.message, shown);
    }
    await workshop.unpack(tar([{ path: 'd', flag: '5', pax: { [`SCHILY.xattr.${acl}`]: defaultAcl } }]));
  });
});
