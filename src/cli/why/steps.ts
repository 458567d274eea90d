/** What was done on the way, in words: each effect with how long it took and how it ended. Pure. */
import type { EffectKind } from '../../domain/model/effects.ts';
import { effectId, type Intent, type Sequenced } from '../../domain/model/records.ts';
import type { Failure } from '../../domain/model/errors.ts';
import type { PluginAnswer } from '../../domain/model/nri-plugins.ts';
import { pluginOfId } from '../../domain/nri/plugins.ts';
import { bare } from '../../domain/values/sentence.ts';
import { duration } from '../format.ts';
import { answersOf, answersWords } from '../history/plugins.ts';
import type { Link } from './answer.ts';
import { isOf } from './records.ts';

export interface Step {
  readonly stream: string;
  readonly intent: Intent;
  readonly requestedSeq: number;
  readonly requestedNs: bigint;
  readonly requestedMonoNs: bigint;
  /** null: it is under way, or was when the daemon ended. */
  readonly ended: {
    readonly seq: number;
    readonly atNs: bigint;
    readonly failure: Failure | null;
    /** Of NRI plugins, where it asked some. */
    readonly answers: readonly PluginAnswer[];
  } | null;
  readonly tookNs: bigint | null;
}

/** What people call a step; the name of the effect stands behind it. */
const NAMES: Readonly<Record<Exclude<EffectKind, 'KillTask' | 'WaitUntil' | 'CallPlugins'>, string>> = {
  PreparePodSandbox: "making the pod's files",
  CleanPodSandbox: "removing the pod's files",
  CreateNetns: 'making its network namespace',
  RemoveNetns: 'removing its network namespace',
  PinNamespaces: 'making its namespaces',
  UnpinNamespaces: 'removing its namespaces',
  AttachNetwork: 'attaching its network (CNI ADD)',
  DetachNetwork: 'detaching its network (CNI DEL)',
  StartShim: 'starting its shim',
  StopShim: 'ending its shim',
  ReconnectShim: 'asking its shim',
  StartSandbox: 'starting its sandbox (shim)',
  StopSandbox: 'ending its sandbox (shim)',
  InspectContainer: 'looking into its image',
  PrepareContainer: 'making its files',
  CleanContainer: 'removing its files',
  UpdateContainer: 'changing its limits',
  ReopenLog: 'opening its log anew',
  CreateTask: 'making its task (shim and OCI runtime)',
  StartTask: 'starting its task (OCI runtime)',
  DeleteTask: 'deleting its task',
  RunExec: 'running a command in it',
  EndExec: 'ending a command in it',
  StreamExec: 'a session of exec',
  StreamAttach: 'a session of attach',
  StreamPort: 'forwarding a port',
  CheckpointTask: 'writing its checkpoint (CRIU)',
  EndCheckpoint: 'clearing up its checkpoint',
  ReadCheckpoint: 'reading the checkpoint',
  CheckpointPod: "writing the pod's checkpoint (CRIU)",
  EndPodCheckpoint: "clearing up the pod's checkpoint",
  ReadPodCheckpoint: "reading the pod's checkpoint",
  PullImage: 'pulling the image',
  LoadImages: 'loading images',
  SyncImage: 'having the image on the disk',
  DeleteImageContent: "removing the image's content",
  SynchronizePlugin: 'telling a plugin what is there',
};

/** A newer scribe may have recorded a kind that is not known here: that stands for itself. */
const nameOfKind = (kind: keyof typeof NAMES): string => (Object.hasOwn(NAMES, kind) ? NAMES[kind] : kind);

export const stepName = (intent: Intent): string => {
  switch (intent.kind) {
    case 'KillTask':
      return `sending it signal ${intent.signal}`;
    case 'WaitUntil':
      return `waiting (${intent.purpose})`;
    case 'CallPlugins':
      return `asking NRI plugins ${intent.plugins.map(pluginOfId).join(', ')} (${intent.hook})`;
    default:
      return nameOfKind(intent.kind);
  }
};

const SHORT_NS = 1_000_000n;

/** Time that the monotonic clock measured; across a restart of the node it starts anew, and the wall clock has to do. */
const between = (began: Step | Sequenced, ended: Sequenced): bigint => {
  const beganMonoNs = 'monoNs' in began ? began.monoNs : began.requestedMonoNs;
  const beganNs = 'atNs' in began ? began.atNs : began.requestedNs;
  const byMono = ended.monoNs - beganMonoNs;
  const byWall = ended.atNs - beganNs;
  return byMono >= 0n ? byMono : byWall > 0n ? byWall : 0n;
};

/** Effects that these records asked for, in order, with their outcomes. */
export const stepsOf = (events: readonly Sequenced[]): Step[] => {
  const steps = new Map<string, Step>();
  for (const event of events) {
    if (isOf(event, 'effects.requested')) {
      for (const [index, intent] of event.body.effects.entries()) {
        const { stream, seq, atNs, monoNs } = event;
        const step = { stream, intent, requestedSeq: seq, requestedNs: atNs, requestedMonoNs: monoNs };
        steps.set(effectId(seq, index), { ...step, ended: null, tookNs: null });
      }
    } else if (isOf(event, 'effect.ended')) {
      const step = steps.get(event.body.effect);
      if (step === undefined) continue;
      const failure = event.body.failure ?? null;
      const ended = { seq: event.seq, atNs: event.atNs, failure, answers: answersOf(event.body) };
      steps.set(event.body.effect, { ...step, ended, tookNs: between(step, event) });
    }
  }
  return [...steps.values()];
};

export const isOpen = ({ ended }: Step): boolean => ended === null;

/** The step that took longest of those that ended; waits are meant to take long. */
export const slowestOf = (steps: readonly Step[]): Step | null =>
  steps
    .filter(({ intent, tookNs }) => intent.kind !== 'WaitUntil' && (tookNs ?? 0n) >= SHORT_NS)
    .reduce<Step | null>(
      (slow, step) => (slow === null || (step.tookNs ?? 0n) > (slow.tookNs ?? 0n) ? step : slow),
      null,
    );

const capital = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

/**
 * A link for each step that failed, is under way, or took a while, and for each in which a plugin refused or gave no answer;
 * the name of its effect is in it for who looks further.
 */
export const stepLinks = (steps: readonly Step[], nowNs: bigint): Link[] =>
  steps.flatMap((step): Link[] => {
    const { intent, ended, tookNs } = step;
    const name = `${capital(stepName(step.intent))} [${intent.kind}]`;
    if (ended === null) {
      if (intent.kind === 'WaitUntil') return [];
      const text = `${name} was begun and has no outcome yet, for ${duration(nowNs - step.requestedNs)}.`;
      return [{ seq: step.requestedSeq, atNs: step.requestedNs, text, tookNs: null, style: 'doubtful' as const }];
    }
    const { seq, atNs, failure, answers } = ended;
    if (failure !== null)
      return [{ seq, atNs, tookNs, text: `${name} failed: ${failure.message}`, style: 'bad' as const }];
    const isWhole = answers.every((answer) => answer.failure === undefined);
    if (intent.kind === 'WaitUntil' || (isWhole && (tookNs ?? 0n) < SHORT_NS)) return [];
    const said = answers.length === 0 ? '' : `: ${bare(answersWords(answers))}`;
    return [{ seq, atNs, tookNs, text: `${name} was done${said}.`, style: isWhole ? 'faint' : 'doubtful' }];
  });
