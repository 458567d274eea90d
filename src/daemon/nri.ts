/**
 * NRI in the daemon: who registers and goes is told to the engine, and what plugins want of limits, in answers and unasked,
 * is submitted as calls, so that it is decided like any other. Decides nothing.
 */
import type { Logger } from 'pino';
import type { NriPlugin as ConnectedPlugin, NriPlugins } from '../adapters/nri/plugins.ts';
import { updateContainersRequest } from '../adapters/nri/messages/from-wire.ts';
import { updateToWire } from '../adapters/nri/messages/to-wire.ts';
import { FailureError, messageOf } from '../domain/model/errors.ts';
import type { NriPlugin } from '../domain/model/nri-plugins.ts';
import type { NriEviction, NriUpdate } from '../domain/model/nri-views.ts';
import { pluginName } from '../domain/nri/plugins.ts';
import { updateInCri } from '../domain/nri/updates.ts';
import type { Observe, ReadModel, SubmitCall } from '../engine/ports.ts';
import { wishesOf } from './nri-wishes.ts';

interface Options {
  readonly plugins: NriPlugins;
  readonly observe: Observe;
  readonly submit: SubmitCall;
  readonly view: Pick<ReadModel, 'state' | 'recordsOf'>;
  readonly log: Logger;
}

/** Resolves when the launched plugins have registered, or had the time for it: whoever is asked from then on is asked. */
export async function startNri({ plugins, observe, submit, view, log }: Options): Promise<void> {
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

  wishesOf(view).subscribe(({ plugin, updates, evictions, conflict }) => {
    if (conflict !== undefined)
      log.warn({ plugin, failure: conflict }, 'updates that NRI plugins want are not carried out');
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
