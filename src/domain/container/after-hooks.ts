/** What the answers of NRI plugins about a container lead to: its spec is changed, or what was begun is given up. */
import type { Failure } from '../model/errors.ts';
import type { ContainerAdjustment } from '../model/nri.ts';
import type { PluginAnswer } from '../model/nri-plugins.ts';
import { containerStream, type EffectEnded, type Intent } from '../model/records.ts';
import { refused, type Result, succeeded } from '../model/result.ts';
import type { Container } from '../model/state.ts';
import { mergedAnswers, rejectionIn, updatesIn, vetoIn } from '../nri/answers.ts';
import { limitsUnder, type MergedUpdates, mergedUpdates } from '../nri/updates.ts';
import type { Merged } from '../nri/merge.ts';
import { resourcesOf } from '../model/container-state.ts';
import { answer, emit, request, type Turn } from '../deciding/turn.ts';
import { advanceContainer, failCreation } from './advance.ts';
import { writeStartError } from './starts-and-exits.ts';
import { afterUpdateHook } from './update.ts';
import { askForValidation, hasNames, rejectionByDefault, type SaidToCreation } from './validation.ts';

type Ended = Extract<EffectEnded, { kind: 'CallPlugins' }>;

export function afterHook(turn: Turn, containerId: string, outcome: Ended, intent: Intent): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined || intent.kind !== 'CallPlugins') return;
  const answers = outcome.result?.answers ?? [];
  const veto = (): Failure | null => outcome.failure ?? vetoIn(answers, intent.hook, `container ${containerId}`);
  switch (intent.hook) {
    case 'CreateContainer': {
      const vetoed = veto();
      const wanted = vetoed === null ? wantedBy(answers, containerId) : refused(vetoed);
      if (!wanted.ok && container.goal === 'run') return failCreation(turn, container, wanted.failure);
      if (wanted.ok) adjust(turn, container, wanted.value);
      if (wanted.ok && container.goal === 'run')
        return validate(turn, containerId, { answers, others: wanted.value.others });
      break;
    }
    case 'ValidateContainerAdjustment': {
      const failure = outcome.failure ?? rejectionIn(answers, `container ${containerId}`);
      if (failure !== null && container.goal === 'run') return failCreation(turn, container, failure);
      if (failure === null) lookUpNames(turn, container);
      break;
    }
    case 'StartContainer': {
      const failure = veto();
      if (failure !== null) giveUpStart(turn, container, failure);
      break;
    }
    case 'UpdateContainer':
      afterUpdateHook(turn, containerId, { answers, failure: veto(), change: intent.change?.resources ?? {} });
      break;
    default:
    // Nothing can be refused any more: what they said is written down.
  }
  advanceContainer(turn, containerId);
}

interface Wanted extends Merged {
  /** Of other containers: limits of the container itself are part of its adjustment. */
  readonly others: MergedUpdates;
}

function wantedBy(answers: readonly PluginAnswer[], containerId: string): Result<Wanted> {
  const merged = mergedAnswers(answers);
  if (!merged.ok) return merged;
  const others = mergedUpdates(updatesIn(answers), containerId);
  return others.ok ? succeeded({ ...merged.value, others: others.value }) : others;
}

/** What was adjusted is looked up when nobody has anything against it. */
function validate(turn: Turn, containerId: string, said: SaidToCreation): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined) return;
  const rejected = rejectionByDefault(turn.state, container, said.answers);
  if (rejected !== null) return failCreation(turn, container, rejected);
  if (!askForValidation(turn, container, said)) lookUpNames(turn, container);
  advanceContainer(turn, containerId);
}

/** Its task is made, and not started. */
function giveUpStart(turn: Turn, container: Container, failure: Failure): void {
  if (container.phase.kind !== 'starting') return;
  writeStartError(turn, container, failure.message);
  answer(turn, containerStream(container.id), ['StartContainer'], refused(failure));
}

function adjust(turn: Turn, container: Container, { adjust, owners }: Merged): void {
  if (Object.keys(adjust).length === 0) return;
  const body = { adjust, owners, ...resourcesWith(container, adjust) };
  emit(turn, containerStream(container.id), { type: 'container.adjusted', body });
}

/** What names stand for has to be known before the spec is built. */
function lookUpNames(turn: Turn, container: Container): void {
  if (container.goal === 'run' && hasNames(container))
    request(turn, containerStream(container.id), { kind: 'InspectContainer' });
}

/** A later change of limits begins with what plugins set. */
function resourcesWith(container: Container, { linux = {} }: ContainerAdjustment) {
  const { oomScoreAdj, resources } = linux;
  if (oomScoreAdj === undefined && resources === undefined) return {};
  const limits = limitsUnder(resourcesOf(container) ?? {}, resources ?? {});
  return { resources: oomScoreAdj === undefined ? limits : { ...limits, oomScoreAdj: String(oomScoreAdj) } };
}
