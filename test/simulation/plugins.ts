/** NRI plugins of the simulated world. */
import type { PerformEffects } from '../../src/engine/ports.ts';
import type { faultyPerformance } from './faulty-performance.ts';

export function pluginEffects(
  performing: ReturnType<typeof faultyPerformance>,
): Pick<PerformEffects, 'CallPlugins' | 'SynchronizePlugin'> {
  return {
    CallPlugins: performing('CallPlugins', 2, (_effect, half) => {
      half();
      return { answers: [] };
    }),
    SynchronizePlugin: performing('SynchronizePlugin', 2, (_effect, half) => {
      half();
      return { answers: [] };
    }),
  };
}
