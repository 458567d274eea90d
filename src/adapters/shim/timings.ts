/**
 * How long the shim adapter waits for what, in milliseconds. A shim that answers nothing costs its own pod these times
 * and nobody else anything.
 */
import type { Backoff } from '../../platform/rpc/retry.ts';

export interface ShimTimings {
  /** `-v`, `start` and `delete` of the shim binary. */
  readonly binaryMs: number;
  /** Connecting to a shim and getting its first answers. */
  readonly connectMs: number;
  /** A shim that was kept says within this time that it is there, or another is started. */
  readonly keptAnswerMs: number;
  /** Calls that run no program in the container: State, Exec, Connect, Shutdown. */
  readonly callMs: number;
  /** Create and Start: hooks of the OCI runtime run in them, or machines boot. */
  readonly launchMs: number;
  /** Kill and Delete: the OCI runtime runs in them, and Delete waits for output to drain. */
  readonly endMs: number;
  /** What a shim says of its sandbox to who asks for the details: they have to do without it after that. */
  readonly detailsMs: number;
  /** A command whose time is up is answered so this long after that, whether or not its shim says how it ended. */
  readonly overdueMs: number;
  /** A command that runs this long takes no other's turn any more. */
  readonly turnMs: number;
  /** Finding and killing all that a command has started. */
  readonly treeMs: number;
  /** From SIGKILL to the exit of the process. */
  readonly reapMs: number;
  /** A shim told to shut down, then killed, has this long each time. */
  readonly shimExitMs: number;
  /** After a deleted task's log: what its streams still hold is read for this long. */
  readonly logCloseMs: number;
  /** After an exec's exit its output is read until nothing came for this long, … */
  readonly drainSilenceMs: number;
  /** … and for this long in all. */
  readonly drainMs: number;
  /** Between tries of a failed observation and of a failed connection. */
  readonly retry: Backoff;
}

export const defaultTimings: ShimTimings = {
  binaryMs: 60_000,
  connectMs: 5_000,
  keptAnswerMs: 500,
  callMs: 10_000,
  launchMs: 120_000,
  endMs: 30_000,
  detailsMs: 2_000,
  overdueMs: 3_000,
  turnMs: 1_000,
  treeMs: 5_000,
  reapMs: 15_000,
  shimExitMs: 3_000,
  logCloseMs: 2_000,
  drainSilenceMs: 1_000,
  drainMs: 5_000,
  retry: { firstMs: 100, lastMs: 10_000 },
};
