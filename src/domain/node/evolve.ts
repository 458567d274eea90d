/**
 * What concerns the node as a whole. daemon.started is the one record that touches every object: it says which
 * processes a restart found dead, and that nobody is in touch with any shim. Of its stream nothing is pruned but plugins
 * that have gone (turn/plugin-lives.ts).
 */
import { evolveCheckpointDigests } from '../container/checkpoint-digests.ts';
import { evolveDoubts } from '../model/journal-doubt.ts';
import { restartedContainer } from '../container/evolve.ts';
import { restartedSandbox } from '../pod-sandbox/after-restart.ts';
import { sameJson } from '../values/json.ts';
import type { Intent, Sequenced } from '../model/records.ts';
import { evolvePlugins, forgetPlugin } from '../nri/plugins.ts';
import type { RuntimeHandler } from '../model/runtime-handler.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import { rulesOf } from '../model/rules.ts';
import type { ContainerExit, NodeState } from '../model/state.ts';
import type { Int64 } from '../model/cri.ts';

/** `ended`: what was asked for that has just ended. */
export function evolveNode(state: NodeState, record: Sequenced, ended: Intent | undefined): void {
  switch (record.type) {
    case 'daemon.started': {
      state.network = withoutStrangers(state.network, state.facts, record.body.facts);
      state.facts = record.body.facts;
      // Whoever was there has to come again.
      state.nriPlugins = undefined;
      // Effects are forgotten by deciding/open-effects.ts; what they were doing is in doubt and therefore to be undone or redone.
      const dead = new Set(record.body.deadTasks);
      const { rebooted } = record.body;
      for (const [id, sandbox] of state.sandboxes)
        state.sandboxes.set(id, restartedSandbox(sandbox, rulesOf(state), rebooted, dead.has(id)));
      const exit = rebooted ? exitByReboot(String(record.atNs)) : null;
      for (const [id, container] of state.containers)
        state.containers.set(id, restartedContainer(container, exit, dead.has(id)));
      return;
    }
    case 'network.configured':
      state.network = withNetwork(state.network, record.body);
      return;
    case 'journal.doubted':
    case 'journal.acknowledged':
      return evolveDoubts(state, record);
    case 'checkpoint.written':
      return evolveCheckpointDigests(state, record.body.digests);
    case 'nri.plugin.registered':
    case 'nri.plugin.closed':
      return evolvePlugins(state, record);
    case 'effect.ended':
      // Who does not know what there is, is not asked about it.
      if (ended?.kind === 'SynchronizePlugin' && record.body.failure !== undefined) forgetPlugin(state, ended.plugin);
      return;
    case 'node.configured':
      state.podCidr = record.body.podCidr;
      return;
    default:
  }
}

type Network = NodeState['network'];

function withNetwork(
  network: Network,
  { handler, ...configured }: Extract<Sequenced, { type: 'network.configured' }>['body'],
): Network {
  if (handler !== undefined) return { ...network, handlers: { ...network.handlers, [handler]: configured } };
  return { ...configured, ...(network.handlers === undefined ? {} : { handlers: network.handlers }) };
}

/** What a handler's own directory said counts no longer when the configuration gives it another, or none. */
function withoutStrangers({ handlers, ...network }: Network, before: DaemonFacts | null, now: DaemonFacts): Network {
  const cniIn = (facts: DaemonFacts | null, name: string): RuntimeHandler['cni'] =>
    facts?.handlers.find((handler) => handler.name === name)?.cni;
  const own = Object.entries(handlers ?? {}).filter(([name]) => {
    const cni = cniIn(now, name);
    return cni !== undefined && sameJson(cni, cniIn(before, name));
  });
  return own.length === 0 ? network : { ...network, handlers: Object.fromEntries(own) };
}

/** What became of all that ran before. */
export const REBOOTED = 'the node was rebooted';

const exitByReboot = (finishedAtNs: Int64): ContainerExit => ({
  exitStatus: 255,
  finishedAtNs,
  reason: 'Unknown',
  message: REBOOTED,
});
