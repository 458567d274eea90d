/**
 * Replies that are waited for: each request goes out with an id, and its reply comes back with it, in any order. An entry
 * ends once, by its reply, by its time or with the connection, and nothing is kept of it then; what comes for it later
 * finds nobody. Knows nothing of how requests and replies travel; ids are the caller's to give.
 */
import { timerMs } from './timeout.ts';

export interface WaitOptions<Note> {
  /** What the caller has to know of the request until its reply is there. */
  readonly note?: Note;
  /** Without it the reply is waited for as long as the connection lives. `late` names what was waited for. */
  readonly bound?: { readonly timeoutMs: number; readonly late: () => Error };
}

export interface PendingReplies<Reply, Note = never> {
  /** Resolves with the reply to the request of this id, which must be a new one. Rejects at once after close. */
  readonly wait: (id: number, options?: WaitOptions<Note>) => Promise<Reply>;
  readonly resolve: (id: number, reply: Reply) => void;
  readonly reject: (id: number, error: Error) => void;
  readonly has: (id: number) => boolean;
  readonly noteOf: (id: number) => Note | undefined;
  readonly notes: () => readonly Note[];
  readonly size: () => number;
  /** Whoever waits now is told. */
  readonly failAll: (error: Error) => void;
  /** Whoever waits now is told, and whoever would wait later. */
  readonly close: (error: Error) => void;
}

interface Entry<Reply, Note> {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout | undefined;
  readonly note: Note | undefined;
}

export const createPendingReplies = <Reply, Note = never>(): PendingReplies<Reply, Note> => {
  const entries = new Map<number, Entry<Reply, Note>>();
  let closed: Error | null = null;

  const take = (id: number): Entry<Reply, Note> | undefined => {
    const entry = entries.get(id);
    if (entry === undefined) return undefined;
    entries.delete(id);
    clearTimeout(entry.timer);
    return entry;
  };

  const failAll = (error: Error): void => {
    for (const id of [...entries.keys()]) take(id)?.reject(error);
  };

  return {
    wait: (id, { note, bound } = {}) => {
      if (closed !== null) return Promise.reject(closed);
      return new Promise((resolve, reject) => {
        const timer = bound && setTimeout(() => take(id)?.reject(bound.late()), timerMs(bound.timeoutMs));
        entries.set(id, { resolve, reject, timer, note });
      });
    },
    resolve: (id, reply) => take(id)?.resolve(reply),
    reject: (id, error) => take(id)?.reject(error),
    has: (id) => entries.has(id),
    noteOf: (id) => entries.get(id)?.note,
    notes: () => [...entries.values()].flatMap(({ note }) => note ?? []),
    size: () => entries.size,
    failAll,
    close: (error) => {
      closed ??= error;
      failAll(error);
    },
  };
};
