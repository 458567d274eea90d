/** What calls say that open a session of a client's streams. Types only. */

/** Which streams of a process a client wants. */
export interface WantedStreams {
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
}

/** `newId` of a call that allows a session is what the session's `allowedBy` says. */
export interface AttachRequest extends WantedStreams {
  readonly newId: string;
  readonly containerId: string;
}

export interface ExecRequest extends AttachRequest {
  readonly cmd: readonly string[];
}
