/** Bodies of the records that say how a container ended. Types only, frozen as records are. */
import type { Int64 } from './cri.ts';
import type { Failure } from './errors.ts';

/** Why a container is EXITED, in the words kubelet shows (ContainerStatus.reason). */
export type ExitReason = 'Completed' | 'Error' | 'OOMKilled' | 'StartError' | 'Unknown';

export interface ContainerExited {
  readonly exitStatus: number;
  readonly exitedAtNs: Int64;
  readonly reason: ExitReason;
  readonly message: string;
}

export interface ContainerLost {
  readonly message: string;
  /** What who asked for its start hears; absent: RuntimeFailed, or what the start failed with. */
  readonly reason?: Failure['reason'];
}
