/**
 * The metrics of pods and containers that kubelet exposes in cAdvisor's place: one table from which both the descriptors
 * and the metrics are made, so that label values are always as many as label keys. Values are whole numbers, as the
 * contract has them: seconds are cut. Every container has every family, 0 where there is no limit or the kernel keeps no
 * account, but for pressure and the CPU quota, where that would say something else.
 */
import { startedAtNsOf } from '../../domain/model/container-state.ts';
import type { Container, PodSandbox } from '../../domain/model/state.ts';
import type {
  CgroupFigure,
  CgroupFigures,
  DeviceCount,
  DeviceOperation,
  FileSystemFigures,
  InterfaceCounters,
} from '../stats/types.ts';
import * as wire from '../../wire/cri/api.ts';

/** Of every metric, in this order; those of its own follow. */
const LABEL_KEYS = ['container', 'id', 'image', 'name', 'namespace', 'pod'] as const;
const NS_PER_S = 1_000_000_000n;
/** The timestamp of what was found out for this call: kubelet then leaves the time to whoever scrapes it. */
const LIVE = '0';

/** What is known of a container when its metrics are made. */
export interface ContainerFigures {
  readonly container: Container;
  /** Of its cgroup; absent ones could not be read. */
  readonly figures: CgroupFigures;
  /** Of its writable layer, as it was counted last; undefined before that. */
  readonly layer: { readonly usedBytes: bigint; readonly countedAtNs: string } | undefined;
  /** That its writable layer is on; absent where it could not be read. */
  readonly fileSystem: FileSystemFigures | undefined;
  /** When the figures were read. */
  readonly seenAtNs: bigint;
}

export interface PodFigures {
  readonly sandbox: PodSandbox;
  readonly interfaces: readonly InterfaceCounters[];
  readonly containers: readonly ContainerFigures[];
}

interface Value {
  /** Of the metric's own label keys. */
  readonly labels: readonly string[];
  readonly value: bigint | undefined;
  /** When it was found out, ns since 1970; absent: for this call. */
  readonly atNs?: string;
}

interface Described<Source> {
  readonly name: string;
  readonly help: string;
  readonly type: wire.MetricType;
  readonly labelKeys: readonly string[];
  readonly valuesOf: (source: Source) => readonly Value[];
}

const { COUNTER, GAUGE } = wire.MetricType;

type Convert = (value: bigint) => bigint;

/** One that some containers do not have. */
const optionalFigure = (
  name: string,
  help: string,
  type: wire.MetricType,
  key: CgroupFigure,
  convert: Convert = (value) => value,
): Described<ContainerFigures> => ({
  name,
  help,
  type,
  labelKeys: [],
  valuesOf: ({ figures: { [key]: value } }) => (value === undefined ? [] : [{ labels: [], value: convert(value) }]),
});

const figure = (
  name: string,
  help: string,
  type: wire.MetricType,
  key: CgroupFigure,
  convert: Convert = (value) => value,
): Described<ContainerFigures> => ({
  ...optionalFigure(name, help, type, key),
  valuesOf: ({ figures: { [key]: value = 0n } }) => [{ labels: [], value: convert(value) }],
});

/** Of the file system that all writable layers share. */
const ofFileSystem = (
  name: string,
  help: string,
  key: 'limitBytes' | 'inodes' | 'inodesFree',
): Described<ContainerFigures> => ({
  name,
  help,
  type: GAUGE,
  labelKeys: ['device'],
  valuesOf: ({ fileSystem }) => [{ labels: [fileSystem?.device ?? ''], value: fileSystem?.[key] ?? 0n }],
});

/** A container that used no device has its layer's all the same. */
const countsOf = (
  counts: readonly DeviceCount[],
  fileSystem: FileSystemFigures | undefined,
): readonly DeviceCount[] => {
  if (counts.length > 0 || fileSystem === undefined) return counts;
  const { major, minor, device } = fileSystem;
  return (['Read', 'Write'] as const).map((operation) => ({ major, minor, device, operation, count: 0n }));
};

/** Of each block device. */
const ofDevices = (
  name: string,
  help: string,
  key: 'deviceBytes' | 'deviceTimes',
  wanted: DeviceOperation,
): Described<ContainerFigures> => ({
  name,
  help,
  type: COUNTER,
  labelKeys: ['device'],
  valuesOf: ({ figures, fileSystem }) =>
    countsOf(figures[key], fileSystem).flatMap(({ device, operation, count }) =>
      operation === wanted ? [{ labels: [device], value: count }] : [],
    ),
});

const wholeSeconds = (ns: bigint): bigint => ns / NS_PER_S;

const ofContainers: readonly Described<ContainerFigures>[] = [
  {
    name: 'container_cpu_usage_seconds_total',
    help: 'CPU time consumed, of all processors.',
    type: COUNTER,
    labelKeys: ['cpu'],
    valuesOf: ({ figures: { cpuNs = 0n } }) => [{ labels: ['total'], value: wholeSeconds(cpuNs) }],
  },
  figure('container_cpu_user_seconds_total', 'CPU time consumed by programs.', COUNTER, 'cpuUserNs', wholeSeconds),
  figure(
    'container_cpu_system_seconds_total',
    'CPU time consumed by the kernel.',
    COUNTER,
    'cpuSystemNs',
    wholeSeconds,
  ),
  figure('container_cpu_cfs_periods_total', 'Enforcement periods of the CPU quota.', COUNTER, 'cfsPeriods'),
  figure('container_cpu_cfs_throttled_periods_total', 'Periods that were throttled.', COUNTER, 'cfsThrottledPeriods'),
  figure('container_cpu_cfs_throttled_seconds_total', 'Time throttled.', COUNTER, 'cfsThrottledNs', wholeSeconds),
  figure('container_memory_usage_bytes', 'Memory in use, caches too.', GAUGE, 'memoryUsage'),
  figure('container_memory_working_set_bytes', 'Memory that cannot be had back at once.', GAUGE, 'memoryWorkingSet'),
  figure('container_memory_max_usage_bytes', 'Most memory that was in use.', GAUGE, 'memoryMaxUsage'),
  figure('container_memory_rss', 'Anonymous memory.', GAUGE, 'memoryRss'),
  figure('container_memory_cache', 'Page cache.', GAUGE, 'memoryCache'),
  figure('container_memory_mapped_file', 'Mapped files.', GAUGE, 'memoryMappedFile'),
  figure('container_memory_total_active_file_bytes', 'Page cache in use of late.', GAUGE, 'memoryActiveFile'),
  figure(
    'container_memory_total_inactive_file_bytes',
    'Page cache that is given up first.',
    GAUGE,
    'memoryInactiveFile',
  ),
  figure('container_memory_kernel_usage', 'Memory of the kernel.', GAUGE, 'memoryKernel'),
  figure('container_memory_swap', 'Swap in use.', GAUGE, 'memorySwap'),
  figure('container_memory_failcnt', 'How often the memory limit was hit.', COUNTER, 'memoryFailures'),
  {
    name: 'container_memory_failures_total',
    help: 'Page faults.',
    type: COUNTER,
    labelKeys: ['failure_type', 'scope'],
    valuesOf: ({ figures }) => [
      { labels: ['pgfault', 'hierarchy'], value: figures.pageFaults ?? 0n },
      { labels: ['pgmajfault', 'hierarchy'], value: figures.majorPageFaults ?? 0n },
    ],
  },
  figure('container_oom_events_total', 'Processes that were killed for want of memory.', COUNTER, 'oomKills'),
  figure('container_processes', 'Processes that run.', GAUGE, 'processes'),
  figure('container_threads', 'Threads that run.', GAUGE, 'threads'),
  figure('container_threads_max', 'Threads that may run; 0 without a limit.', GAUGE, 'threadsMax'),
  figure('container_file_descriptors', 'Open files of its processes.', GAUGE, 'fileDescriptors'),
  figure('container_sockets', 'Open sockets of its processes.', GAUGE, 'sockets'),
  {
    name: 'container_ulimits_soft',
    help: 'Soft limits of its first process.',
    type: GAUGE,
    labelKeys: ['ulimit'],
    valuesOf: ({ figures: { openFilesMax = 0n } }) => [{ labels: ['max_open_files'], value: openFilesMax }],
  },
  {
    name: 'container_blkio_device_usage_total',
    help: 'Bytes read, written and discarded, of each block device.',
    type: COUNTER,
    labelKeys: ['device', 'major', 'minor', 'operation'],
    valuesOf: ({ figures: { deviceBytes }, fileSystem }) =>
      countsOf(deviceBytes, fileSystem).map(({ device, major, minor, operation, count }) => ({
        labels: [device, major, minor, operation],
        value: count,
      })),
  },
  ofDevices('container_fs_reads_bytes_total', 'Bytes read from block devices.', 'deviceBytes', 'Read'),
  ofDevices('container_fs_writes_bytes_total', 'Bytes written to block devices.', 'deviceBytes', 'Write'),
  ofDevices('container_fs_reads_total', 'Reads from block devices.', 'deviceTimes', 'Read'),
  ofDevices('container_fs_writes_total', 'Writes to block devices.', 'deviceTimes', 'Write'),
  {
    name: 'container_fs_usage_bytes',
    help: 'Bytes of the writable layer; 0 before it is first counted.',
    type: GAUGE,
    labelKeys: ['device'],
    valuesOf: ({ layer, fileSystem }) => {
      const labels = [fileSystem?.device ?? ''];
      return [
        layer === undefined ? { labels, value: 0n } : { labels, value: layer.usedBytes, atNs: layer.countedAtNs },
      ];
    },
  },
  ofFileSystem('container_fs_limit_bytes', 'Size of the file system of writable layers.', 'limitBytes'),
  ofFileSystem('container_fs_inodes_total', 'Inodes of the file system of writable layers.', 'inodes'),
  ofFileSystem('container_fs_inodes_free', 'Inodes that are free on the file system of writable layers.', 'inodesFree'),
  {
    name: 'container_last_seen',
    help: 'When its figures were last read, in seconds since 1970.',
    type: GAUGE,
    labelKeys: [],
    valuesOf: ({ seenAtNs }) => [{ labels: [], value: wholeSeconds(seenAtNs) }],
  },
  {
    name: 'container_start_time_seconds',
    help: 'When it was started, in seconds since 1970.',
    type: GAUGE,
    labelKeys: [],
    valuesOf: ({ container }) => {
      const startedAtNs = startedAtNsOf(container);
      return [{ labels: [], value: startedAtNs === null ? undefined : wholeSeconds(BigInt(startedAtNs)) }];
    },
  },
  figure('container_spec_cpu_period', 'CPU period, in microseconds.', GAUGE, 'cpuPeriodUs'),
  optionalFigure(
    'container_spec_cpu_quota',
    'CPU quota in each period, in microseconds; absent without one.',
    GAUGE,
    'cpuQuotaUs',
  ),
  figure('container_spec_cpu_shares', 'CPU shares.', GAUGE, 'cpuShares'),
  figure('container_spec_memory_limit_bytes', 'Memory limit; 0 without one.', GAUGE, 'memoryLimit'),
  figure(
    'container_spec_memory_reservation_limit_bytes',
    'Memory that is left to it when the node runs short; 0 without such.',
    GAUGE,
    'memoryReservation',
  ),
  figure('container_spec_memory_swap_limit_bytes', 'Swap limit; 0 without one.', GAUGE, 'memorySwapLimit'),
  optionalFigure(
    'container_pressure_cpu_waiting_seconds_total',
    'Time that some waited for CPU.',
    COUNTER,
    'cpuWaitingNs',
    wholeSeconds,
  ),
  optionalFigure(
    'container_pressure_cpu_stalled_seconds_total',
    'Time that all waited for CPU.',
    COUNTER,
    'cpuStalledNs',
    wholeSeconds,
  ),
  optionalFigure(
    'container_pressure_memory_waiting_seconds_total',
    'Time that some waited for memory.',
    COUNTER,
    'memoryWaitingNs',
    wholeSeconds,
  ),
  optionalFigure(
    'container_pressure_memory_stalled_seconds_total',
    'Time that all waited for memory.',
    COUNTER,
    'memoryStalledNs',
    wholeSeconds,
  ),
  optionalFigure(
    'container_pressure_io_waiting_seconds_total',
    'Time that some waited for devices.',
    COUNTER,
    'ioWaitingNs',
    wholeSeconds,
  ),
  optionalFigure(
    'container_pressure_io_stalled_seconds_total',
    'Time that all waited for devices.',
    COUNTER,
    'ioStalledNs',
    wholeSeconds,
  ),
];

const counters = (
  name: string,
  help: string,
  valueOf: (counted: InterfaceCounters) => bigint,
): Described<PodFigures> => ({
  name,
  help,
  type: COUNTER,
  labelKeys: ['interface'],
  valuesOf: ({ interfaces }) => interfaces.map((counted) => ({ labels: [counted.name], value: valueOf(counted) })),
});

const ofPods: readonly Described<PodFigures>[] = [
  counters('container_network_receive_bytes_total', 'Bytes received.', ({ rxBytes }) => rxBytes),
  counters('container_network_receive_packets_total', 'Packets received.', ({ rxPackets }) => rxPackets),
  counters(
    'container_network_receive_packets_dropped_total',
    'Packets dropped on receipt.',
    ({ rxDropped }) => rxDropped,
  ),
  counters('container_network_receive_errors_total', 'Errors on receipt.', ({ rxErrors }) => rxErrors),
  counters('container_network_transmit_bytes_total', 'Bytes sent.', ({ txBytes }) => txBytes),
  counters('container_network_transmit_packets_total', 'Packets sent.', ({ txPackets }) => txPackets),
  counters(
    'container_network_transmit_packets_dropped_total',
    'Packets dropped when sent.',
    ({ txDropped }) => txDropped,
  ),
  counters('container_network_transmit_errors_total', 'Errors when sending.', ({ txErrors }) => txErrors),
];

/** The same for as long as the daemon runs. */
export const metricDescriptors: readonly wire.MetricDescriptor[] = [...ofContainers, ...ofPods].map(
  ({ name, help, labelKeys }) => ({ name, help, labelKeys: [...LABEL_KEYS, ...labelKeys] }),
);

const metricsOf = <Source>(
  table: readonly Described<Source>[],
  source: Source,
  labels: Readonly<Record<(typeof LABEL_KEYS)[number], string>>,
): wire.Metric[] =>
  table.flatMap(({ name, type, valuesOf }) =>
    valuesOf(source).flatMap(({ labels: own, value, atNs = LIVE }) =>
      value === undefined || value < 0n
        ? []
        : [
            {
              name,
              timestamp: atNs,
              metricType: type,
              labelValues: [...LABEL_KEYS.map((key) => labels[key]), ...own],
              value: { value: String(value) },
            },
          ],
    ),
  );

/** The container label of a pod's own metrics is empty, as cAdvisor has it. */
export const podSandboxMetrics = (pod: PodFigures): wire.PodSandboxMetrics => {
  const { sandbox, containers } = pod;
  const { name = '', namespace = '' } = sandbox.config.metadata ?? {};
  const labels = { container: '', id: sandbox.id, image: '', name: sandbox.id, namespace, pod: name };
  return {
    podSandboxId: sandbox.id,
    metrics: metricsOf(ofPods, pod, labels),
    containerMetrics: containers.map((source) => {
      const { id, config } = source.container;
      const image = config.image?.userSpecifiedImage || (config.image?.image ?? '');
      const own = { ...labels, container: config.metadata?.name ?? '', id, name: id, image };
      return { containerId: id, metrics: metricsOf(ofContainers, source, own) };
    }),
  };
};
