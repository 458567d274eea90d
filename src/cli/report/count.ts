/**
 * Counting: what is alike is one group, and the slowest are kept one by one. Memory is bounded by the number of groups,
 * however much is counted. Knows neither calls nor tables.
 */

export type Field = string | number | null;
/** What those of a group have in common. */
export type Key = Readonly<Record<string, Field>>;

export interface Item {
  /** The day or hour that it belongs to; null: periods are not told apart. */
  readonly period: string | null;
  readonly key: Key;
  readonly atNs: bigint;
  readonly failed: boolean;
  readonly answered: boolean;
  readonly durationMs: number | null;
  readonly sizeBytes: number | null;
}

export interface Group {
  readonly period: string | null;
  readonly key: Key;
  readonly count: number;
  readonly failed: number;
  readonly unanswered: number;
  /** Of how many the duration is known, their sum and the longest. */
  readonly timed: number;
  readonly totalMs: number;
  readonly maxMs: number;
  /** Of how many the size is known, and their sum. */
  readonly sized: number;
  readonly sizeBytes: number;
  readonly firstNs: bigint;
  readonly lastNs: bigint;
}

export interface Collector {
  readonly add: (item: Item) => void;
  /** Those of a period one after another, the most important first. */
  readonly groups: () => readonly Group[];
  readonly isEmpty: () => boolean;
  /** How many items belonged to groups that there was no room for. */
  readonly beyond: () => number;
}

const groupOf = ({ period, key, atNs, failed, answered, durationMs, sizeBytes }: Item): Group => ({
  period,
  key,
  count: 1,
  failed: failed ? 1 : 0,
  unanswered: answered ? 0 : 1,
  timed: durationMs === null ? 0 : 1,
  totalMs: durationMs ?? 0,
  maxMs: durationMs ?? 0,
  sized: sizeBytes === null ? 0 : 1,
  sizeBytes: sizeBytes ?? 0,
  firstNs: atNs,
  lastNs: atNs,
});

const earlier = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const later = (a: bigint, b: bigint): bigint => (a > b ? a : b);

const joined = (a: Group, b: Group): Group => ({
  period: a.period,
  key: a.key,
  count: a.count + b.count,
  failed: a.failed + b.failed,
  unanswered: a.unanswered + b.unanswered,
  timed: a.timed + b.timed,
  totalMs: a.totalMs + b.totalMs,
  maxMs: Math.max(a.maxMs, b.maxMs),
  sized: a.sized + b.sized,
  sizeBytes: a.sizeBytes + b.sizeBytes,
  // A clock may have been set back.
  firstNs: earlier(a.firstNs, b.firstNs),
  lastNs: later(a.lastNs, b.lastNs),
});

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const byPeriod = (a: Group, b: Group): number => compare(a.period ?? '', b.period ?? '');

const identityOf = (period: string | null, key: Key): string => JSON.stringify([period, ...Object.values(key)]);

/** Groups by key and period, the largest of a period first; before them those whose rank is less. */
export const createTally = (groupsMax: number, rankOf: (key: Key) => number = () => 0): Collector => {
  const groups = new Map<string, Group>();
  let beyond = 0;
  return {
    add(item) {
      const identity = identityOf(item.period, item.key);
      const known = groups.get(identity);
      if (known === undefined && groups.size >= groupsMax) beyond += 1;
      else groups.set(identity, known === undefined ? groupOf(item) : joined(known, groupOf(item)));
    },
    groups: () =>
      [...groups]
        .sort(
          ([one, a], [other, b]) =>
            byPeriod(a, b) || rankOf(a.key) - rankOf(b.key) || b.count - a.count || compare(one, other),
        )
        .map(([, group]) => group),
    isEmpty: () => groups.size === 0,
    beyond: () => beyond,
  };
};

const byDuration = (a: Group, b: Group): number => b.maxMs - a.maxMs;

/** The so many of each period that took longest, each a group of its own. */
export const createSlowest = (limit: number): Collector => {
  const slowest = new Map<string | null, Group[]>();
  return {
    add(item) {
      if (item.durationMs === null) return;
      const kept = slowest.get(item.period) ?? [];
      kept.push(groupOf(item));
      // Sorted once in a while: at every item it would take as long as there are items.
      slowest.set(item.period, kept.length < 2 * limit ? kept : kept.sort(byDuration).slice(0, limit));
    },
    groups: () =>
      [...slowest.values()]
        .flatMap((kept) => kept.toSorted(byDuration).slice(0, limit))
        .sort((a, b) => byPeriod(a, b) || byDuration(a, b)),
    isEmpty: () => slowest.size === 0,
    beyond: () => 0,
  };
};

/** The first so many groups of each period, and how many are left out. */
export const firstOfEach = (
  groups: readonly Group[],
  limit: number,
): { readonly groups: readonly Group[]; readonly left: number } => {
  const seen = new Map<string | null, number>();
  const first = groups.filter(({ period }) => {
    const count = (seen.get(period) ?? 0) + 1;
    seen.set(period, count);
    return count <= limit;
  });
  return { groups: first, left: groups.length - first.length };
};
