/**
 * Runs the benchmark's client (bench/client) against one runtime and reads what it printed. Decides nothing: what is
 * run when is measure.ts's.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { median } from './statistics.ts';

const execute = promisify(execFile);

/** As the client prints it; what a command does not measure is absent. */
export interface ClientResult {
  /** How long each call took, by the call's name. */
  readonly samplesMs?: Readonly<Record<string, readonly number[]>>;
  readonly perSecond?: Readonly<Record<string, number>>;
  readonly errors?: readonly string[];
  readonly containerIds?: readonly string[];
  /** When await had its answer, in milliseconds since 1970. */
  readonly answeredAtMs?: number;
  readonly running?: number;
}

/** What is measured: a socket, and what pods on it are given. */
export interface Target {
  readonly socket: string;
  readonly image: string;
  /** Parent cgroup of all pods. */
  readonly cgroupParent: string;
  /** Where pods' logs are written. */
  readonly logDir: string;
}

/** Of how long the calls of that name took; NaN where there was none. */
export const medianOf = ({ samplesMs = {} }: ClientResult, call: string): number => median(samplesMs[call] ?? []);

export type ClientCommand =
  | 'lifecycle'
  | 'full'
  | 'rare'
  | 'containers'
  | 'exec'
  | 'logs'
  | 'streams'
  | 'fill'
  | 'again'
  | 'dense'
  | 'rates'
  | 'kubelet'
  | 'exits'
  | 'await'
  | 'clean';

export interface ClientFlags {
  readonly count?: number;
  readonly parallel?: number;
  readonly seconds?: number;
  /** Length of a line of logs, and how much each of its containers writes; streams moves as much each way. */
  readonly 'line-bytes'?: number;
  readonly bytes?: number;
  /** File with the container ids that await waits for. */
  readonly ids?: string;
}

export interface ClientOptions {
  /** The command line of the built client: in the runtimes' network namespace, where their streaming servers listen. */
  readonly client: readonly string[];
  /** Ends the client when it is aborted. */
  readonly signal: AbortSignal;
  /** Called once the client has said "ready": await says it before it begins to wait. */
  readonly onReady?: () => void;
}

/** 2,000 pod lives take a while. */
const timeoutMs = 30 * 60_000;
const outputBytesMax = 64 * 1024 * 1024;

/** Runs one command to its end. Rejects when the client fails as a whole; calls that fail are in `errors`. */
export const runClient = async (
  { socket, image, cgroupParent, logDir }: Target,
  command: ClientCommand,
  flags: ClientFlags,
  { client, signal, onReady }: ClientOptions,
): Promise<ClientResult> => {
  const all = { socket, image, 'cgroup-parent': cgroupParent, 'log-dir': logDir, ...flags };
  const flagged = Object.entries(all).flatMap(([name, value]) => [`-${name}`, String(value)]);
  const [program = '', ...before] = client;
  const running = execute(program, [...before, ...flagged, command], {
    signal,
    timeout: timeoutMs,
    maxBuffer: outputBytesMax,
  });
  if (onReady !== undefined) running.child.stdout?.once('data', onReady);
  const { stdout } = await running;
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as ClientResult;
};
