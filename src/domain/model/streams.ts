/** What calls say that run a command, or open a session of a client's streams. Types only. */
import type { Int64 } from './cri.ts';
import type { OciArg } from './oci.ts';

/** A command as it is recorded. */
export interface AuditedCommand {
  /** Words that the node's policy has sealed are tokens, like values of env (C12). */
  readonly cmd: readonly OciArg[];
  /** All arguments are sealed: the audit rules say so. Absent: only those that a rule for single words matches. */
  readonly auditLevel?: 'metadata';
}

/** Which streams of a process a client wants. */
export interface WantedStreams {
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
}

export interface ExecSyncRequest extends AuditedCommand {
  readonly newId: string;
  readonly containerId: string;
  readonly timeoutSeconds: Int64;
}

/** `newId` of a call that allows a session is what the session's `allowedBy` says. */
export interface AttachRequest extends WantedStreams {
  readonly newId: string;
  readonly containerId: string;
}

export interface ExecRequest extends AttachRequest, AuditedCommand {}
