/** What starting, asking and stopping shims does to the simulated world, of those that pods share too. */
import type { ObservedTask } from '../../src/domain/model/tasks.ts';
import type { PerformEffects } from '../../src/engine/ports.ts';
import { newProcess } from './changing.ts';
import { fail, type faultyPerformance, type SimulatedEffectsOptions } from './faulty-performance.ts';
import { endShimProcess, type SimulatedTask, shimOf, shimsOfProcess } from './world.ts';

const NOTHING = {};

const observed = (containerId: string, task: SimulatedTask | undefined): ObservedTask => {
  if (task === undefined) return { containerId, status: 'absent', pid: 0 };
  const base = { containerId, status: task.status, pid: task.pid, startTicks: task.startTicks };
  if (task.status !== 'stopped') return base;
  return {
    ...base,
    ...(task.neverBegan ? { neverBegan: true } : {}),
    exit: {
      pid: task.pid,
      exitStatus: task.exitStatus,
      exitedAtNs: String(task.exitedAtNs),
      oomKills: task.oomKills,
    },
  };
};

export function shimEffects(
  { world, random }: SimulatedEffectsOptions,
  performing: ReturnType<typeof faultyPerformance>,
  removeTask: (podSandboxId: string, containerId: string) => void,
): Pick<PerformEffects, 'StartShim' | 'StopShim' | 'ReconnectShim'> {
  return {
    StartShim: performing('StartShim', 8, ({ podSandboxId, shared }, half) => {
      if (!world.bundles.has(podSandboxId)) fail('ShimFailed', 'there is no bundle');
      const running = shared === undefined ? undefined : world.sharedShims.get(shared.id);
      const shim = shimOf(world, podSandboxId) ?? {
        podSandboxId,
        pid: running ?? newProcess(world.changing, random).pid,
        alive: true,
        tasks: new Map<string, SimulatedTask>(),
      };
      if (shared !== undefined) world.sharedShims.set(shared.id, shim.pid);
      if (shimsOfProcess(world, shim.pid).some(({ podSandboxId: other }) => world.mute.has(other)))
        world.mute.add(podSandboxId);
      world.shims.set(podSandboxId, shim);
      half();
      return {
        shim: { address: `unix:///s/${podSandboxId}`, taskApi: 3, pid: shim.pid, startTicks: String(shim.pid) },
      };
    }),
    StopShim: performing('StopShim', 3, ({ podSandboxId, hasSandbox, shared }, half) => {
      half();
      const shim = world.shims.get(podSandboxId);
      // A sandbox of the shim's own goes with it.
      if (hasSandbox === true) removeTask(podSandboxId, podSandboxId);
      for (const task of shim?.tasks.values() ?? [])
        if (task.status === 'running') fail('ShimFailed', 'tasks still run');
      world.shims.delete(podSandboxId);
      world.mute.delete(podSandboxId);
      const running = shared?.isInUse === false ? world.sharedShims.get(shared.id) : undefined;
      if (running !== undefined) endShimProcess(world, running);
      return NOTHING;
    }),
    ReconnectShim: performing('ReconnectShim', 3, ({ podSandboxId, containerIds, sandboxPid }, half) => {
      half();
      const shim = shimOf(world, podSandboxId);
      if (shim === undefined) return { gone: true, tasks: [] };
      const ids = [...containerIds, ...(sandboxPid === undefined ? [] : [podSandboxId])];
      return { gone: false, tasks: ids.map((id) => observed(id, shim.tasks.get(id))) };
    }),
  };
}
