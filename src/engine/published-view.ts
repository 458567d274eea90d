/**
 * What has been published: a fold of durable records, and the stream of what changed it, to which all subscribe who
 * follow what happens. It knows nothing of who they are. They hear synchronously, in the order in which they came, when
 * the state shows the change and before any reply or effect that follows from it (C1, C2); whoever can't keep up holds
 * what it needs itself, within bounds. An exception of a subscriber reaches neither the others nor the engine: rxjs
 * hands it to its onUnhandledError in a turn of its own (src/daemon/subscribers.ts).
 */
import { merge, Subject } from 'rxjs';
import type { RecordType, Sequenced } from '../domain/model/records.ts';
import type { Changes, ReadModel, RecordOf } from './ports.ts';

/** A projection: folds durable records into what it shows. */
interface Fold extends Omit<ReadModel, keyof Changes> {
  /** seq of the last record applied. */
  readonly seq: () => number;
  readonly apply: (records: readonly Sequenced[]) => void;
}

export interface PublishedView extends ReadModel {
  /** seq of the last record published. */
  readonly seq: () => number;
  /** Takes the durable records of a turn: folds them, then tells of them. A fold that throws tells nobody. */
  readonly publish: (records: readonly Sequenced[]) => void;
}

export function publishedView({ apply, ...shown }: Fold): PublishedView {
  const { changes, recordsOf, tell } = createChanges();
  return {
    ...shown,
    changes,
    recordsOf,
    publish(records) {
      apply(records);
      tell(records);
    },
  };
}

/** The stream by itself, and what feeds it. */
export function createChanges(): Changes & { readonly tell: (records: readonly Sequenced[]) => void } {
  const changes = new Subject<readonly Sequenced[]>();
  /** Of the types that somebody asked for: records of others cost a look-up, however many listen. */
  const byType = new Map<RecordType, Subject<Sequenced>>();

  function ofType<T extends RecordType>(type: T): Subject<RecordOf<T>> {
    const records = byType.get(type) ?? new Subject<Sequenced>();
    byType.set(type, records);
    // Nothing but records of this type go through it; the compiler can't see that.
    return records as unknown as Subject<RecordOf<T>>;
  }

  return {
    changes: changes.asObservable(),
    recordsOf: (...types) => merge(...types.map(ofType)),
    tell(records) {
      changes.next(records);
      for (const record of records) byType.get(record.type)?.next(record);
    },
  };
}
