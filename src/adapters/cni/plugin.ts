/**
 * Starts one CNI plugin: gives it its environment, then its request, which it waits for, and says how it went. The spawner
 * finds its executable and runs it, so that the daemon never forks; time and output are bounded.
 * Must not know chains, nor what a result means.
 */
import { delimiter } from 'node:path';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { bare } from '../../domain/values/sentence.ts';
import { findIn } from '../../platform/linux/find-program.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import { parsePluginError } from './result.ts';

const OUTPUT_BYTES_MAX = 64 * 1024;
/** A plugin takes some 20 ms; one that is killed while it reserves an address may note it for nobody. */
const FINISH_MS = 2_000;
/** Plugins start iptables, nft and the like by name. */
const FALLBACK_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/**
 * Plugins in Go do one thing after the other; threads that collect their garbage beside that cost more than they bring
 * (docs/decisions/plugins-on-one-processor.md).
 */
const GO_PROCESSORS = '1';

export type CniCommand = 'ADD' | 'DEL' | 'CHECK' | 'GC' | 'STATUS';

/** The environment that names an attachment (CNI 1.1, section 2, "Parameters"). */
export interface AttachmentEnv {
  readonly CNI_CONTAINERID: string;
  readonly CNI_NETNS: string;
  readonly CNI_IFNAME: string;
  readonly CNI_ARGS: string;
}

export interface PluginCall {
  readonly command: CniCommand;
  /** The `type` of the plugin's configuration. */
  readonly plugin: string;
  readonly attachment: AttachmentEnv | null;
  readonly signal?: AbortSignal;
}

/** A plugin that is there, or is being started, and has not been told what to do. It has to be run once, or dropped. */
export interface StartedPlugin {
  /** `request` goes to its stdin, as JSON. Resolves with how it went; rejects only when the call's signal aborted it. */
  readonly run: (request: object) => Promise<PluginOutcome>;
  /** It has ended and was not told anything: whatever it did, it did by itself. */
  readonly hasActed: () => boolean;
  /** Nothing is asked of it: it is killed. Does nothing once it was run. */
  readonly drop: () => void;
}

export type PluginOutcome =
  | { readonly ok: true; readonly stdout: string }
  /** message completes the sentence "plugin x …"; code is the plugin's own error code. */
  | {
      readonly ok: false;
      readonly code: number | null;
      readonly message: string;
      /** It, or one that it runs itself (IPAM), is not installed. */
      readonly missing: boolean;
    };

export type StartPlugin = (call: PluginCall) => StartedPlugin;

const failed = (message: string, code: number | null = null, missing = false): PluginOutcome => ({
  ok: false,
  code,
  message,
  missing,
});

/** In the words of the library that plugins look for others with. */
const LACKS_ANOTHER = /failed to find plugin "/;

export const createStartPlugin = ({
  spawner,
  binDirs,
  timeoutMs,
}: {
  readonly spawner: Pick<Spawner, 'run'>;
  readonly binDirs: readonly string[];
  readonly timeoutMs: number;
}): StartPlugin => {
  const baseEnv = {
    PATH: process.env.PATH ?? FALLBACK_PATH,
    CNI_PATH: binDirs.join(delimiter),
    GOMAXPROCS: process.env.GOMAXPROCS ?? GO_PROCESSORS,
  };

  const notRun = async (plugin: string, error: unknown): Promise<PluginOutcome> => {
    const path = await findIn(plugin, binDirs);
    if (path !== null) return failed(`could not be run from ${path}: ${bare(messageOf(error))}`);
    const remedy = 'install it there, or set bin_dirs of [cni]';
    return failed(`is no executable in ${binDirs.join(', ')}: ${remedy}`, null, true);
  };

  const outcomeOf = async (
    { command, plugin, attachment, signal }: PluginCall,
    input: Promise<Uint8Array>,
    onStarted: () => void,
  ): Promise<PluginOutcome> => {
    let run: Awaited<ReturnType<Spawner['run']>>;
    try {
      run = await spawner.run({
        command: plugin,
        directories: binDirs,
        args: [],
        env: { ...baseEnv, CNI_COMMAND: command, ...attachment },
        cwd: '/',
        input,
        onStarted,
        timeoutMs,
        finishMs: FINISH_MS,
        outputBytesMax: OUTPUT_BYTES_MAX,
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      if (signal?.aborted) throw interrupted(command, plugin);
      return notRun(plugin, error);
    }
    if (signal?.aborted) throw interrupted(command, plugin);
    if (run.timedOut) return failed(`did not finish within ${timeoutMs} ms and was killed`);
    const stdout = Buffer.from(run.stdout).toString('utf8');
    if (run.exitCode !== 0) {
      const { code, message } = parsePluginError(stdout, Buffer.from(run.stderr).toString('utf8'));
      const how = run.exitCode === null ? `was killed by ${run.signalName ?? 'a signal'}` : 'failed';
      const why = `${how}: ${message}${code === null ? '' : ` (code ${code})`}`;
      return failed(why, code, LACKS_ANOTHER.test(message));
    }
    if (run.stdout.byteLength >= OUTPUT_BYTES_MAX) return failed(`printed more than ${OUTPUT_BYTES_MAX} bytes`);
    return { ok: true, stdout };
  };

  return (call) => {
    const { promise: input, resolve, reject } = Promise.withResolvers<Uint8Array>();
    let state: 'starting' | 'waiting' | 'acted' | 'told' = 'starting';
    const outcome = outcomeOf(call, input, () => {
      if (state === 'starting') state = 'waiting';
    });
    outcome.then(
      () => {
        if (state === 'waiting') state = 'acted';
      },
      // Whoever drops it, or was told of another one's failure, does not hear of its own.
      () => undefined,
    );
    input.catch(() => undefined);
    return {
      run: (request) => {
        state = 'told';
        resolve(Buffer.from(JSON.stringify(request)));
        return outcome;
      },
      hasActed: () => state === 'acted',
      drop: () => reject(interrupted(call.command, call.plugin)),
    };
  };
};

const interrupted = (command: CniCommand, plugin: string): FailureError =>
  new FailureError('Interrupted', `CNI ${command} was cut off while plugin ${plugin} ran.`);
