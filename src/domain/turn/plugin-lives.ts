/**
 * What the journal may prune of the node's stream, which is never closed: connections of NRI plugins that are over. Such a
 * one leaves nothing in the state, so all of its records may go, at once (C11): without its end it would be there for ever.
 */
import type { BodyOf, RecordType } from '../model/records.ts';
import { NODE_STREAM } from '../model/records.ts';

/** The records of which the body is looked at. */
export const TOLD_OF_PLUGINS: readonly RecordType[] = ['nri.plugin.registered', 'nri.plugin.closed'];

interface Life {
  readonly registeredSeq: number;
  readonly seqs: number[];
  /** Requests to tell it what there is that have no outcome. */
  readonly underWay: Set<number>;
  isClosed: boolean;
}

/** By the plugin's id, which no other connection has. Those that are not over among the records that were looked at. */
export type PluginLives = Map<string, Life>;

interface Noted {
  readonly seq: number;
  readonly type: string;
  readonly stream: string;
  readonly cause: number | null;
  readonly body: string;
}

/** Looks at the next record, in order: the seqs of all that is over with it, itself included or not. */
export function overWith(lives: PluginLives, { seq, type, stream, cause, body }: Noted): readonly number[] {
  if (stream !== NODE_STREAM) return [];
  switch (type) {
    case 'nri.plugin.registered': {
      const { id } = JSON.parse(body) as BodyOf<'nri.plugin.registered'>;
      lives.set(id, { registeredSeq: seq, seqs: [seq], underWay: new Set(), isClosed: false });
      return [];
    }
    case 'nri.plugin.closed': {
      const { id } = JSON.parse(body) as BodyOf<'nri.plugin.closed'>;
      const life = lives.get(id);
      if (life === undefined) return [];
      life.seqs.push(seq);
      life.isClosed = true;
      return unlessOpen(lives, id, life);
    }
    case 'effects.requested':
      for (const { registeredSeq, seqs, underWay } of lives.values())
        if (registeredSeq === cause) {
          seqs.push(seq);
          underWay.add(seq);
        }
      return [];
    case 'effect.ended':
      for (const [id, life] of lives)
        if (cause !== null && life.underWay.delete(cause)) {
          life.seqs.push(seq);
          return unlessOpen(lives, id, life);
        }
      return [];
    case 'daemon.started': {
      // Whoever was there has to come again.
      const over = [...lives.values()].flatMap(({ seqs }) => seqs);
      lives.clear();
      return over;
    }
    default:
      return [];
  }
}

function unlessOpen(lives: PluginLives, id: string, { seqs, underWay, isClosed }: Life): readonly number[] {
  if (!isClosed || underWay.size > 0) return [];
  lives.delete(id);
  return seqs;
}
