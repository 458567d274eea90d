/** Which commands read a large journal, and how soon each has to answer. Data alone. */

export interface ReaderGoal {
  readonly words: readonly string[];
  /** Until its first line, and until its end; null: no goal. */
  readonly firstMs: number | null;
  readonly endMs: number | null;
}

const narrow = (...words: readonly string[]): ReaderGoal => ({
  words: ['history', '--utc', ...words],
  firstMs: 300,
  endMs: 1000,
});
const wide = (...words: readonly string[]): ReaderGoal => ({ ...narrow(...words), endMs: null });
const within = (endMs: number, ...words: readonly string[]): ReaderGoal => ({ words, firstMs: null, endMs });

/** What a container and a call are called that the journal knows; those of a made journal's middle. */
export interface Known {
  readonly containerId: string;
  readonly pod: string;
  readonly call: number;
  readonly middleSeq: number;
  /** The record that most others have to be folded for: as far behind a snapshot as any is. */
  readonly farthestSeq: number;
  /** When its middle was written, and how long ago that is, as people type it. */
  readonly middleTime: string;
  readonly middleAgo: string;
}

/** Of everything that a filter of `history` can be: what finds much, and what finds little or nothing. */
const WIDE = [['--exec'], ['--failed'], ['--label', 'app=web'], ['--method', 'ExecSync'], ['--code', 'OK']] as const;

const narrowFilters = ({ containerId, pod, middleTime, middleAgo }: Known): readonly (readonly string[])[] => [
  ['--pod', pod],
  ['--container', containerId],
  ['--namespace', 'kube-system'],
  ['--label', 'app=nobody'],
  ['--image', 'postgres'],
  ['--image', 'registry.shop.example/postgres:1.2'],
  ['--uid', '1001'],
  ['--executable', 'crictl'],
  ['--executable', '/usr/bin/nobody'],
  ['--method', 'RemoveImage'],
  ['--code', 'NOT_FOUND'],
  ['--text', 'OOMKilled'],
  ['--text', 'żółć'],
  ['--plugin', 'nobody'],
  ['--exec', '--uid', '1001'],
  ['--failed', '--namespace', 'kube-system'],
  ['--since', middleTime, '--uid', '1001'],
  ['--until', middleTime, '--uid', '1001'],
  ['--since', middleAgo, '--uid', '1001'],
];

export const readerGoals = (known: Known): readonly ReaderGoal[] => {
  const { containerId, pod, call, middleSeq, farthestSeq } = known;
  const bothWays = (filters: readonly (readonly string[])[], goal: typeof narrow): ReaderGoal[] =>
    filters.flatMap((words) => [goal(...words), goal(...words, '--reverse')]);
  return [
    ...bothWays([[], ...WIDE], wide),
    ...bothWays(narrowFilters(known), narrow),
    narrow('--limit', '20'),
    narrow('--failed', '--limit', '20'),
    within(500, 'why', containerId),
    within(500, 'why', String(call)),
    // Gone for long, and never there: nothing but records tells of them.
    within(500, 'why', pod),
    within(500, 'why', 'nobody'),
    within(1000, 'at', String(middleSeq), 'get', 'pods'),
    within(1000, 'at', String(farthestSeq), 'get', 'pods'),
    within(1000, 'sql', 'SELECT namespace, count(*) FROM calls GROUP BY 1'),
    within(4000, 'verify'),
  ];
};
