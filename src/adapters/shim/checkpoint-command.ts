/**
 * The OCI runtime's own checkpoint of a task, as runc's shim has it made, for a task that the daemon started itself: its
 * shim calls that one created (tasks/start-init.ts), and makes checkpoints of running ones alone. The task runs on.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { FailureError } from '../../domain/model/errors.ts';
import { parseAs } from '../../platform/foreign-json.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import type { ShimContext } from './context.ts';
import { quoted } from './failures.ts';

export interface CheckpointTools {
  readonly spawner: Pick<Spawner, 'run'>;
  readonly searchPath: string;
}

const outputBytesMax = 65_536;
/** CRIU leaves a process that nobody understands when it is killed half-way: it may come to its end when the daemon goes. */
const finishMs = 10_000;

/** Where runc's shim notes what it was told of the OCI runtime, in containerd.runc.v1.Options' words. */
const optionsFile = 'options.json';
const optionsSchema = z.object({ binary_name: z.string().min(1), systemd_cgroup: z.boolean().optional() });

export interface CheckpointCommand {
  readonly containerId: string;
  readonly bundlePath: string;
  /** For CRIU's images, and for its log. */
  readonly imagesDir: string;
  readonly workDir: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Throws RuntimeFailed with what the runtime said, or TimedOut. */
export const runCheckpoint = async (
  { paths }: Pick<ShimContext, 'paths'>,
  { spawner, searchPath }: CheckpointTools,
  { containerId, bundlePath, imagesDir, workDir, timeoutMs, signal }: CheckpointCommand,
): Promise<void> => {
  const options = parseAs(optionsSchema, await readFile(join(bundlePath, optionsFile), 'utf8'));
  const { exitCode, timedOut, stderr } = await spawner.run({
    command: options.binary_name,
    args: [
      ...['--root', dirname(paths.runtimeState(containerId))],
      ...(options.systemd_cgroup === true ? ['--systemd-cgroup'] : []),
      ...['checkpoint', '--image-path', imagesDir, '--work-path', workDir, '--leave-running', containerId],
    ],
    env: { PATH: searchPath, LC_ALL: 'C' },
    cwd: bundlePath,
    timeoutMs,
    finishMs,
    outputBytesMax,
    signal,
  });
  if (exitCode === 0) return;
  const attempted = `Could not checkpoint container ${containerId}`;
  if (timedOut) throw new FailureError('TimedOut', `${attempted}: it took longer than ${timeoutMs} ms.`);
  const words = quoted(Buffer.from(stderr).toString()) || `its OCI runtime ended with ${exitCode ?? 'a signal'}`;
  throw new FailureError('RuntimeFailed', `${attempted}: ${words}.`);
};
