/**
 * The Container Device Interface (CDI) as spec files have it, in the words of its specification (version 1.1.0). Data
 * only. An edit is what a device adds to the OCI spec of a container that asks for it.
 */
import type { SecretEnv } from './oci.ts';

export type DeviceType = 'b' | 'c' | 'p';

export interface CdiDeviceNode {
  readonly path: string;
  /** Absent: the same as path. */
  readonly hostPath?: string;
  readonly type?: DeviceType;
  readonly major?: number;
  readonly minor?: number;
  readonly fileMode?: number;
  readonly permissions?: string;
  readonly uid?: number;
  readonly gid?: number;
}

export interface CdiNetDevice {
  readonly hostInterfaceName: string;
  readonly name: string;
}

export interface CdiMount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly type?: string;
  readonly options: readonly string[];
}

export const HOOK_NAMES = [
  'prestart',
  'createRuntime',
  'createContainer',
  'startContainer',
  'poststart',
  'poststop',
] as const;
export type HookName = (typeof HOOK_NAMES)[number];

export interface CdiHook<Env> {
  readonly hookName: HookName;
  readonly path: string;
  readonly args?: readonly string[];
  readonly env?: readonly Env[];
  readonly timeout?: number;
}

export interface CdiIntelRdt {
  readonly closID?: string;
  readonly l3CacheSchema?: string;
  readonly memBwSchema?: string;
  readonly schemata?: readonly string[];
  readonly enableMonitoring?: boolean;
}

/** `Env` is "NAME=value" in a file; in the journal, values are tokens (C12). */
export interface CdiEdits<Env = string, Node = CdiDeviceNode> {
  readonly env?: readonly Env[];
  readonly deviceNodes?: readonly Node[];
  readonly netDevices?: readonly CdiNetDevice[];
  readonly hooks?: readonly CdiHook<Env>[];
  readonly mounts?: readonly CdiMount[];
  readonly intelRdt?: CdiIntelRdt;
  readonly additionalGids?: readonly number[];
}

export interface CdiDevice {
  readonly name: string;
  readonly containerEdits: CdiEdits;
}

export interface CdiSpec {
  /** vendor/class: with a device's name it makes the name that containers ask for. */
  readonly kind: string;
  readonly devices: readonly CdiDevice[];
  /** Made once for all devices of the file that a container asks for. */
  readonly containerEdits: CdiEdits;
}

/** A device node with what was found out about it on the host. */
export interface CdiNodeFact extends CdiDeviceNode {
  readonly type: DeviceType;
  readonly major: number;
  readonly minor: number;
}

/** Edits as they are made: those of a spec file, or of one of its devices. */
export type CdiEditsFact = CdiEdits<SecretEnv, CdiNodeFact>;
