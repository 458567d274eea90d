/**
 * Every figure that is compared: its name, its unit, which way is better, and the goal where there is one. The only
 * place that knows the goals; how a figure is measured is not said here.
 */
import type { Better, Comparison } from './statistics.ts';

export interface Goal {
  readonly text: string;
  readonly isMet: (comparison: Comparison) => boolean;
  /** It says nothing of a runtime that was measured alone. */
  readonly isBesidePeer: boolean;
}

export interface Metric {
  readonly name: string;
  readonly unit: 'ms' | '/s' | 'MB/s' | 'KiB' | 'MiB' | 'times' | '% of a processor';
  readonly better: Better;
  readonly goal?: Goal;
  /** containerd has nothing of the kind. */
  readonly isOursAlone?: boolean;
}

const ahead = (atLeast: number): Goal => ({
  text: `ratio at least ${atLeast}`,
  isMet: (comparison) => comparison.ahead >= atLeast,
  isBesidePeer: true,
});

const timesThePeer = (atMost: number): Goal => ({
  text: `at most ${atMost} times containerd's`,
  isMet: ({ ours, peer }) => ours <= atMost * peer,
  isBesidePeer: true,
});

const noMoreThan = (atMost: number, unit: Metric['unit']): Goal => ({
  text: `at most ${atMost} ${unit}`,
  isMet: ({ ours }) => ours <= atMost,
  isBesidePeer: false,
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

const throughput = (name: string): Metric => ({ name, unit: 'MB/s', better: 'more', goal: ahead(1) });

/** By key, in the order of the table. */
export const metrics = {
  runPodSandbox: duration('RunPodSandbox'),
  createContainer: duration('CreateContainer', ahead(1)),
  startContainer: duration('StartContainer', ahead(1.5)),
  podReady: duration('PodReady (the three above)', ahead(2.2)),
  stopContainer: duration('StopContainer'),
  removeContainer: duration('RemoveContainer'),
  stopAndRemove: duration('StopContainer and RemoveContainer', ahead(1.5)),
  stopPodSandbox: duration('StopPodSandbox'),
  removePodSandbox: duration('RemovePodSandbox'),
  podsSerial: rate('pod lifecycles, one at a time'),
  podsParallel: rate('pod lifecycles, 8 at once', ahead(2)),
  podReadyParallel: duration('PodReady, 8 at once', ahead(2)),
  execSync: duration('ExecSync', ahead(0.95)),
  execSession: duration('session of exec, from Exec to its end', ahead(1)),
  forwardedGet: duration('small file by a forwarded port', ahead(1)),
  execOut: throughput('session of exec, stdout'),
  execIn: throughput('session of exec, stdin'),
  forward: throughput('large file by a forwarded port'),
  logsShortOne: throughput('logs, lines of 80 bytes, one writer'),
  logsShortMany: throughput('logs, lines of 80 bytes, 20 writers'),
  logsLongOne: throughput('logs, lines of 8 KiB, one writer'),
  logsLongMany: throughput('logs, lines of 8 KiB, 20 writers'),
  logsListContainers: duration('ListContainers meanwhile, p99', noMoreThan(50, 'ms')),
  logsPeak: { name: 'largest process after that, peak RSS', unit: 'MiB', better: 'less', goal: noMoreThan(300, 'MiB') },
  memory: { name: 'memory, shared pages in full', unit: 'MiB', better: 'less', goal: timesThePeer(1) },
  pss: { name: 'memory, PSS', unit: 'MiB', better: 'less' },
  version: rate('Version'),
  listContainers: rate('ListContainers', ahead(1.3)),
  listPodSandbox: rate('ListPodSandbox'),
  containerStatus: rate('ContainerStatus', ahead(0.95)),
  listContainerStats: rate('ListContainerStats'),
  restart: duration('restart after kill -9', noMoreThan(600, 'ms')),
  idle: {
    name: 'idle for a minute',
    unit: '% of a processor',
    better: 'less',
    goal: noMoreThan(0.1, '% of a processor'),
  },
  kubeletPercent: { name: 'what a kubelet asks all day', unit: '% of a processor', better: 'less', goal: ahead(1) },
  kubeletList: duration('ListContainers meanwhile'),
  kubeletStats: duration('ListContainerStats meanwhile'),
  probesPercent: {
    name: 'the same with 5 probes by exec a second',
    unit: '% of a processor',
    better: 'less',
    goal: ahead(1),
  },
  probesExec: duration('a probe by ExecSync meanwhile'),
  loopDelay: {
    name: 'event loop, 8 pod lives at once, delay p99.9',
    unit: 'ms',
    better: 'less',
    goal: noMoreThan(20, 'ms'),
    isOursAlone: true,
  },
  fullRunPodSandbox: duration("RunPodSandbox of a kubelet's pod"),
  fullCreateContainer: duration('CreateContainer in it'),
  fullStartContainer: duration('StartContainer in it'),
  fullPodReady: duration('until it runs, with three containers'),
  fullPodGone: duration('until it is gone'),
  fullPodReadyParallel: duration('until it runs, 8 at once'),
  fullPodsParallel: rate('lives of such pods, 8 at once'),
  fullPodWritten: { name: 'written to the disk for such a life', unit: 'KiB', better: 'less' },
  rarePodReady: duration('PodReady after a quiet half minute'),
  rareSession: duration('session of exec then'),
  rareStopAndRemove: duration('StopContainer and RemoveContainer then'),
  rareStopPodSandbox: duration('StopPodSandbox then'),
  memoryAfterLives: { name: 'memory after pod lives', unit: 'MiB', better: 'less' },
  memoryGrowth: { name: 'that, beside before them', unit: 'times', better: 'less', goal: noMoreThan(1.2, 'times') },
  exitToEvent: duration('exit to CONTAINER_STOPPED, 200 at once, p99', ahead(1)),
  exitsTold: duration('200 exits at once, all of them told'),
  densityAll: { name: 'a pod of many, all its processes', unit: 'MiB', better: 'less', goal: timesThePeer(1) },
  densityRuntime: { name: 'of that the daemon and its helpers', unit: 'MiB', better: 'less' },
  densityShims: { name: 'of that shims', unit: 'MiB', better: 'less' },
  densityContainers: { name: 'of that processes in containers', unit: 'MiB', better: 'less' },
  densityReady: duration('PodReady while they are made, 8 at once'),
  densityList: duration('ListContainers meanwhile, p99', noMoreThan(30, 'ms')),
  densityIdle: {
    name: 'idle for a minute with them',
    unit: '% of a processor',
    better: 'less',
    goal: noMoreThan(0.5, '% of a processor'),
  },
  densityRestart: duration('restart after kill -9 with them', noMoreThan(1500, 'ms')),
  rebootList: duration('first right List after a reboot'),
  rebootRunning: duration('until all pods run again, 8 at once'),
  imagePullAlone: duration('pull of a small image on a base that is there, alone'),
  imagePullApart: duration('the same, now and then'),
  imagePull: duration('the same, one right after the other'),
  imagePullAgain: duration('pull of an image that is there'),
  imageStatus: duration('ImageStatus'),
  imageList: duration('ListImages'),
  imageFsInfo: duration('ImageFsInfo'),
  imageRemove: duration('RemoveImage'),
  pullLayers: duration('pull of 10 layers, gzip', ahead(1.5)),
  pullFiles: duration('pull of 40,000 small files, gzip', ahead(1.5)),
  pullLayersZstd: duration('pull of 10 layers, zstd', ahead(1.5)),
  pullFilesZstd: duration('pull of 40,000 small files, zstd', ahead(1.5)),
  pullOneNew: duration('pull of 10 layers, one of them new', ahead(2)),
  pullFive: duration('pull of 5 images at once'),
  pullMany: duration('pull of 60 small layers, gzip'),
  pullLayersBusy: duration('10 layers, gzip, disk busy', ahead(1.5)),
  pullFilesBusy: duration('40,000 small files, gzip, disk busy', ahead(1.5)),
  pullLayersZstdBusy: duration('10 layers, zstd, disk busy', ahead(1.5)),
  pullFilesZstdBusy: duration('40,000 small files, zstd, disk busy', ahead(1.5)),
  pullOneNewBusy: duration('10 layers, one of them new, disk busy', ahead(1.5)),
  pullFiveBusy: duration('5 images at once, disk busy'),
  pullManyBusy: duration('60 small layers, gzip, disk busy'),
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricKey = keyof typeof metrics;

/** What one measurement of one runtime gave. */
export type Figures = Readonly<Partial<Record<MetricKey, number>>>;
