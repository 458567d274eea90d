/**
 * Which gRPC code kubelet has to see for what went wrong, and which failures each call may have at all: from CRI and
 * from what kubelet does with codes, written down a second time so that a change in the product shows.
 */
const OK = 0;

export const CODES: Readonly<Record<string, number>> = {
  InvalidField: 3,
  AmbiguousId: 3,
  UnknownRuntimeHandler: 3,
  ImageInvalid: 3,
  TimedOut: 4,
  PodSandboxNotFound: 5,
  ContainerNotFound: 5,
  ImageNotFound: 5,
  NameTaken: 6,
  DiskFull: 8,
  WrongState: 9,
  HostLacks: 9,
  NetworkNotReady: 9,
  Interrupted: 14,
  NotServing: 14,
  Cancelled: 1,
  HostFailed: 2,
  CniFailed: 2,
  ShimFailed: 2,
  RuntimeFailed: 2,
  PluginRefused: 9,
  PluginMissing: 14,
  PluginConflict: 9,
  PluginInvalid: 9,
  Bug: 13,
};

/** Something on the node did not work: only where something on the node did not work. */
export const NODE_FAILED: readonly string[] = [
  'HostFailed',
  'CniFailed',
  'ShimFailed',
  'RuntimeFailed',
  'TimedOut',
  'HostLacks',
];

/** Failures of the daemon itself, which any call may have. */
const OF_THE_DAEMON: readonly string[] = ['NotServing', 'DiskFull'];

/** What NRI plugins may refuse: only where one has said so. */
export const REFUSED: readonly string[] = ['PluginRefused'];
/** What they may change: two may contradict each other, and one may want what can't be. */
export const CHANGED: readonly string[] = ['PluginConflict', 'PluginInvalid'];

const USING: readonly string[] = [...NODE_FAILED, 'ContainerNotFound', 'WrongState', 'Cancelled', 'AmbiguousId'];
const CREATING: readonly string[] = [
  ...NODE_FAILED,
  ...REFUSED,
  'PluginMissing',
  'NameTaken',
  'Cancelled',
  'ImageNotFound',
  'WrongState',
];
const ENDING: readonly string[] = [...NODE_FAILED, 'AmbiguousId'];

const allowed: Readonly<Record<string, readonly string[]>> = {
  RunPodSandbox: [...CREATING, 'UnknownRuntimeHandler'],
  RestorePod: [...CREATING, ...CHANGED, 'UnknownRuntimeHandler', 'InvalidField'],
  CreateContainer: [...CREATING, ...CHANGED, 'PodSandboxNotFound', 'InvalidField', 'AmbiguousId'],
  StartContainer: [...USING, ...REFUSED, 'Interrupted'],
  StopContainer: ENDING,
  RemoveContainer: ENDING,
  StopPodSandbox: ENDING,
  RemovePodSandbox: ENDING,
  ExecSync: [...USING, 'TimedOut'],
  Exec: USING,
  Attach: USING,
  PortForward: [...NODE_FAILED, 'PodSandboxNotFound', 'WrongState', 'Cancelled'],
  ExecSession: USING,
  AttachSession: USING,
  PortForwardSession: [...NODE_FAILED, 'PodSandboxNotFound', 'WrongState', 'Cancelled'],
  ReopenContainerLog: USING,
  UpdateContainerResources: [...USING, ...REFUSED, ...CHANGED],
  UpdatePodSandboxResources: [...NODE_FAILED, ...REFUSED, 'PodSandboxNotFound', 'WrongState'],
  CheckpointContainer: USING,
  CheckpointPod: [...USING, 'PodSandboxNotFound'],
  PullImage: NODE_FAILED,
  LoadImages: NODE_FAILED,
  RemoveImage: [],
  UpdateRuntimeConfig: [],
  SetLogLevel: [],
  AcknowledgeJournal: ['WrongState'],
  ReloadConfig: ['InvalidField'],
  ClearStrays: [],
};

export const mayFailWith = (method: string, reason: string): boolean =>
  OF_THE_DAEMON.includes(reason) || (allowed[method] ?? []).includes(reason);

export const codeOf = (reason: string | undefined): number => (reason === undefined ? OK : (CODES[reason] ?? -1));
