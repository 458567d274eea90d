/** The filter of system calls that unpacking children put themselves under, tried in a process of its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';

const source = (path: string): string =>
  JSON.stringify(new URL(`../../../src/platform/linux/${path}`, import.meta.url));

/** What it says on stdout, after it has put itself under the filter. Nothing is printed by a stream, as in the child. */
const filtered = async (script: string): Promise<unknown> => {
  const program = `
    import { writeSync } from 'node:fs';
    import { enterJail } from ${source('jail.ts')};
    import { native } from ${source('native.ts')};
    import { errno } from 'koffi';
    enterJail({ memoryBytesMax: 2 ** 34, fileBytesMax: 2 ** 30 });
    const say = (value) => writeSync(1, JSON.stringify(value));
    ${script}`;
  const env = { ...process.env, UV_USE_IO_URING: '0' };
  const child = promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { env });
  return JSON.parse((await child).stdout);
};

const EPERM = 1;

describe('the filter of system calls', () => {
  it('refuses programs, processes, sockets, namespaces, mounts, roots and other processes', async () => {
    const errors = await filtered(`
      const call = native('long syscall(long number, long first, long second, long third, long fourth)');
      const numbers = process.arch === 'arm64'
        ? { execve: 221, socket: 198, unshare: 97, setns: 268, mount: 40, umount2: 39, pivot_root: 41, chroot: 51,
            ptrace: 117, kill: 129, bpf: 280, io_uring_setup: 425, io_uring_register: 427, keyctl: 219, rename: 38 }
        : { execve: 59, socket: 41, unshare: 272, setns: 308, mount: 165, umount2: 166, pivot_root: 155, chroot: 161,
            ptrace: 101, kill: 62, bpf: 321, io_uring_setup: 425, io_uring_register: 427, keyctl: 250, rename: 82 };
      const fork = process.arch === 'arm64' ? 220 : 56;
      say(Object.fromEntries([...Object.entries(numbers), ['clone', fork]].map(([name, number]) => {
        const result = call(number, 0, 0, 0, 0);
        return [name, result < 0 ? errno() : 'was let through'];
      })));`);
    assert.deepEqual(
      new Set(Object.values(errors as Record<string, unknown>)),
      new Set([EPERM]),
      JSON.stringify(errors),
    );
  });

  it('holds in every thread, those made later too', async () => {
    const states = await filtered(`
      const { readdirSync, readFileSync } = await import('node:fs');
      const { promisify } = await import('node:util');
      const { gzip } = await import('node:zlib');
      const before = readdirSync('/proc/self/task').length;
      await Promise.all(Array.from({ length: 8 }, () => promisify(gzip)(Buffer.alloc(1000000))));
      const tasks = readdirSync('/proc/self/task');
      const state = (task) => /Seccomp:\\s+(\\d)/.exec(readFileSync('/proc/self/task/' + task + '/status', 'utf8'))[1];
      say({ more: tasks.length > before, states: [...new Set(tasks.map(state))] });`);
    assert.deepEqual(states, { more: true, states: ['2'] });
  });
});
