/**
 * What the streaming server promises to those who hand out its URLs, and asks of those who perform sessions.
 * Contents of streams pass through the server and are never kept, logged or recorded (C12).
 */
import type { Duplex, Readable, Writable } from 'node:stream';

export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/** Which streams of a process the client wants. With a terminal there is no stderr. */
interface WantedStreams {
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
}

export interface ExecRequest extends WantedStreams {
  readonly kind: 'Exec';
  readonly containerId: string;
  readonly cmd: readonly string[];
}

export interface AttachRequest extends WantedStreams {
  readonly kind: 'Attach';
  readonly containerId: string;
}

export interface PortForwardRequest {
  readonly kind: 'PortForward';
  readonly podSandboxId: string;
  /** Used where the client's protocol names no ports of its own. */
  readonly ports: readonly number[];
}

export type StreamingRequest = ExecRequest | AttachRequest | PortForwardRequest;

/** The client's streams of one Exec or Attach session; null for those that the request does not have. */
export interface SessionStreams {
  /** Ends when the client half-closes. When the client has gone it closes without an end, after `signal`. */
  readonly stdin: Readable | null;
  /** Backpressure is the client's. The server ends both when the session's promise settles. */
  readonly stdout: Writable | null;
  readonly stderr: Writable | null;
  /** Calls `hear` with each new size of the client's terminal, and at once with the last one that is known. */
  readonly onResize: (hear: (size: TerminalSize) => void) => void;
  /** The client has gone, the session idled out, or the server closes. */
  readonly signal: AbortSignal;
}

/**
 * What performs sessions. All reject with FailureError; its message is shown to the client. The request is the very
 * object that `urlFor` was given, so whoever asked for the URL knows the session again.
 */
export interface StreamingBackend {
  readonly exec: (request: ExecRequest, streams: SessionStreams) => Promise<{ readonly exitCode: number }>;
  readonly attach: (request: AttachRequest, streams: SessionStreams) => Promise<void>;
  /** One connection to `port`; resolves when it is over. `stream` half-closes in both directions. */
  readonly portForward: (
    request: PortForwardRequest,
    port: number,
    stream: Duplex,
    signal: AbortSignal,
  ) => Promise<void>;
}

export interface StreamingServer {
  /** The URL that a client may use once within 60 s. Throws FailureError (TooManyTokens) at 1,000 outstanding. */
  readonly urlFor: (request: StreamingRequest) => string;
  /** Settles on close; rejects when the server has broken down. */
  readonly ended: Promise<void>;
  /** Ends all sessions and stops listening. */
  readonly close: () => Promise<void>;
}
