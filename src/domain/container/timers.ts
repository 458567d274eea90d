/** What a container's timers lead to. */
import { containerStream } from '../model/records.ts';
import { stopOf } from '../model/container-state.ts';
import type { Container } from '../model/state.ts';
import { emit, type Turn } from '../deciding/turn.ts';
import { advanceContainer } from './advance.ts';

/** Nobody came back for it within two minutes (C5). */
export function undoUnclaimedContainer(turn: Turn, container: Container): void {
  const { phase } = container;
  if (phase.kind !== 'created' || phase.claimed || container.goal !== 'run') return;
  const message = 'Nobody asked for the container after its creation; it was undone.';
  emit(turn, containerStream(container.id), {
    type: 'container.failed',
    body: { failure: { reason: 'Cancelled', message } },
  });
  advanceContainer(turn, container.id);
}

export function retryOwedContainer(turn: Turn, container: Container): void {
  if (container.owedFailure !== null || stopOf(container)?.kill === 'futile')
    emit(turn, containerStream(container.id), { type: 'undo.retried', body: {} });
  advanceContainer(turn, container.id);
}
