/** What `scribe why` answers: data, before it is laid out for people or written as JSON. Types only. */
import type { Subject } from '../../domain/model/records.ts';
import type { Style } from '../table.ts';

/** A line beside the answer: what else is known of the thing. */
export interface Fact {
  readonly name: string;
  readonly text: string;
}

/** A record that is part of the chain of causes, as a sentence. */
export interface Link {
  readonly seq: number;
  readonly atNs: bigint;
  readonly text: string;
  /** null: it took no time that is known. */
  readonly tookNs: bigint | null;
  readonly style: Style;
}

export interface Answer {
  /** What was asked about; of a call, its id is the number of its first record. */
  readonly about: Subject & { readonly name: string };
  /** One sentence that names the true cause. */
  readonly headline: string;
  readonly facts: readonly Fact[];
  readonly chain: readonly Link[];
}
