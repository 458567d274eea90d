/** What commands and sessions do to the simulated world: brief ones, and those that last. */
import type { EffectOf, EffectResults } from '../../src/domain/model/effects.ts';
import type { PerformEffects } from '../../src/engine/ports.ts';
import { DIED, fail, type faultyPerformance, type SimulatedEffectsOptions } from './faulty-performance.ts';
import { exitAfter, lastingSessions } from './lasting-sessions.ts';
import type { SimulatedShim } from './world.ts';

export function sessionEffects(
  options: SimulatedEffectsOptions,
  performing: ReturnType<typeof faultyPerformance>,
  tasksOf: (podSandboxId: string) => SimulatedShim,
): Pick<PerformEffects, 'RunExec' | 'StreamExec' | 'StreamAttach' | 'StreamPort'> {
  const { world, random } = options;
  const session = lastingSessions(options);

  /** Runs until it ends, or until somebody ends it: it goes on when the daemon dies. */
  function runCommand(
    { podSandboxId, containerId, execId }: EffectOf<'RunExec' | 'StreamExec'>,
    half: () => void,
  ): void {
    const task = tasksOf(podSandboxId).tasks.get(containerId);
    if (task?.status !== 'running') return fail('RuntimeFailed', 'the container does not run');
    task.execs.add(execId);
    try {
      half();
    } catch (error) {
      if (error !== DIED) task.execs.delete(execId);
      throw error;
    }
    task.execs.delete(execId);
  }

  /** It runs from here on, whoever lives to see its end. */
  function beginCommand(
    { podSandboxId, containerId, execId }: EffectOf<'RunExec' | 'StreamExec'>,
    half: () => void,
  ): { readonly exitStatus: number; readonly stdoutBytes: number; readonly stderrBytes: number } {
    const task = tasksOf(podSandboxId).tasks.get(containerId);
    if (task?.status !== 'running') return fail('RuntimeFailed', 'the container does not run');
    half();
    task.execs.add(execId);
    return { exitStatus: 0, stdoutBytes: 0, stderrBytes: 0 };
  }

  function attached(_effect: EffectOf<'StreamAttach'>, half: () => void): EffectResults['StreamAttach'] {
    half();
    return { stdinBytes: 1, stdoutBytes: 3, stderrBytes: 0 };
  }

  function connected({ netnsPath }: EffectOf<'StreamPort'>, half: () => void): EffectResults['StreamPort'] {
    if (netnsPath !== null && !world.netns.has(netnsPath)) fail('HostFailed', 'the netns is gone');
    half();
    return { toPodBytes: 1, fromPodBytes: 3 };
  }

  return {
    RunExec: session({
      brief: performing('RunExec', 20, (effect, half) => {
        runCommand(effect, half);
        return { exitStatus: random.below(2), timedOut: random.chance(0.1), stdoutBytes: 3, stderrBytes: 0 };
      }),
      begin: performing('RunExec', 5, (effect, half) => ({ ...beginCommand(effect, half), timedOut: false })),
      end: (_effect, end) => ({ ...exitAfter(end), timedOut: end === 'timed out', stdoutBytes: 3, stderrBytes: 0 }),
    }),
    StreamExec: session({
      brief: performing('StreamExec', 30, (effect, half) => {
        runCommand(effect, half);
        return { exitStatus: random.below(2), stdinBytes: 1, stdoutBytes: 3, stderrBytes: 0 };
      }),
      begin: performing('StreamExec', 5, (effect, half) => ({ ...beginCommand(effect, half), stdinBytes: 0 })),
      end: (_effect, end) => ({ ...exitAfter(end), stdinBytes: 1, stdoutBytes: 3, stderrBytes: 0 }),
    }),
    StreamAttach: session({
      brief: performing('StreamAttach', 30, attached),
      begin: performing('StreamAttach', 5, attached),
      end: () => ({ stdinBytes: 1, stdoutBytes: 3, stderrBytes: 0 }),
    }),
    StreamPort: session({
      brief: performing('StreamPort', 30, connected),
      begin: performing('StreamPort', 5, connected),
      end: () => ({ toPodBytes: 1, fromPodBytes: 3 }),
    }),
  };
}
