/**
 * Effects that run commands in containers, or carry streams to containers and pods, and what their success says. Types
 * only. None of them holds bytes of a stream.
 */
import type { OciArg } from '../oci.ts';

/** How much went through a session, never what. */
export interface StreamedBytes {
  readonly stdinBytes: number;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

export type SessionEffect =
  | {
      readonly kind: 'RunExec';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly execId: string;
      readonly bundlePath: string;
      readonly args: readonly OciArg[];
      readonly timeoutMs: number | null;
    }
  /** Kills and deletes an exec that a crash left in doubt. */
  | { readonly kind: 'EndExec'; readonly podSandboxId: string; readonly containerId: string; readonly execId: string }
  /** Runs a command between the streams of the session `execId`, to its end; ends it when its client goes. */
  | {
      readonly kind: 'StreamExec';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly execId: string;
      readonly bundlePath: string;
      readonly args: readonly OciArg[];
      readonly tty: boolean;
    }
  /** Lets a session hear a container's output and write to its stdin, until the container's output or the session ends. */
  | {
      readonly kind: 'StreamAttach';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly sessionId: string;
      readonly terminal: boolean;
      readonly stdin: boolean;
      /** It is closed when this session has done with it. */
      readonly closeStdin: boolean;
    }
  /** Connects a session to a port of the pod's loopback, until both directions or the session have ended. */
  | {
      readonly kind: 'StreamPort';
      readonly podSandboxId: string;
      readonly sessionId: string;
      readonly port: number;
      /** null with the host's network. */
      readonly netnsPath: string | null;
    };

export interface SessionResults {
  /** The output itself goes back to the caller beside the journal, never into it. */
  readonly RunExec: {
    readonly exitStatus: number;
    readonly timedOut: boolean;
    readonly stdoutBytes: number;
    readonly stderrBytes: number;
  };
  readonly EndExec: Record<string, never>;
  readonly StreamExec: { readonly exitStatus: number } & StreamedBytes;
  readonly StreamAttach: StreamedBytes;
  readonly StreamPort: { readonly toPodBytes: number; readonly fromPodBytes: number };
}

/** What their intents say; null for nothing. */
export interface SessionIntents {
  readonly RunExec: {
    readonly execId: string;
    readonly args: readonly OciArg[];
    readonly timeoutMs: number | null;
  };
  readonly EndExec: { readonly execId: string };
  readonly StreamExec: { readonly execId: string; readonly args: readonly OciArg[]; readonly tty: boolean };
  readonly StreamAttach: { readonly sessionId: string };
  readonly StreamPort: { readonly sessionId: string; readonly port: number };
}
