/** What the answers of NRI plugins about a container lead to: its spec is changed, or what was begun is given up. */
import type { Failure } from '../model/errors.ts';
import type { ContainerAdjustment } from '../model/nri.ts';
import type { PluginAnswer } from '../model/nri-plugins.ts';
import { containerStream, type EffectEnded, type Intent } from '../model/records.ts';
import { refused } from '../model/result.ts';
import type { Container } from '../model/state.ts';
import { mergedAnswers, updatesIn, vetoIn } from '../nri/answers.ts';
import { limitsUnder, mergedUpdates } from '../nri/updates.ts';
import type { Merged } from '../nri/merge.ts';
import { resourcesOf } from '../model/container-state.ts';
import { answer, emit, request, type Turn } from '../deciding/turn.ts';
import { advanceContainer, failCreation } from './advance.ts';
import { writeStartError } from './starts-and-exits.ts';
import { afterUpdateHook } from './update.ts';

type Ended = Extract<EffectEnded, { kind: 'CallPlugins' }>;

export function afterHook(turn: Turn, containerId: string, outcome: Ended, intent: Intent): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined || intent.kind !== 'CallPlugins') return;
  const answers = outcome.result?.answers ?? [];
  const veto = (): Failure | null => outcome.failure ?? vetoIn(answers, intent.hook, `container ${containerId}`);
  switch (intent.hook) {
    case 'CreateContainer': {
      const merged = mergedAnswers(answers);
      const failure = veto() ?? (merged.ok ? updateFailure(answers, containerId) : merged.failure);
      if (failure !== null && container.goal === 'run') return failCreation(turn, container, failure);
      if (failure === null && merged.ok) adjust(turn, container, merged.value);
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

/** Limits of the container itself are part of its adjustment; those of others may not contradict each other. */
function updateFailure(answers: readonly PluginAnswer[], containerId: string): Failure | null {
  const updates = mergedUpdates(updatesIn(answers), containerId);
  return updates.ok ? null : updates.failure;
}

/** Its task is made, and not started. */
function giveUpStart(turn: Turn, container: Container, failure: Failure): void {
  if (container.phase.kind !== 'starting') return;
  writeStartError(turn, container, failure.message);
  answer(turn, containerStream(container.id), ['StartContainer'], refused(failure));
}

function adjust(turn: Turn, container: Container, merged: Merged): void {
  if (Object.keys(merged.adjust).length === 0) return;
  const stream = containerStream(container.id);
  emit(turn, stream, { type: 'container.adjusted', body: { ...merged, ...resourcesWith(container, merged.adjust) } });
  // What names stand for has to be known before the spec is built.
  if (container.goal === 'run' && hasNames(merged.adjust)) request(turn, stream, { kind: 'InspectContainer' });
}

const hasNames = ({ cdiDevices = [], linux }: ContainerAdjustment): boolean =>
  cdiDevices.length > 0 || linux?.resources?.blockioClass !== undefined;

/** A later change of limits begins with what plugins set. */
function resourcesWith(container: Container, { linux = {} }: ContainerAdjustment) {
  const { oomScoreAdj, resources } = linux;
  if (oomScoreAdj === undefined && resources === undefined) return {};
  const limits = limitsUnder(resourcesOf(container) ?? {}, resources ?? {});
  return { resources: oomScoreAdj === undefined ? limits : { ...limits, oomScoreAdj: String(oomScoreAdj) } };
}
