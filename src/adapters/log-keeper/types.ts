/**
 * What the daemon asks of the log keeper (C16): the process that reads containers' output and outlives the daemon.
 */
import type { Observation } from '../../domain/model/observation.ts';
import type { AttachedBytes, AttachmentEnd } from '../streaming/types.ts';

export interface OpenLogRequest {
  readonly containerId: string;
  /** FIFOs the shim writes; they exist before open is called. stderr is null with a terminal. */
  readonly stdoutFifo: string;
  readonly stderrFifo: string | null;
  /** Absolute path of the CRI log file; null discards. */
  readonly logPath: string | null;
  /** Below it no link on the way to the log is followed. Absent: opened by a daemon that did not say. */
  readonly logDirectory?: string;
}

/** As the keeper has it: how long a line may be stays what it was when the output was opened. */
export interface KeptOutput extends OpenLogRequest {
  /** Content of one record at most, in bytes. */
  readonly lineBytesMax: number;
}

/** A log that can't be written at the moment: its container goes on, and what it says is lost. */
export interface LogTrouble {
  readonly containerId: string;
  readonly logPath: string;
  /** As the kernel said it last. */
  readonly why: string;
  readonly sinceMs: number;
  readonly lostRecords: number;
}

/** What the client of a keeper has recorded. */
export type LogKeeperNews = Extract<Observation, { kind: 'LogKeeperStarted' | 'LogKeeperEnded' }>;

export interface LogKeeper {
  readonly pid: number;
  readonly startTicks: string;
  /**
   * Resolves once the FIFOs are open for reading, so that a shim may open them. Doing it again changes nothing. When it rejects,
   * nothing is read, and no shim waits for a reader until `close`.
   */
  readonly open: (request: OpenLogRequest) => Promise<void>;
  /** Opens the log file anew at its path (rotation): what was written before stays in the old file, nothing after. */
  readonly reopen: (containerId: string, logPath: string) => Promise<void>;
  /** Resolves when both streams have ended and all is written, or after `timeoutMs`; then forgets the container. */
  readonly close: (containerId: string, timeoutMs: number) => Promise<void>;
  /**
   * Bounded in number, together and for one container. Has `hear` attach to a container's output at the keeper of the path that it is given, and again at the next one if
   * that keeper goes. Resolves with all that was heard; rejects as `hear` does.
   */
  readonly attach: (
    containerId: string,
    hear: (keeperPath: string) => Promise<AttachmentEnd>,
  ) => Promise<AttachedBytes>;
  /** Logs that can't be written now. One of an earlier version does not know: none. Rejects where it does not answer in time. */
  readonly troubles: () => Promise<readonly LogTrouble[]>;
  /** Ids of containers whose output is being read. */
  readonly list: () => Promise<readonly string[]>;
  readonly disconnect: () => void;
}
