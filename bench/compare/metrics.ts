/**
 * Every figure that is compared: its name, its unit, which way is better, and the goal where there is one. The only
 * place that knows the goals; how a figure is measured is not said here.
 */
import type { Better, Comparison } from './statistics.ts';

interface Goal {
  readonly text: string;
  readonly isMet: (comparison: Comparison) => boolean;
}

export interface Metric {
  readonly name: string;
  readonly unit: 'ms' | '/s' | 'MiB';
  readonly better: Better;
  readonly goal?: Goal;
}

const ahead = (atLeast: number): Goal => ({
  text: `ratio at least ${atLeast}`,
  isMet: (comparison) => comparison.ahead >= atLeast,
});

const timesThePeer = (atMost: number): Goal => ({
  text: `at most ${atMost} times containerd's`,
  isMet: ({ ours, peer }) => ours <= atMost * peer,
});

const noMoreThan = (atMost: number, unit: Metric['unit']): Goal => ({
  text: `at most ${atMost} ${unit}`,
  isMet: ({ ours }) => ours <= atMost,
});

const duration = (name: string, goal?: Goal): Metric => ({
  name,
  unit: 'ms',
  better: 'less',
  ...(goal === undefined ? {} : { goal }),
});

const rate = (name: string, goal?: Goal): Metric => ({
  name,
  unit: '/s',
  better: 'more',
  ...(goal === undefined ? {} : { goal }),
});

/** By key, in the order of the table. */
export const metrics = {
  runPodSandbox: duration('RunPodSandbox', ahead(1.3)),
  createContainer: duration('CreateContainer'),
  startContainer: duration('StartContainer'),
  podReady: duration('PodReady (the three above)', ahead(1.2)),
  stopContainer: duration('StopContainer'),
  removeContainer: duration('RemoveContainer'),
  stopPodSandbox: duration('StopPodSandbox'),
  removePodSandbox: duration('RemovePodSandbox'),
  podsSerial: rate('pod lifecycles, one at a time'),
  podsParallel: rate('pod lifecycles, 8 at once', ahead(0.95)),
  podReadyParallel: duration('PodReady, 8 at once'),
  execSync: duration('ExecSync', ahead(0.95)),
  memory: { name: 'memory, shared pages in full', unit: 'MiB', better: 'less', goal: timesThePeer(1.6) },
  pss: { name: 'memory, PSS', unit: 'MiB', better: 'less' },
  version: rate('Version'),
  listContainers: rate('ListContainers', ahead(1.3)),
  listPodSandbox: rate('ListPodSandbox'),
  containerStatus: rate('ContainerStatus', ahead(0.95)),
  listContainerStats: rate('ListContainerStats'),
  restart: duration('restart after kill -9', noMoreThan(600, 'ms')),
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricKey = keyof typeof metrics;

/** What one measurement of one runtime gave. */
export type Figures = Readonly<Partial<Record<MetricKey, number>>>;
