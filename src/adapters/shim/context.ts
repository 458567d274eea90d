/** What the parts of the shim adapter share: put together once, in adapter.ts. */
import type { Logger } from 'pino';
import type { OciArg } from '../../domain/model/oci.ts';
import type { Joining } from './joining.ts';
import type { Files } from '../../platform/linux/files.ts';
import type { LogKeeper } from '../log-keeper/types.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import type { ProcessClient } from '../streaming/types.ts';
import type { ContainerIo } from './tasks/container-io.ts';
import type { OutputMemory } from './execs/exec-output.ts';
import type { Delivery } from './delivery.ts';
import type { CreatedTask, LiveTask } from './tasks/live-task.ts';
import type { OomCounters } from './tasks/oom.ts';
import type { Turn } from './process/spread-over-turns.ts';
import type { ShimPaths } from './paths.ts';
import type { KeptShims } from './process/kept-shims.ts';
import type { LiveShims } from './process/live-shims.ts';
import type { ShimBinaries } from './process/shim-binary.ts';
import type { TemporaryFiles } from './temporary-files.ts';
import type { ShimTimings } from './timings.ts';

export interface ShimContext {
  readonly paths: ShimPaths;
  readonly timings: ShimTimings;
  readonly log: Logger;
  readonly binaries: ShimBinaries;
  readonly mounts: Pick<Spawner, 'mount' | 'mountMapped' | 'unmount'>;
  readonly shims: LiveShims;
  readonly kept: KeptShims;
  readonly temporaryFiles: Pick<TemporaryFiles, 'shimDied'>;
  /** Settles, never rejects, when what an earlier daemon had kept has ended. */
  readonly swept: Promise<void>;
  readonly delivery: Delivery;
  readonly counters: OomCounters;
  /** Of the state directory. */
  readonly files: Files;
  readonly joining: Joining;
  readonly io: ContainerIo;
  /** A word of a command; throws Interrupted when a sealed one is not known any more. */
  readonly filledArg: (arg: OciArg) => string;
  /** The client's side of a session that an effect is for; throws Cancelled when it has gone. */
  readonly processClientOf: (sessionId: string) => ProcessClient;
  readonly execOutput: {
    /** Of both streams of a command that is run for an answer. */
    readonly bytesMax: number;
    readonly memory: OutputMemory;
  };
  readonly attachOutput: LogKeeper['attach'];
  /** The tasks that this daemon has started or found again, by container. */
  readonly tasks: Map<string, LiveTask>;
  /** Those whose state is being written by CRIU, or is next: each is aborted when its container is killed. */
  readonly dumps: Map<string, AbortController>;
  /** Those that were created and are not started. */
  readonly created: Map<string, CreatedTask>;
  /** A start asks for the shims of all pods at once. */
  readonly reconnectTurn: Turn;
}
