/**
 * Ends CRIU's dump of a container that is killed meanwhile. CRIU holds all of its processes: those that die in its hands wait
 * for it, and it waits for them, for as long as it may take (seen with CRIU 4.2, and the first process of a PID namespace).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckpointedTask } from '../../domain/model/effects/checkpoint.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { SIGKILL } from '../../domain/values/signals.ts';
import { holdProcess, readProcessStat, readProcessStatus } from '../../platform/linux/processes.ts';
import type { ShimContext } from './context.ts';

type Dumps = Pick<ShimContext, 'dumps'>;

const CRIU = 'criu';
const LOOK_MS = 100;

const statusOf = (pid: number): Promise<string> => readProcessStatus(pid).catch(() => '');
const tracerIn = (status: string): number => Number(/^TracerPid:\s+(\d+)$/m.exec(status)?.[1] ?? 0);
const nameIn = (status: string): string | undefined => /^Name:\s+(.*)$/m.exec(status)?.[1];

/** While `work` is done, it can be told that one of the containers is killed. */
export const whileDumped = async <T>(
  { dumps }: Dumps,
  tasks: readonly Pick<CheckpointedTask, 'containerId'>[],
  work: () => Promise<T>,
): Promise<T> => {
  for (const { containerId } of tasks) dumps.set(containerId, new AbortController());
  try {
    return await work();
  } finally {
    for (const { containerId } of tasks) dumps.delete(containerId);
  }
};

/** Aborted when the container is killed. */
export const killedSignalOf = ({ dumps }: Dumps, containerId: string): AbortSignal =>
  dumps.get(containerId)?.signal ?? new AbortController().signal;

/** For who kills it. */
export const endDumpOf = ({ dumps }: Dumps, containerId: string): void => {
  const message = `Container ${containerId} was killed while it was checkpointed.`;
  dumps.get(containerId)?.abort(new FailureError('WrongState', message));
};

/** Kills the CRIU that has hold of this process, and no other tracer. */
const endCriuAt = async (pid: number): Promise<void> => {
  const tracer = tracerIn(await statusOf(pid));
  const stat = tracer === 0 ? null : await readProcessStat(tracer);
  const held = stat === null ? null : await holdProcess(stat);
  if (held === null) return;
  if (nameIn(await statusOf(tracer)) === CRIU) held.kill(SIGKILL);
  held.release();
};

/**
 * `dumping` has a shim dump the task whose process is `pid`. No shim can be told that nobody waits any more, and CRIU goes on
 * when its caller is ended. So it is ended here where that is killed, which rejects at once, or takes too long.
 */
export const dumpedByShim = async (dumping: Promise<unknown>, pid: number, killed: AbortSignal): Promise<void> => {
  let isOver = false;
  const over = dumping.finally(() => {
    isOver = true;
  });
  over.catch(() => undefined);
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = async (): Promise<void> => {
    reject(killed.reason);
    // It may not have begun yet.
    for (; !isOver; await sleep(LOOK_MS)) await endCriuAt(pid);
  };
  const onKilled = (): void => void end();
  killed.addEventListener('abort', onKilled);
  try {
    await Promise.race([over, ended]);
  } catch (error) {
    await endCriuAt(pid);
    throw error;
  } finally {
    killed.removeEventListener('abort', onKilled);
  }
};
