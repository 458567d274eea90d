/** Exit codes, signals and reasons of failures in words. Pure. */
import { constants } from 'node:os';
import type { Failure, FailureReason } from '../../domain/model/errors.ts';
import { bare } from '../../domain/values/sentence.ts';

const SIGNALS = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** SIGTERM, or "signal 42". */
export const signalName = (signal: number): string => SIGNALS.get(signal) ?? `signal ${signal}`;

/** What a shell, and so the runtime, adds to the number of the signal that ended a process. */
const SIGNALLED = 128;
const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

/** The signal that an exit code stands for; null for one that the program itself gave. */
export const signalOfStatus = (status: number): number | null =>
  status > SIGNALLED && SIGNALS.has(status - SIGNALLED) ? status - SIGNALLED : null;

export const statusWords = (status: number): string => {
  const signal = signalOfStatus(status);
  if (status === 0) return 'exit code 0, success';
  if (status === NOT_EXECUTABLE) return 'exit code 126: its command cannot be executed';
  if (status === NOT_FOUND) return 'exit code 127: its command was not found';
  return signal === null ? `exit code ${status}` : `exit code ${status}, ${signalName(signal)}`;
};

/** What failed, for who reads it first; '' where the message alone says it. */
const WHAT_FAILED: Readonly<Partial<Record<FailureReason, string>>> = {
  CniFailed: 'its network could not be made by CNI',
  NetworkNotReady: 'the node has no network for pods',
  ShimFailed: 'its shim failed',
  RuntimeFailed: 'the OCI runtime failed',
  HostFailed: 'this machine refused a step',
  PluginConflict: 'NRI plugins contradict each other',
  PluginInvalid: 'an NRI plugin answered nonsense',
  ImageUnknownToRegistry: 'the registry does not have it',
  RegistryDenied: 'the registry refused it',
  RegistryFailed: 'the registry failed',
  ImageInvalid: 'the image is bad',
  DiskFull: 'the disk is full',
  TimedOut: 'it took too long',
  Interrupted: 'the daemon ended meanwhile',
  HostLacks: 'this machine lacks what it needs',
  Bug: 'scribe has a bug',
};

/** A quota that is used up is a disk that is full to whoever has it. */
const NO_SPACE = /no space left on device|ENOSPC|disk quota exceeded|EDQUOT/i;

/** What kubelet tells an unreachable registry by (cri-api, errors.go); nobody else needs it. */
const FOR_KUBELET = /^RegistryUnavailable: /;

export const failureWords = ({ reason, message }: Failure): string => {
  const text = bare(message.replace(FOR_KUBELET, ''));
  const what = reason !== 'DiskFull' && NO_SPACE.test(message) ? WHAT_FAILED.DiskFull : WHAT_FAILED[reason];
  return what === undefined ? text : `${what}: ${text}`;
};
