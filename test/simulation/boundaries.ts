/**
 * Where a daemon can die: around every kind of append and every kind of effect. A history dies at one chosen boundary
 * (and at random moments besides), and every boundary is counted.
 */
import type { EffectKind } from '../../src/domain/model/effects.ts';
import type { InputType } from '../../src/domain/model/records.ts';

/** lost: decided, never durable. kept: durable, but the daemon never learned it. */
export type AppendMoment = 'lost' | 'kept';
/** before: released and not begun. half: begun. after: done, and the outcome is not recorded. */
export type EffectMoment = 'before' | 'half' | 'after';

export type Boundary =
  | `append ${InputType} ${AppendMoment}`
  | `effect ${Exclude<EffectKind, 'WaitUntil'>} ${EffectMoment}`;

/** Where a life of the daemon has ended: also at any moment, or because it was asked to. */
export type CrashPlace = Boundary | 'between steps' | 'stopped' | 'failed commit';

const inputs = {
  'daemon.started': true,
  'call.received': true,
  'call.detached': true,
  'effect.ended': true,
  'task.exited': true,
  'task.oomed': true,
  'shim.lost': true,
  'network.configured': true,
  'nri.plugin.registered': false,
  'nri.plugin.closed': false,
  'daemon.stopped': false,
  // Nothing follows from it, and nothing is changed by it.
  'content.damaged': false,
  'logkeeper.started': false,
  'logkeeper.ended': false,
  // Follows on a bug only.
  'turn.failed': false,
  'journal.doubted': false,
  'disk.filled': false,
  'disk.freed': false,
  'content.collected': false,
} as const satisfies Record<InputType, boolean>;

const effects = {
  PreparePodSandbox: true,
  CleanPodSandbox: true,
  CreateNetns: true,
  RemoveNetns: true,
  PinNamespaces: true,
  UnpinNamespaces: true,
  AttachNetwork: true,
  DetachNetwork: true,
  StartShim: true,
  StopShim: true,
  ReconnectShim: true,
  StartSandbox: true,
  StopSandbox: true,
  InspectContainer: true,
  PrepareContainer: true,
  CleanContainer: true,
  CreateTask: true,
  StartTask: true,
  KillTask: true,
  DeleteTask: true,
  RunExec: true,
  EndExec: true,
  StreamExec: true,
  StreamAttach: true,
  StreamPort: true,
  ReopenLog: true,
  UpdateContainer: true,
  CheckpointTask: true,
  EndCheckpoint: true,
  CheckpointPod: true,
  EndPodCheckpoint: true,
  ReadPodCheckpoint: true,
  ReadCheckpoint: true,
  PullImage: true,
  LoadImages: true,
  SyncImage: true,
  DeleteImageContent: true,
  CallPlugins: false,
  SynchronizePlugin: false,
  WaitUntil: false,
} as const satisfies Record<EffectKind, boolean>;

const included = <T extends string>(table: Readonly<Record<T, boolean>>): T[] =>
  (Object.keys(table) as T[]).filter((name) => table[name]);

export const BOUNDARIES: readonly Boundary[] = [
  ...included(inputs).flatMap((type) => [`append ${type} lost` as const, `append ${type} kept` as const]),
  ...included(effects).flatMap((kind) =>
    kind === 'WaitUntil'
      ? []
      : [`effect ${kind} before` as const, `effect ${kind} half` as const, `effect ${kind} after` as const],
  ),
];
