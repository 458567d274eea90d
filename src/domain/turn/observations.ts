/**
 * Which observations say something new. Exits come late, twice or out of order (C3), so one that is already written
 * down, or that is of an object long gone, makes no record; whoever observed it is answered all the same.
 */
import type { CniConfList } from '../model/cni.ts';
import { sameJson } from '../values/json.ts';
import { awaitsExit, mayRunOutOfMemory } from '../model/container-state.ts';
import { containerStream, imageStream, type Input, NODE_STREAM, sandboxStream } from '../model/records.ts';
import { isPresent } from '../nri/plugins.ts';
import { isKnownDoubt } from '../model/journal-doubt.ts';
import type { NodeState } from '../model/state.ts';
import type { Observation } from '../model/observation.ts';

export interface News {
  readonly stream: string;
  readonly input: Input;
}

export function newsIn(state: NodeState, observation: Observation): News | null {
  switch (observation.kind) {
    case 'TaskExited':
      return exitNews(state, observation);
    case 'TaskOomed': {
      const container = state.containers.get(observation.containerId);
      if (container === undefined || !mayRunOutOfMemory(container)) return null;
      return { stream: containerStream(container.id), input: { type: 'task.oomed', body: {} } };
    }
    case 'ShimLost': {
      const sandbox = state.sandboxes.get(observation.podSandboxId);
      // A shim that is being stopped ends its connection too.
      if (sandbox === undefined || sandbox.shimContact === 'gone' || sandbox.steps.shim !== 'done') return null;
      return { stream: sandboxStream(sandbox.id), input: { type: 'shim.lost', body: {} } };
    }
    case 'LogKeeperStarted': {
      const { kind: _, ...body } = observation;
      return { stream: NODE_STREAM, input: { type: 'logkeeper.started', body } };
    }
    case 'LogKeeperEnded': {
      const { kind: _, ...body } = observation;
      return { stream: NODE_STREAM, input: { type: 'logkeeper.ended', body } };
    }
    case 'ContentDamaged': {
      const { imageId, damaged } = observation;
      // What is on its way out need not be whole.
      if (state.images.get(imageId)?.removing !== false) return null;
      return { stream: imageStream(imageId), input: { type: 'content.damaged', body: damaged } };
    }
    case 'JournalDoubted':
      if (isKnownDoubt(state, observation.doubt)) return null;
      return { stream: NODE_STREAM, input: { type: 'journal.doubted', body: observation.doubt } };
    case 'NodeNoted':
      return { stream: NODE_STREAM, input: observation.note };
    case 'NriNoted': {
      const { note } = observation;
      // Who is closed twice, or was never recorded, is no news.
      if (isPresent(state, note.body.id) !== (note.type === 'nri.plugin.closed')) return null;
      return { stream: NODE_STREAM, input: note };
    }
    case 'NetworkConfigured': {
      const { handler, problem } = observation;
      const network = { confList: observation.confList as CniConfList | null, problem };
      const { handlers = {}, ...main } = state.network;
      if (sameJson(handler === undefined ? main : handlers[handler], network)) return null;
      const body = { ...network, ...(handler === undefined ? {} : { handler }) };
      return { stream: NODE_STREAM, input: { type: 'network.configured', body } };
    }
  }
}

function exitNews(
  state: NodeState,
  { containerId, execId, exit }: Extract<Observation, { kind: 'TaskExited' }>,
): News | null {
  // An exec's exit is its effect's outcome.
  if (execId !== null) return null;
  const input: Input = { type: 'task.exited', body: { exit } };
  const container = state.containers.get(containerId);
  if (container !== undefined)
    return awaitsExit(container, exit.pid) ? { stream: containerStream(containerId), input } : null;
  const sandbox = state.sandboxes.get(containerId);
  if (sandbox === undefined || sandbox.taskExit !== null) return null;
  if (sandbox.task !== null && sandbox.task.pid !== exit.pid) return null;
  if (sandbox.steps.task === undefined || sandbox.steps.task === 'undone') return null;
  return { stream: sandboxStream(containerId), input };
}
