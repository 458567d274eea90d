/** What is recorded of the log keeper, the process that writes containers' logs and outlives the daemon. Types only. */
import type { Int64 } from './cri.ts';

export interface LogKeeperStarted {
  readonly pid: number;
  readonly startTicks: Int64;
  /** Containers whose logs may lack lines, since the keeper before was killed: the logs say so too. */
  readonly doubtful: readonly string[];
}

export interface LogKeeperEnded {
  readonly pid: number;
  readonly startTicks: Int64;
  readonly reason: string;
}
