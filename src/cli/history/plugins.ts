/** Which NRI plugins had a part in what a record says, and what they answered, in words. Pure. */
import type { PluginAnswer } from '../../domain/model/nri-plugins.ts';
import type { FieldOwners } from '../../domain/model/nri.ts';
import type { CallRequest, DomainRecord, EffectEnded, Sequenced } from '../../domain/model/records.ts';
import { bareKey, isMarked } from '../../domain/nri/marks.ts';
import { bareName, pluginName, pluginOfId } from '../../domain/nri/plugins.ts';
import { counted } from '../format.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { readableEvent } from './entries.ts';

/** What plugins answered where an effect asked them; none for any other. */
export const answersOf = (ended: EffectEnded): readonly PluginAnswer[] => {
  if (ended.kind !== 'CallPlugins' && ended.kind !== 'SynchronizePlugin') return [];
  return ended.result?.answers ?? [];
};

const decisionWords = ({ answer, failure }: PluginAnswer): string => {
  if (failure !== undefined) return `${failure.kind}: ${failure.message}`;
  if (answer === undefined) return 'agreed';
  if ('rejected' in answer && answer.rejected !== undefined) return `refused: ${answer.rejected.reason}`;
  const updates = 'updates' in answer ? (answer.updates ?? []) : [];
  const evictions = 'evictions' in answer ? (answer.evictions ?? []) : [];
  const words = [
    ...('adjust' in answer && Object.keys(answer.adjust ?? {}).length > 0 ? ['adjusted'] : []),
    ...(updates.length === 0 ? [] : [`updated ${counted(updates.length, 'container')}`]),
    ...(evictions.length === 0 ? [] : [`evicted ${counted(evictions.length, 'container')}`]),
  ];
  return words.length === 0 ? 'agreed' : words.join(' and ');
};

/** "10-limits adjusted, 20-audit agreed". */
export const answersWords = (answers: readonly PluginAnswer[]): string =>
  answers.map((answer) => `${answer.plugin} ${decisionWords(answer)}`).join(', ');

/** What one plugin did to a field. */
export interface Owned {
  /** With its key, where it has some: "Env HOME". */
  readonly field: string;
  readonly plugin: string;
  readonly isTakenAway: boolean;
}

/** Of those who took something away the owner has the mark before it; of those who added to one field they are in a row. */
export const ownedIn = ({ simple, compound }: FieldOwners): readonly Owned[] => {
  const ofKeys = Object.entries(compound).flatMap(([field, keys]) =>
    Object.entries(keys).map(([key, owner]) => [`${field} ${key}`, owner] as const),
  );
  return [...Object.entries(simple), ...ofKeys].flatMap(([field, owner]) =>
    bareKey(owner)
      .split(',')
      .map((plugin) => ({ field, plugin, isTakenAway: isMarked(owner) })),
  );
};

const askedBy = (request: CallRequest): readonly string[] => {
  if (request.method === 'StopContainer') return request.evicted === undefined ? [] : [request.evicted.plugin];
  return request.method === 'UpdateContainerResources' && request.plugin !== undefined ? [request.plugin] : [];
};

/** As a failure of Synchronize says whose it is, in whichever words. */
const NAMED = /NRI plugin "?([0-9]{2}-[A-Za-z0-9_.+-]+)/;

/** An effect that failed has no answers: who was told what there is stands in the failure. */
const answeredIn = (ended: EffectEnded): readonly string[] => {
  const told = ended.kind === 'SynchronizePlugin' ? NAMED.exec(ended.failure?.message ?? '')?.[1] : undefined;
  return told === undefined ? answersOf(ended).map(({ plugin }) => plugin) : [told];
};

/** "NN-name" of each. */
const pluginsIn = (event: Sequenced<DomainRecord>): readonly string[] => {
  switch (event.type) {
    case 'call.received':
      return askedBy(event.body.request);
    case 'effect.ended':
      return answeredIn(event.body);
    case 'container.adjusted':
      return ownedIn(event.body.owners).map(({ plugin }) => plugin);
    case 'container.stopping':
      return event.body.evicted === undefined ? [] : [event.body.evicted.plugin];
    case 'nri.plugin.registered':
      return [pluginName(event.body)];
    case 'nri.plugin.closed':
      return [pluginOfId(event.body.id)];
    default:
      return [];
  }
};

/** @param plugin  "NN-name", or the name alone */
export const hasPart = (plugin: string, record: JournalRecord): boolean => {
  // Few records name it at all: only those are read.
  if (!record.body.includes(plugin) && record.type !== 'nri.plugin.registered') return false;
  const event = readableEvent(record);
  return event !== null && pluginsIn(event).some((name) => name === plugin || bareName(name) === plugin);
};
