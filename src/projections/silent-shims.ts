/** Shims that are there and did not answer when they were asked last: what is told of their containers may be old. For doctor and why. */
import type { NodeState, PodSandbox } from '../domain/model/state.ts';

export interface SilentShim {
  readonly podSandboxId: string;
  readonly pid: number;
  /** How often in a row. */
  readonly silences: number;
}

/** null: it has answered, has not been asked since the daemon started, or is gone. */
export const silentShimOf = ({ id, shim, shimContact, shimSilences }: PodSandbox): SilentShim | null => {
  const isAwaited = shimContact === 'mute' || shimContact === 'unknown';
  if (shim === null || !isAwaited || shimSilences === 0) return null;
  return { podSandboxId: id, pid: shim.pid, silences: shimSilences };
};

export const silentShims = ({ sandboxes }: Pick<NodeState, 'sandboxes'>): readonly SilentShim[] =>
  [...sandboxes.values()].flatMap((sandbox) => silentShimOf(sandbox) ?? []);
