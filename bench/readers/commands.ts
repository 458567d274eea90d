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
}

export const readerGoals = ({ containerId, pod, call, middleSeq }: Known): readonly ReaderGoal[] => [
  wide(),
  wide('--reverse'),
  wide('--exec'),
  wide('--failed'),
  wide('--label', 'app=web'),
  narrow('--pod', pod),
  narrow('--container', containerId),
  narrow('--namespace', 'kube-system'),
  narrow('--image', 'postgres'),
  narrow('--uid', '1001'),
  narrow('--uid', '1001', '--reverse'),
  narrow('--executable', 'crictl'),
  narrow('--method', 'RemoveImage'),
  narrow('--code', 'NOT_FOUND'),
  narrow('--text', 'OOMKilled'),
  narrow('--text', 'żółć'),
  narrow('--plugin', 'nobody'),
  narrow('--since', '1h', '--uid', '1001'),
  within(500, 'why', containerId),
  within(500, 'why', String(call)),
  within(1000, 'at', String(middleSeq), 'get', 'pods'),
  within(1000, 'sql', 'SELECT namespace, count(*) FROM calls GROUP BY 1'),
  within(4000, 'verify'),
];
