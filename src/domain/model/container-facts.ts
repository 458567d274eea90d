/** What a container's OCI spec depends on beside its configuration: questions about this node and image, and their answers. */
import type { CdiEditsFact } from './cdi.ts';
import type { BlockIOFact } from './classes.ts';
import type { Int64 } from './cri.ts';

/** Questions about the world that a container's OCI spec depends on. */
export interface ContainerQuestions {
  /** Chain ids of the image's snapshots, base first: /etc/passwd and /etc/group are looked up in them. */
  readonly chainIds: readonly string[];
  readonly user: {
    readonly uid?: Int64;
    readonly gid?: Int64;
    readonly username?: string;
    /** The image config's User ("uid", "name", "uid:gid", …), used when neither uid nor username is given. */
    readonly imageUser?: string;
    readonly supplementalGroups: readonly Int64[];
    /** Strict: groups of /etc/group are not added. */
    readonly mergeImageGroups: boolean;
  };
  /** Host paths of devices (or directories of devices); with allDevices, all of /dev. */
  readonly devicePaths: readonly string[];
  readonly allDevices: boolean;
  /** Host paths to be bind-mounted; a missing one is made as a directory. */
  readonly mountPaths: readonly string[];
  /** Directories of images, by their paths in them; absent: none. */
  readonly imageSubPaths?: readonly ImageSubPath[];
  /** Names of CDI devices, in the order in which their edits are made; absent: none. */
  readonly cdiDevices?: readonly string[];
  /** A class of block I/O; absent: none is asked for. */
  readonly blockIOClass?: string;
  /** Absolute path of a seccomp profile (Localhost), read and returned as it is. */
  readonly seccompProfilePath?: string;
  /** Name of an AppArmor profile that has to be loaded into the kernel; absent: none has to be. */
  readonly apparmorProfile?: string;
}

export interface ImageSubPath {
  /** As the container's config names it. */
  readonly image: string;
  readonly chainIds: readonly string[];
  readonly subPath: string;
}

export interface DeviceFact {
  readonly hostPath: string;
  /** Path below the asked-for directory, or the asked-for path itself. */
  readonly path: string;
  readonly type: 'c' | 'b' | 'p';
  readonly major: number;
  readonly minor: number;
  readonly fileMode: number;
  readonly uid: number;
  readonly gid: number;
}

export interface MountFact {
  readonly hostPath: string;
  /** With symbolic links resolved. */
  readonly realPath: string;
  readonly isDirectory: boolean;
  readonly propagation: 'private' | 'shared' | 'slave';
  /** Mount flags of the source's mount that a user-namespaced remount must keep (nosuid, nodev, noexec, …). */
  readonly flags: readonly string[];
}

export interface ImageSubPathFact {
  readonly image: string;
  readonly subPath: string;
  /** From the image's root, with symbolic links resolved inside the image; the root itself is "/". */
  readonly realPath: string;
}

export interface ContainerFacts {
  readonly user: { readonly uid: number; readonly gid: number; readonly additionalGids: readonly number[] };
  readonly devices: readonly DeviceFact[];
  readonly mounts: readonly MountFact[];
  /** Absent: none. */
  readonly imageSubPaths?: readonly ImageSubPathFact[];
  /** What the CDI devices change in the spec; absent: nothing. */
  readonly cdi?: readonly CdiEditsFact[];
  /** Of the class of block I/O; absent: no class was asked for, or none is configured. */
  readonly blockIO?: readonly BlockIOFact[];
  readonly seccompProfile?: unknown;
  /** Of the AppArmor profile that was asked about. */
  readonly apparmor?: ApparmorFact;
}

export type ApparmorFact = { readonly loaded: true } | { readonly loaded: false; readonly problem: string };
