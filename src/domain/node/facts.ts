/**
 * What decisions know of the node and of the daemon's configuration. Recorded in every daemon.started, so that a
 * replay elsewhere decides the same (C13).
 */
import type { RuntimeHandler } from '../effects.ts';
import type { NodeFacts } from '../node-facts.ts';

export interface DaemonFacts {
  readonly version: string;
  readonly rootDir: string;
  readonly stateDir: string;
  readonly node: NodeFacts;
  readonly handlers: readonly RuntimeHandler[];
  readonly defaultHandler: string;
  readonly cgroupDriver: 'cgroupfs' | 'systemd';
  readonly restrictOomScoreAdj: boolean;
  readonly enableUnprivilegedPorts: boolean;
  readonly enableUnprivilegedIcmp: boolean;
  /** Directory that holds the pause program's root file system. */
  readonly pauseRootfs: string;
}
