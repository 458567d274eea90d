/**
 * The contracts of sessions: what a client may ask for, what the streaming server asks of its backend, and what those who
 * perform sessions have of the client. The server is in a thread of its own, and performers are not: bytes never reach
 * them. Contents of streams pass through and are never kept, logged or recorded (C12).
 */
import type { Readable, Writable } from 'node:stream';
import type { Caller } from '../../domain/model/records.ts';
import type { AuditedCommand } from '../../domain/model/streams.ts';

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

/** Whose session it is: the call that allowed it, and who made that. */
interface Allowed {
  readonly allowedBy: string;
  readonly caller: Caller | null;
}

export interface ExecRequest extends Allowed, WantedStreams, AuditedCommand {
  readonly kind: 'Exec';
  readonly containerId: string;
}

export interface AttachRequest extends Allowed, WantedStreams {
  readonly kind: 'Attach';
  readonly containerId: string;
}

export interface PortForwardRequest extends Allowed {
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

/** The client's side of one forwarded connection: what it sends, and what it is sent, each with an end of its own. */
export interface PortStreams {
  readonly input: Readable;
  readonly output: Writable;
}

/** What the server has sessions performed by. All reject with FailureError; its message is shown to the client. */
export interface StreamingBackend {
  readonly exec: (request: ExecRequest, streams: SessionStreams) => Promise<{ readonly exitCode: number }>;
  readonly attach: (request: AttachRequest, streams: SessionStreams) => Promise<void>;
  /** One connection to `port`; resolves when it is over. No connection is made before its streams are there. */
  readonly portForward: (
    request: PortForwardRequest,
    port: number,
    streams: Promise<PortStreams>,
    signal: AbortSignal,
  ) => Promise<void>;
}

export type OutputName = 'stdout' | 'stderr';
export type StreamName = 'stdin' | OutputName;

/** How far the bytes of one stream are. Other threads may be moving them. */
export interface Pump {
  /** An input's resolves when the client has sent all, and it has been taken; any when either side has gone. */
  readonly ended: Promise<void>;
  readonly sizeBytes: () => number;
  /** When the last bytes moved, on the clock of `monotonicMs`; 0 before the first. */
  readonly lastMs: () => number;
  /** The client takes nothing at the moment, so nothing can move. */
  readonly isHeld: () => boolean;
  readonly close: () => void;
}

export interface AttachedBytes {
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

/** One attachment to a container's output, at the log keeper that serves at `keeperPath`. */
export interface Attachment {
  readonly keeperPath: string;
  readonly containerId: string;
}

/** How an attachment ended: the output did, or the client went; or the keeper went, and the next one can go on. */
export type AttachmentEnd = AttachedBytes & { readonly end: 'over' | 'keeperLost' };

/** The client's side of one Exec or Attach session, for whoever performs it. */
export interface ProcessClient {
  /** Which streams the client has. */
  readonly has: Readonly<Record<StreamName, boolean>>;
  /** From the client to a descriptor, which is taken over and closed at the end. */
  readonly pumpInput: (fd: number) => Pump;
  /** From a descriptor, which is taken over, to the client. What it has no stream for, or no longer takes, is dropped. */
  readonly pumpOutput: (stream: OutputName, fd: number) => Pump;
  /** Nobody takes what the client sends. */
  readonly dropInput: () => void;
  /** Lets the client hear a container, until its output ends or `signal`. Rejects with the keeper's FailureError. */
  readonly hear: (attachment: Attachment, signal: AbortSignal, onAttached: () => void) => Promise<AttachmentEnd>;
  /** As SessionStreams has it. */
  readonly onResize: SessionStreams['onResize'];
  /** The client has gone, the session idled out, or the server closes. */
  readonly signal: AbortSignal;
}

/** What a forwarded connection goes to: a port of the loopback of a network namespace. */
export interface ForwardTarget {
  readonly port: number;
  /** Where that is pinned; null: the daemon's own. */
  readonly netnsPath: string | null;
}

export interface ForwardedBytes {
  readonly toPodBytes: number;
  readonly fromPodBytes: number;
}

/** The client's side of one forwarded connection. */
export interface PortClient {
  /** Resolves when the connection is over, or `signal` ended it; rejects when there is none to be had. */
  readonly forward: (target: ForwardTarget, signal: AbortSignal) => Promise<ForwardedBytes>;
  /** The client has gone. */
  readonly signal: AbortSignal;
}

export interface StreamingServer {
  /** Where it can be reached: scheme, host and port. */
  readonly baseUrl: string;
  /** Whether some client's session goes on, or is about to begin. */
  readonly hasClients: () => boolean;
  /** Ends all sessions and stops listening. */
  readonly close: () => Promise<void>;
}
