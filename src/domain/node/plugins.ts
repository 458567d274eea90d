/** What follows when an NRI plugin was told what there is, or when nobody waits for plugins any more. */
import { isAskedOfPlugins } from '../container/hooks.ts';
import { CREATIONS } from '../deciding/pod-failed.ts';
import { callsWaitingFor, type Turn, wake } from '../deciding/turn.ts';
import { isDoubted } from '../model/journal-doubt.ts';
import { type CallMethod, containerStream, sandboxStream } from '../model/records.ts';

/** Has creations that may have waited for it go on. With a journal that is doubted, only those that somebody asks for. */
export function wakeCreations(turn: Turn): void {
  const { facts, sandboxes, containers } = turn.state;
  if (facts?.nri === undefined) return;
  const wakeUnlessHeld = (stream: string, methods: readonly CallMethod[]): void => {
    if (!isDoubted(turn.state) || callsWaitingFor(turn, stream, methods).length > 0) wake(turn, stream);
  };
  for (const { id, phase, goal, nri } of sandboxes.values())
    if (phase === 'creating' && goal === 'run' && nri === undefined) wakeUnlessHeld(sandboxStream(id), CREATIONS);
  for (const container of containers.values())
    if (container.phase.kind === 'creating' && container.goal === 'run' && !isAskedOfPlugins(container))
      wakeUnlessHeld(containerStream(container.id), ['CreateContainer']);
}
