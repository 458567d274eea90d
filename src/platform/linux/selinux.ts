/**
 * SELinux as the node has it: what its policy says of containers, and labels of files. Trees are labelled by chcon, which
 * the spawner runs: they may be large, and on file systems that hang. Must not decide which label anything gets.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import type { SelinuxContexts } from '../../domain/model/selinux.ts';
import type { Spawner } from '../spawner/types.ts';
import { errorCodeOf } from '../error-code.ts';
import { writeXattr } from './syscalls.ts';

/** Where the node's policy is. */
const SELINUX_CONFIG_DIR = '/etc/selinux';
const XATTR = 'security.selinux';
/** Of a kubelet that waits, the next call finds this one still at it. */
const TIMEOUT_MS = 600_000;
const OUTPUT_BYTES_MAX = 64 * 1024;

/** What policies for containers have called these for ten years. */
const usual: SelinuxContexts = {
  process: 'system_u:system_r:container_t:s0',
  file: 'system_u:object_r:container_file_t:s0',
};

const isContext = (text: string | undefined): text is string =>
  text !== undefined && /^[\w.-]+:[\w.-]+:[\w.-]+(:s\d+[\w.,:-]*)?$/.test(text);

/** Value of `key = value` or `key = "value"` in a file of such lines. */
const valueOf = (text: string, key: string): string | undefined =>
  new RegExp(`^[ \\t]*${key}[ \\t]*=[ \\t]*"?([^"\\s#]+)"?[ \\t]*$`, 'm').exec(text)?.[1];

export interface SelinuxPolicy extends SelinuxContexts {
  /** The file that says so; null: none does, and these are the usual ones. */
  readonly path: string | null;
}

/** What the loaded policy has for containers; the usual names where it does not say. Never rejects. */
export const readSelinuxPolicy = async (configDir = SELINUX_CONFIG_DIR): Promise<SelinuxPolicy> => {
  const textOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
  const type = valueOf(await textOf(join(configDir, 'config')), 'SELINUXTYPE') ?? 'targeted';
  if (!/^[\w-]+$/.test(type)) return { ...usual, path: null };
  const path = join(configDir, type, 'contexts/lxc_contexts');
  const text = await textOf(path);
  const [process, file] = [valueOf(text, 'process'), valueOf(text, 'file')];
  return isContext(process) && isContext(file) ? { process, file, path } : { ...usual, path: null };
};

/** Labels one file, or a link itself; a file system without labels keeps its own. */
export const writeLabel = async (path: string, label: string): Promise<void> => {
  try {
    // The kernel's own tools store the end of the text with it.
    await writeXattr(path, XATTR, Buffer.from(`${label}\0`));
  } catch (error) {
    if (errorCodeOf(error) !== 'EOPNOTSUPP' && errorCodeOf(error) !== 'ENOTSUP') throw error;
  }
};

/**
 * Labels files, and directories with all that is in them; links are labelled, not followed. What vanishes meanwhile or
 * lies on a file system without labels is passed over. Rejects with FailureError HostFailed, and Cancelled by `signal`.
 */
export type Relabel = (paths: readonly string[], label: string, signal?: AbortSignal) => Promise<void>;

/** In the words of strerror(3), which a program without a locale says. */
const HARMLESS = /: (Operation not supported|No such file or directory)$/;

export const createRelabel = (spawner: Pick<Spawner, 'run'>, searchPath: string): Relabel => {
  const command = 'chcon';
  return async (paths, label, signal) => {
    if (paths.length === 0) return;
    const ran = await spawner.run({
      command,
      args: ['--recursive', '--no-dereference', '-P', '--', label, ...paths],
      env: { PATH: searchPath, LC_ALL: 'C' },
      cwd: '/',
      timeoutMs: TIMEOUT_MS,
      outputBytesMax: OUTPUT_BYTES_MAX,
      ...(signal && { signal }),
    });
    if (ran.exitCode === 0) return;
    const bad = Buffer.from(ran.stderr)
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '' && !HARMLESS.test(line));
    if (ran.exitCode === 1 && bad.length === 0 && !ran.truncated) return;
    const why = ran.timedOut ? `${command} did not end within ${TIMEOUT_MS} ms` : (bad[0] ?? `${command} failed`);
    throw new FailureError('HostFailed', `${paths.join(', ')} cannot be labelled ${label}: ${why}`);
  };
};
