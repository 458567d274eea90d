/** What is told of hidden parts of /proc and /sys is what the kernel says, who is asked to mount both in each case. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { before, test } from 'node:test';
import { hiddenPartOfKernelFiles, REVEALING } from '../../../src/platform/linux/hidden-parts.ts';
import {
  isAtOrBelow,
  type MountInfo,
  parseMountInfo,
  readMountInfo,
  readMountsOn,
} from '../../../src/platform/linux/mounts.ts';
import { requireRoot } from '../../support/netns.ts';
import { tempDir } from '../../support/temp-dir.ts';

before(requireRoot);

const TABLE_ENDS = 'table ends';

/** What the script, run in a mount namespace of its own, makes of the mount table, and whether the kernel then refuses. */
const seenAfter = (script: string, dir: string) => {
  const mountBoth = `mount -t proc proc ${dir} && mount -t sysfs sysfs ${dir}`;
  const asked = `unshare --user --map-root-user --mount --net --pid --fork sh -c '${mountBoth}' && echo mounted`;
  const whole = `set -e; ${script}\ncat /proc/self/mountinfo; echo ${TABLE_ENDS}; ${asked} || true`;
  const { stdout, stderr, status } = spawnSync('unshare', ['--mount', 'sh', '-c', whole], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const [table = '', answer = ''] = stdout.split(`${TABLE_ENDS}\n`);
  return { hidden: hiddenPartOfKernelFiles(parseMountInfo(table)), isRefused: answer !== 'mounted\n' };
};

const cases: readonly (readonly [title: string, script: string, hidden: string | null])[] = [
  ['as it is here', 'true', null],
  ['a part of /proc', 'mount -t tmpfs none /proc/fs', 'something is mounted over /proc/fs'],
  ['a file of /proc', 'mount --bind /dev/null /proc/meminfo', 'something is mounted over /proc/meminfo'],
  ['a directory made to be mounted on', 'mount -t tmpfs none /proc/sys/fs/binfmt_misc', null],
  ['a part of /sys', 'mount -t tmpfs none /sys/devices', 'something is mounted over /sys/devices'],
  ['another /proc over it', 'mount -t tmpfs none /proc/fs; mount -t proc proc /proc', null],
  ['a /proc that cannot be written', 'mount -o remount,bind,ro /proc', '/proc is mounted read-only'],
  ['a /sys that cannot be written', 'mount -o remount,bind,ro /sys', '/sys is mounted read-only'],
];

for (const [title, script, expected] of cases)
  test(`says of ${title} what the kernel does`, async (t) => {
    const { hidden, isRefused } = seenAfter(script, await tempDir(t));
    assert.deepEqual({ hidden, isRefused }, { hidden: expected, isRefused: expected !== null });
  });

test('is told of all that is mounted on one of them, and of nothing else', async () => {
  const isOn = ({ mountPoint }: MountInfo): boolean => ['/proc', '/sys'].some((dir) => isAtOrBelow(mountPoint, dir));
  const mounts = await readMountsOn(REVEALING);
  assert.ok(mounts.some(({ mountPoint }) => mountPoint.startsWith('/sys/')));
  assert.deepEqual(mounts, (await readMountInfo()).filter(isOn));
});

test('says of a machine without proc that there is none', () => {
  assert.equal(hiddenPartOfKernelFiles([]), 'no proc is mounted');
});
