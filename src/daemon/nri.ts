/**
 * NRI in the daemon: who registers and goes is told to the engine, and what plugins want of limits, in answers and unasked,
 * is submitted as calls, so that it is decided like any other. Decides nothing.
 */
import type { Logger } from 'pino';
import { filter, map } from 'rxjs';
import type { NriPlugin as ConnectedPlugin, NriPlugins } from '../adapters/nri/plugins.ts';
import { updateContainersRequest } from '../adapters/nri/messages/from-wire.ts';
import { updateToWire } from '../adapters/nri/messages/to-wire.ts';
import { FailureError, messageOf } from '../domain/model/errors.ts';
import type { NriPlugin } from '../domain/model/nri-plugins.ts';
import type { NriEviction, NriUpdate } from '../domain/model/nri-views.ts';
import { type EffectEnded, type Sequenced, subjectOf } from '../domain/model/records.ts';
import { updatesIn } from '../domain/nri/answers.ts';
import { pluginName } from '../domain/nri/plugins.ts';
import { mergedUpdates, updateInCri } from '../domain/nri/updates.ts';
import type { Changes, Observe, SubmitCall } from '../engine/ports.ts';

interface Options {
  readonly plugins: NriPlugins;
  readonly observe: Observe;
  readonly submit: SubmitCall;
  readonly changes: Pick<Changes, 'recordsOf'>;
  readonly log: Logger;
}

/** Resolves when the launched plugins have registered, or had the time for it: whoever is asked from then on is asked. */
export async function startNri({ plugins, observe, submit, changes, log }: Options): Promise<void> {
  const names = new Map<string, string>();
  const note: (observed: Promise<void>) => void = (observed) =>
    void observed.catch((error: unknown) => log.warn({ error: messageOf(error) }, 'news of NRI is not recorded'));
  plugins.changes.subscribe((change) => {
    if (change.kind === 'registered') {
      const plugin = recorded(change.plugin);
      names.set(plugin.id, pluginName(plugin));
      return note(observe({ kind: 'NriNoted', note: { type: 'nri.plugin.registered', body: plugin } }));
    }
    const { pluginId: id, reason } = change;
    names.delete(id);
    note(observe({ kind: 'NriNoted', note: { type: 'nri.plugin.closed', body: { id, reason } } }));
  });

  const isDone = async (plugin: string, update: NriUpdate): Promise<boolean> => {
    const { containerId, resources = {} } = update;
    const draft = {
      method: 'UpdateContainerResources',
      containerId,
      plugin,
      ...updateInCri(resources),
    } as const;
    const { outcome } = await submit(draft, NOBODY);
    // A plugin may speak of what is gone meanwhile.
    if (outcome.ok || outcome.failure.reason === 'ContainerNotFound') return true;
    log.warn({ plugin, containerId, failure: outcome.failure }, 'an update that an NRI plugin wants failed');
    return update.ignoreFailure === true;
  };
  const evict = async (plugin: string, { containerId, reason }: NriEviction): Promise<void> => {
    const evicted = { plugin, reason };
    const { outcome } = await submit({ method: 'StopContainer', containerId, timeoutSeconds: '0', evicted }, NOBODY);
    if (!outcome.ok) log.warn({ plugin, containerId, failure: outcome.failure }, 'an eviction failed');
  };
  const carryOut = async (plugin: string, updates: readonly NriUpdate[], evictions: readonly NriEviction[]) => {
    const done = await Promise.all(updates.map((update) => isDone(plugin, update)));
    await Promise.all(evictions.map((eviction) => evict(plugin, eviction)));
    return updates.filter((_, index) => !done[index]);
  };

  changes
    .recordsOf('effect.ended')
    .pipe(
      map(wantedIn),
      filter((wanted) => wanted.length > 0),
    )
    .subscribe((wanted) => {
      for (const { plugin, updates, evictions } of wanted)
        void carryOut(plugin, updates, evictions).catch((error: unknown) =>
          log.warn({ plugin, error: messageOf(error) }, 'what an NRI plugin wants is not carried out'),
        );
    });
  await plugins.start(async ({ pluginId, update, evict: evictions }) => {
    const plugin = names.get(pluginId) ?? pluginId;
    const read = updateContainersRequest(plugin, { update: [...update], evict: [...evictions] });
    if (!read.ok) throw new FailureError(read.failure.reason, read.failure.message);
    const { updates, evictions: evicted, misfits } = read.value;
    for (const { failure } of misfits) log.warn({ plugin, failure }, 'an update that an NRI plugin wants is refused');
    const refused = misfits.filter(({ update: { ignoreFailure } }) => !ignoreFailure).map(({ update: one }) => one);
    const failed = await carryOut(plugin, updates, evicted);
    return [...refused, ...failed.map(updateToWire)];
  });
}

/** No client: the request names the plugin. */
const NOBODY = { caller: null, deadlineNs: null };

const recorded = ({ id, name, index, events, failurePolicy }: ConnectedPlugin): NriPlugin => ({
  id,
  name,
  index,
  hooks: events,
  ...(failurePolicy === 'fail' ? { isRequired: true } : {}),
});

interface Wanted {
  readonly plugin: string;
  readonly updates: readonly NriUpdate[];
  readonly evictions: readonly NriEviction[];
}

/** Of others: what is said of the object itself is decided with what it was asked about. */
function wantedIn({ body, stream }: Sequenced & { readonly body: EffectEnded }): readonly Wanted[] {
  if ((body.kind !== 'CallPlugins' && body.kind !== 'SynchronizePlugin') || body.result === undefined) return [];
  const { answers } = body.result;
  const asked = updatesIn(answers);
  const merged = mergedUpdates(asked);
  const { id } = subjectOf(stream);
  const updates = merged.ok ? merged.value.updates.filter(({ containerId }) => containerId !== id) : [];
  const evictions = answers.flatMap(({ plugin, answer }) =>
    answer !== undefined && 'evictions' in answer && answer.evictions !== undefined
      ? [{ plugin, updates: [], evictions: answer.evictions }]
      : [],
  );
  if (updates.length === 0) return evictions;
  return [{ plugin: asked.map(({ plugin }) => plugin).join(', '), updates, evictions: [] }, ...evictions];
}
