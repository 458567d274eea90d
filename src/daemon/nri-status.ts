/** What `scribe nri` is told: how each plugin does, with what it owns in containers that run. Judges nothing. */
import type { NriPluginStatus } from '../adapters/nri/plugins.ts';
import type { NodeState } from '../domain/model/state.ts';
import { pluginName } from '../domain/nri/plugins.ts';
import { nriOwned, type NriOwnedIn } from '../projections/nri-owned.ts';
import { type ListNriPluginsReply, NriPlugin } from '../wire/scribe/v1/daemon.ts';

/** `plugins` is null: NRI is off. Who has left, and still owns something, is listed for that alone. */
export function nriPluginsReply(
  plugins: readonly NriPluginStatus[] | null,
  state: Pick<NodeState, 'containers' | 'sandboxes'>,
): ListNriPluginsReply {
  const owned = nriOwned(state);
  const ownedBy = (plugin: string) => (owned.get(plugin) ?? []).map((one) => ownedMessage(one, state));
  const present = (plugins ?? []).map((status) => pluginMessage(status, ownedBy(pluginName(status))));
  const names = new Set(present.map(pluginName));
  const left = [...owned.keys()]
    .filter((plugin) => !names.has(plugin))
    .map((plugin) => leftMessage(plugin, ownedBy(plugin)));
  const inOrder = [...present, ...left].toSorted((a, b) => (pluginName(a) < pluginName(b) ? -1 : 1));
  return { enabled: plugins !== null, plugins: inOrder };
}

function pluginMessage(status: NriPluginStatus, owned: NriPlugin['owned']): NriPlugin {
  const { index, name, state, nriVersion, launched, pid, events, lastFailure, latencies, registeredNs } = status;
  return {
    index,
    name,
    state,
    nriVersion,
    launched,
    pid: pid ?? 0,
    requests: String(status.requests),
    failures: String(status.failures),
    deadlinesMissed: String(status.deadlinesMissed),
    lastFailure: lastFailure ?? '',
    hooks: [...events],
    latencies: latencies.map(({ asked, answers, p50Ns, p99Ns, maxNs }) => ({
      hook: asked,
      answers: String(answers),
      p50Ns: String(p50Ns),
      p99Ns: String(p99Ns),
      maxNs: String(maxNs),
    })),
    owned,
    registeredNs: String(registeredNs ?? 0n),
  };
}

/** "NN-name" as the owner of a field. */
const leftMessage = (plugin: string, owned: NriPlugin['owned']): NriPlugin =>
  NriPlugin.fromPartial({ index: plugin.slice(0, 2), name: plugin.slice(3), state: 'gone', owned });

function ownedMessage(
  { container, fields }: NriOwnedIn,
  { sandboxes }: Pick<NodeState, 'sandboxes'>,
): NriPlugin['owned'][number] {
  const { metadata } = sandboxes.get(container.podSandboxId)?.config ?? {};
  return {
    containerId: container.id,
    containerName: container.config.metadata?.name ?? container.name,
    podNamespace: metadata?.namespace ?? '',
    podName: metadata?.name ?? '',
    fields: [...fields],
  };
}
