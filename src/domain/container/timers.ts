/** What a container's timers lead to. */
import { containerStream } from '../model/records.ts';
import type { Container } from '../model/state.ts';
import { emit, type Turn } from '../deciding/turn.ts';
import { advanceContainer } from './advance.ts';

/** Nobody came back for it within two minutes (C5). */
export function undoUnclaimedContainer(turn: Turn, container: Container): void {
  if (container.claimed || container.goal !== 'run') return;
  const message = 'Nobody asked for the container after its creation; it was undone.';
  emit(turn, containerStream(container.id), {
    type: 'container.failed',
    body: { failure: { reason: 'Cancelled', message } },
  });
  advanceContainer(turn, container.id);
}

export function retryOwedContainer(turn: Turn, container: Container): void {
  if (container.owedFailure !== null || container.kill === 'futile')
    emit(turn, containerStream(container.id), { type: 'undo.retried', body: {} });
  advanceContainer(turn, container.id);
}
