/** Phases of a container as tests put them together: what they say nothing of is ordinary. */
import type { ContainerExit, ContainerPhase, ContainerRun } from '../../src/domain/model/state.ts';

const RUN: ContainerRun = {
  task: { pid: 42, startTicks: '8' },
  startedAtNs: '3000',
  oomed: false,
  stop: null,
  execs: [],
  staleExecs: [],
};

export const CREATING: ContainerPhase = { kind: 'creating', inspection: 'done' };
export const CREATED: ContainerPhase = { kind: 'created', claimed: true };
export const running = (run: Partial<ContainerRun> = {}): ContainerPhase => ({
  kind: 'running',
  run: { ...RUN, ...run },
});
/** Found dead, with an exit code that nobody knows yet. */
export const DEAD: ContainerPhase = { kind: 'dead', run: RUN };
export const exited = (exit: ContainerExit, run: Partial<ContainerRun> = {}): ContainerPhase => ({
  kind: 'exited',
  exit,
  run: { ...RUN, ...run },
  taskLeft: 'done',
});
