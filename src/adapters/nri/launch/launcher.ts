/** Keeps one launched plugin running: started again when it has ended or failed, after a while that grows. */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../../domain/model/errors.ts';
import { type Backoff, backoffMs } from '../../../platform/rpc/retry.ts';
import { ownWords } from '../messages/reading.ts';
import type { FoundPlugin } from './discover.ts';
import type { PluginProgram } from './program.ts';

export interface LauncherParts {
  readonly start: (found: FoundPlugin) => Promise<PluginProgram>;
  /** Registers it; rejects, with its connection closed, when that fails. */
  readonly admit: (found: FoundPlugin, program: PluginProgram) => Promise<{ readonly closed: Promise<string> }>;
  readonly backoff: Backoff;
  /** `about`: what it is of, which is said again with every end, in the words of that. */
  readonly report: (sentence: string, about: string) => void;
}

export interface Launcher {
  readonly found: FoundPlugin;
  /** Resolves once it has registered for the first time, or has failed to. */
  readonly tried: Promise<void>;
  readonly state: () => 'starting' | 'registered' | 'waiting';
  readonly lastFailure: () => string | null;
  /** Starts it no more. Resolves when it has ended, which it does when its connection has closed. */
  readonly stop: () => Promise<void>;
}

/** What findings are about, and begin with. `plugin`: its path where it was launched, else its name. */
export const wordsFor = (plugin: string): string => `The NRI plugin ${plugin}`;

/** One that ran this long was steady: its end is like a first one. */
export const STEADY_MS = 60_000;

export const keepLaunched = (found: FoundPlugin, { start, admit, backoff, report }: LauncherParts): Launcher => {
  const plugin = wordsFor(found.path);
  const stopping = new AbortController();
  const { promise: tried, resolve: settleTried } = Promise.withResolvers<void>();
  let state: ReturnType<Launcher['state']> = 'starting';
  let lastFailure: string | null = null;

  /** From its start to its end; resolves with why it ended. */
  const live = async (): Promise<string> => {
    const program = await start(found);
    const giveUp = (): void => {
      if (state === 'starting') program.socket.destroy();
    };
    stopping.signal.addEventListener('abort', giveUp, { once: true });
    try {
      const { closed } = await admit(found, program);
      state = 'registered';
      settleTried();
      return `${await closed}; ${await program.leave()}`;
    } catch (error) {
      program.socket.destroy();
      return `${ownWords(messageOf(error))}; ${await program.leave()}`;
    } finally {
      stopping.signal.removeEventListener('abort', giveUp);
    }
  };

  const run = async (): Promise<void> => {
    const { signal } = stopping;
    const stopped = (): boolean => signal.aborted;
    for (let failures = 1; !stopped(); failures += 1) {
      const sinceMs = performance.now();
      state = 'starting';
      const why = await live().catch(messageOf);
      settleTried();
      if (stopped()) return;
      if (performance.now() - sinceMs > STEADY_MS) failures = 1;
      state = 'waiting';
      lastFailure = why;
      report(`${plugin} is not running (${why}); it will be started again.`, plugin);
      await sleep(backoffMs(backoff, failures), undefined, { signal, ref: false }).catch(() => undefined);
    }
  };

  const ended = run();
  return {
    found,
    tried,
    state: () => state,
    lastFailure: () => lastFailure,
    stop: () => {
      stopping.abort();
      return ended;
    },
  };
};
