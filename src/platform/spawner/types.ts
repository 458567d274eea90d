/**
 * What the daemon asks of its spawner (C15): run a program to its end, or do a system call that belongs to a process
 * with one thread. The spawner is a small child process; when the daemon goes it kills what is under way and ends.
 */
import type { Hierarchy } from '../linux/memory-cgroup.ts';

/** What a program is told while it runs. */
export interface Told {
  /** Written to its stdin. */
  readonly line: string;
  /**
   * The first time: what becomes the root of the program's mount namespace, which has to be its own, once it has answered
   * something on stdout; then it is told an empty line.
   */
  readonly root?: NewRoot;
}

export interface NewRoot {
  readonly directory: string;
  /** The name of a directory in it that the program can only read. */
  readonly readOnly?: string;
}

export interface RunRequest {
  /** A path, or a name that is looked up in `directories`, or else in the PATH of `env`. */
  readonly command: string;
  /** The first of these that has it as an executable file is taken, and its path is what the program finds as its name. */
  readonly directories?: readonly string[];
  readonly args: readonly string[];
  /** The whole environment; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly stdin?: Uint8Array;
  /**
   * A stdin that comes later, in place of `stdin`: the program is started and waits, which `timeoutMs` does not count and `finishMs`
   * does not hold for. When the promise rejects the program is killed, and the run rejects with that.
   */
  readonly input?: Promise<Uint8Array>;
  /**
   * The program is started to wait for what it is told, however long that takes; it must write nothing before. Called at
   * once, with what tells it. Without `stdin`.
   */
  readonly told?: (tell: (what: Told) => void) => void;
  /** A listening unix socket: the program finds a stream that is connected to it at descriptor 3. */
  readonly socketPath?: string;
  /** After this the program's process group gets SIGKILL and the result says timedOut. null: it runs as long as it will. */
  readonly timeoutMs: number | null;
  /**
   * How long it may still take when the daemon goes, before it is killed; not at all by default. For programs that leave
   * what nobody finds again when they are killed half-way. The next daemon waits for them.
   */
  readonly finishMs?: number;
  /** Output beyond this many bytes per stream is dropped and the result says truncated. */
  readonly outputBytesMax: number;
  /** What is dropped is the beginning of the output, not what comes after it. */
  readonly keepsEnd?: true;
  /** Called with each piece of stdout as it comes (progress of long work); stdout is then not collected. */
  readonly onStdout?: (chunk: Uint8Array) => void;
  /** Called, once at most, with the program's pid. */
  readonly onStarted?: (pid: number) => void;
  readonly signal?: AbortSignal;
}

export interface RunResult {
  /** null when it was ended by a signal. */
  readonly exitCode: number | null;
  readonly signalName: string | null;
  readonly timedOut: boolean;
  readonly truncated: boolean;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

/** Namespaces to be made: one of each kind that has a path, pinned there. */
export interface NamespacesRequest {
  readonly pins: { readonly network: string | null; readonly ipc: string | null; readonly uts: string | null };
  /** null leaves the node's. */
  readonly hostname: string | null;
  /** Kernel parameters of these namespaces by name, dots between its parts. */
  readonly sysctls: Readonly<Record<string, string>>;
}

/** A process for ever: no later one with its pid is taken for it. */
export interface ProcessName {
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat. */
  readonly startTicks: string;
}

/** Trees of the node, each to be mounted again at `target`, with its owners seen through the user namespace of `holder`. */
export interface MappedMountsRequest {
  readonly holder: ProcessName;
  readonly mounts: readonly { readonly source: string; readonly target: string }[];
}

export interface Spawner {
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat: recorded with the pid, they name the spawner for ever. */
  readonly startTicks: string;
  /** Rejects with FailureError when the program can't be started (not found, not executable, spawner gone). */
  readonly run: (request: RunRequest) => Promise<RunResult>;
  /** Starts a program in a session of its own that outlives spawner and daemon; resolves with its pid. */
  readonly startDetached: (request: {
    readonly command: string;
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
    readonly cwd: string;
    /** Absolute path that stdout and stderr are appended to. */
    readonly outputPath: string;
  }) => Promise<{ readonly pid: number; readonly startTicks: string }>;
  /** Makes a new network namespace with loopback up, and pins it by a bind mount at `path` (made if missing, with its directory). */
  readonly createNetns: (path: string) => Promise<void>;
  /** Makes new namespaces, sets them up and pins them by bind mounts; loopback is up in a network namespace. */
  readonly pinNamespaces: (request: NamespacesRequest) => Promise<void>;
  /** Pins the network namespace of a process at `path` (made if missing), and brings its loopback up. */
  readonly pinNetnsOf: (holder: ProcessName, path: string) => Promise<void>;
  /** The text of /proc/net/dev in the network namespace that is pinned at a path; null where none is. */
  readonly readNetDev: (path: string) => Promise<string | null>;
  /** Makes a target like its source, a directory or a file, where it is missing. */
  readonly mountMapped: (request: MappedMountsRequest) => Promise<void>;
  /** mount(2) and umount2(2), done where they stall nobody. */
  readonly mount: (request: {
    readonly source: string;
    readonly target: string;
    readonly type: string;
    readonly options: readonly string[];
    /** Directory that paths in the options are relative to; they all have to fit into one page. */
    readonly from?: string;
  }) => Promise<void>;
  /** Unmounts everything mounted at `target` (MNT_DETACH); nothing mounted there is success. */
  readonly unmount: (target: string) => Promise<void>;
  /** Unmounts what is pinned at each path, and removes the file that it was pinned at; what is not there is success. */
  readonly unpin: (paths: readonly string[]) => Promise<void>;
  /** Has programs that join control groups in the next `forMs` wait less (cgroup-joining.ts); false: it will never help here. */
  readonly joinAhead: (forMs: number, hierarchy: Hierarchy) => Promise<boolean>;
  /** Settles when the spawner has ended. */
  readonly ended: Promise<void>;
  readonly close: () => Promise<void>;
}
