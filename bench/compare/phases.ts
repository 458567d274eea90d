/** The phases of a comparison: which there are, and what they need to be there. Data alone. */

/** Those that are measured unless some are named. */
export const usualPhases = ['serial', 'parallel', 'exec', 'streams', 'logs', 'memory', 'rates', 'restart'] as const;
/** Long ones, which are measured only when they are named. */
export const longPhases = [
  'full',
  'rare',
  'idle',
  'kubelet',
  'loop',
  'lives',
  'exits',
  'density',
  'reboot',
  'images',
  'pulls',
  'pullsBusy',
] as const;
/** In the order in which they are measured. */
export const phaseNames = [...usualPhases, ...longPhases] as const;
export type PhaseName = (typeof phaseNames)[number];
export const pullPhases: readonly PhaseName[] = ['pulls', 'pullsBusy'];
/** They need the pods of `loaded`. */
export const loadedPhases: readonly PhaseName[] = ['memory', 'rates', 'restart', 'idle', 'kubelet', 'loop', 'lives'];
