/**
 * What NRI plugins want of others beside the container that they were asked about, once it may be carried out: what was
 * wanted for the sake of a container that is not made, or of a change that is refused, is not done. Decides nothing.
 */
import { mergeMap, type Observable } from 'rxjs';
import { isBeingValidated } from '../domain/container/hooks.ts';
import type { PluginAnswer, PluginHook } from '../domain/model/nri-plugins.ts';
import type { NriEviction, NriUpdate } from '../domain/model/nri-views.ts';
import { type EffectEnded, type Sequenced, subjectOf } from '../domain/model/records.ts';
import type { NodeState } from '../domain/model/state.ts';
import { isVeto, updatesIn } from '../domain/nri/answers.ts';
import { mergedUpdates } from '../domain/nri/updates.ts';
import type { ReadModel } from '../engine/ports.ts';

export interface Wanted {
  /** "NN-name"; of several, one behind the other. */
  readonly plugin: string;
  readonly updates: readonly NriUpdate[];
  readonly evictions: readonly NriEviction[];
}

export const wishesOf = ({ state, recordsOf }: Pick<ReadModel, 'state' | 'recordsOf'>): Observable<Wanted> =>
  recordsOf('effect.ended').pipe(mergeMap(createRelease(state)));

type Ended = Sequenced & { readonly body: EffectEnded };

/** Gives what may be carried out from this record on. */
function createRelease(state: Pick<NodeState, 'containers'>): (record: Ended) => readonly Wanted[] {
  /** By the container that is being created: validators may still reject it. */
  const held = new Map<string, readonly Wanted[]>();

  function released(): readonly Wanted[] {
    const free: Wanted[] = [];
    for (const [id, wanted] of held) {
      const container = state.containers.get(id);
      const isGivenUp = container?.goal !== 'run';
      if (!isGivenUp && isBeingValidated(container)) continue;
      held.delete(id);
      if (!isGivenUp) free.push(...wanted);
    }
    return free;
  }

  return ({ body, stream }) => {
    const { id } = subjectOf(stream);
    const answers = answersIn(body);
    const wanted = wantedBy(answers, id);
    if (!isAnswerTo(answers, 'CreateContainer')) return held.size === 0 ? wanted : [...wanted, ...released()];
    if (wanted.length > 0) held.set(id, wanted);
    return released();
  };
}

const answersIn = (body: EffectEnded): readonly PluginAnswer[] =>
  body.kind === 'CallPlugins' || body.kind === 'SynchronizePlugin' ? (body.result?.answers ?? []) : [];

const isAnswerTo = (answers: readonly PluginAnswer[], hook: PluginHook): boolean =>
  answers.some(({ answer }) => answer?.hook === hook);

/** Of others than `id`: what is said of the object itself is decided with what it was asked about. */
function wantedBy(answers: readonly PluginAnswer[], id: string): readonly Wanted[] {
  const asked = updatesIn(answers);
  const merged = mergedUpdates(asked);
  if (!merged.ok || isRefusedChange(answers)) return [];
  const updates = merged.value.updates.filter(({ containerId }) => containerId !== id);
  const evictions = answers.flatMap(({ plugin, answer }) =>
    answer !== undefined && 'evictions' in answer && answer.evictions !== undefined
      ? [{ plugin, updates: [], evictions: answer.evictions }]
      : [],
  );
  if (updates.length === 0) return evictions;
  return [{ plugin: asked.map(({ plugin }) => plugin).join(', '), updates, evictions: [] }, ...evictions];
}

/** A container that is not made says so itself. */
const isRefusedChange = (answers: readonly PluginAnswer[]): boolean =>
  isAnswerTo(answers, 'UpdateContainer') && answers.some(({ failure }) => failure !== undefined && isVeto(failure));
