/**
 * What decisions know of the node and of the daemon's configuration. Recorded in every daemon.started, so that a
 * replay elsewhere decides the same (C13).
 */
import type { RuntimeHandler } from './runtime-handler.ts';
import type { NodeFacts } from './node-facts.ts';
import type { NriFacts } from './nri-settings.ts';
import type { SpecSettings } from './spec-settings.ts';
import type { SelinuxContexts } from './selinux.ts';

export interface DaemonFacts {
  /** By which rules decisions are made: see rules.ts. Absent: 1. */
  readonly rules?: number;
  readonly version: string;
  readonly rootDir: string;
  readonly stateDir: string;
  readonly node: NodeFacts;
  readonly handlers: readonly RuntimeHandler[];
  readonly defaultHandler: string;
  readonly settings: SpecSettings;
  /** Absent: NRI is off, or judges nothing by itself. */
  readonly nri?: NriFacts;
  /** Of the node's policy; absent: pods are not labelled. */
  readonly selinux?: SelinuxContexts;
  /** Normalised reference of the image that pause tasks run; null: the program that scribe carries. */
  readonly sandboxImage: string | null;
  /** Directory that holds the carried pause program's root file system. */
  readonly pauseRootfs: string;
}
