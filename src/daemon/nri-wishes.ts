/**
 * What NRI plugins want of others beside the container that they were asked about, once it may be carried out: what was
 * wanted for the sake of a container that is not made, or of a change that is refused, is not done. Decides nothing.
 */
import { mergeMap, type Observable } from 'rxjs';
import { isBeingValidated } from '../domain/container/hooks.ts';
import type { Failure } from '../domain/model/errors.ts';
import type { PluginAnswer } from '../domain/model/nri-plugins.ts';
import type { NriEviction, NriHook, NriUpdate } from '../domain/model/nri-views.ts';
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
  /** Why none of the updates that they want is carried out; absent: they are. */
  readonly conflict?: Failure;
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

const isAnswerTo = (answers: readonly PluginAnswer[], hook: NriHook): boolean =>
  answers.some(({ answer }) => answer?.hook === hook);

/** Of others than `id`: what is said of the object itself is decided with what it was asked about. */
function wantedBy(answers: readonly PluginAnswer[], id: string): readonly Wanted[] {
  if (isRefusedChange(answers)) return [];
  const asked = updatesIn(answers);
  // Nobody else is asked with it, so that there is nothing to put together: each is done in its turn, as if unasked.
  if (isAnswerTo(answers, 'Synchronize'))
    return asked.map(({ plugin, updates = [] }) => ({ plugin, updates, evictions: [] }));
  const plugin = asked.map((one) => one.plugin).join(', ');
  const merged = mergedUpdates(asked);
  // What was asked about is refused for it, and all else with that; an end is no less one.
  if (!merged.ok)
    return isAnswerTo(answers, 'StopContainer')
      ? [{ plugin, updates: [], evictions: [], conflict: merged.failure }]
      : [];
  const updates = merged.value.updates.filter(({ containerId }) => containerId !== id);
  const evictions = answers.flatMap(({ plugin: one, answer }) =>
    answer !== undefined && 'evictions' in answer && answer.evictions !== undefined
      ? [{ plugin: one, updates: [], evictions: answer.evictions }]
      : [],
  );
  if (updates.length === 0) return evictions;
  return [{ plugin, updates, evictions: [] }, ...evictions];
}

/** A container that is not made says so itself. */
const isRefusedChange = (answers: readonly PluginAnswer[]): boolean =>
  isAnswerTo(answers, 'UpdateContainer') && answers.some(({ failure }) => failure !== undefined && isVeto(failure));
