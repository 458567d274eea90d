/** In which order GetContainerEvents may tell of one object: made, started, stopped, deleted, each before the next. */
import type { Node, ToldEvent } from './words.ts';

const RANK: Readonly<Record<string, number>> = {
  CONTAINER_CREATED_EVENT: 0,
  CONTAINER_STARTED_EVENT: 1,
  CONTAINER_STOPPED_EVENT: 2,
  CONTAINER_DELETED_EVENT: 3,
};

const STOPPED = 'CONTAINER_STOPPED_EVENT';
/** A pod that falls over by itself is told of, and once more when it is taken down. */
const STOPS_MAX = 2;

export function checkNextEvent(
  node: Node,
  before: readonly ToldEvent[],
  event: ToldEvent,
  fail: (message: string) => never,
): void {
  const last = before.at(-1);
  const rank = RANK[event.type] ?? -1;
  if (rank < 0) fail(`There is no event ${event.type}.`);
  if (last === undefined) {
    // What was undone before it was shown is told of by its end alone.
    if (event.type !== 'CONTAINER_CREATED_EVENT' && event.type !== 'CONTAINER_DELETED_EVENT' && event.type !== STOPPED)
      fail(`The first event of ${event.id} is ${event.type}.`);
    return;
  }
  const isAgain = event.type === STOPPED && before.filter(({ type }) => type === STOPPED).length < STOPS_MAX;
  if (rank < (RANK[last.type] ?? 0) || (rank === RANK[last.type] && !isAgain))
    fail(`${event.type} of ${event.id} comes after ${last.type}.`);
  if (event.atNs < last.atNs && !node.clockWasSet())
    fail(`${event.type} of ${event.id} is earlier than the event before it.`);
}
