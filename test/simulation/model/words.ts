/**
 * What the model of CRI is told of: calls and replies, events, signals, and what really happened on the node. Its own
 * words, as CRI has them; nothing of the product's domain.
 */
/** An id that nobody ever gets. */
export const NOBODY = 'f'.repeat(64);
/** The beginning of every id that is given. */
export const AMBIGUOUS = '0'.repeat(40);

export type Kind = 'sandbox' | 'container';

/** The fields of a request that the model looks at. */
export interface Asked {
  readonly method: string;
  readonly containerId?: string;
  readonly podSandboxId?: string;
  readonly timeoutSeconds?: string;
  readonly newId?: string;
  readonly config?: { readonly metadata?: { readonly name?: string } };
  readonly image?: string;
  readonly runtimeHandler?: string;
}

export interface Reply {
  readonly ok: boolean;
  readonly reason?: string;
  readonly id?: string;
  readonly containerIds?: readonly string[];
  readonly exitCode?: number;
  readonly imageRefs?: readonly string[];
}

export interface ToldEvent {
  readonly type: string;
  readonly id: string;
  readonly atNs: bigint;
}

/** As ContainerStatus has it. */
export interface ShownContainer {
  readonly id: string;
  readonly state: string;
  readonly reason: string;
  readonly exitCode: number;
  readonly createdAtNs: bigint;
  readonly startedAtNs: bigint | null;
  readonly finishedAtNs: bigint | null;
}

/** How a task really ended. */
export interface TrueEnd {
  readonly exitStatus: number;
  readonly atNs: bigint;
  readonly oomKills: number;
}

/** The node as somebody sees it who looks at its processes, files and network. */
export interface Node {
  readonly runs: (id: string) => boolean;
  readonly runsInPod: (podSandboxId: string) => boolean;
  /** It has been run at some time. */
  readonly hasRun: (id: string) => boolean;
  readonly traces: (id: string) => readonly string[];
  readonly hasAddress: (podSandboxId: string) => boolean;
  readonly hasNamespaces: (podSandboxId: string) => boolean;
  readonly hasLayers: () => boolean;
  readonly trueEnd: (id: string) => TrueEnd | undefined;
  /** Something of it was killed for lack of memory, and somebody was told. */
  readonly ranOutOfMemory: (id: string) => boolean;
  /** How often something that was tried on this node failed. */
  readonly failures: () => number;
  /** What ran it was killed under it, or the node was rebooted; '': of any pod. */
  readonly wasCutOff: (podSandboxId: string) => boolean;
  /** An NRI plugin has said something that calls are failed with this reason for. */
  readonly pluginsSaid: (reason: string) => boolean;
  /** The daemon met a bug of its own. */
  readonly hadBugs: () => boolean;
  /** Some start found that the journal is not all that was written. */
  readonly doubtsJournal: () => boolean;
  /** Some start did not have this runtime handler. */
  readonly lackedHandler: (name: string) => boolean;
  /** Some tag has named two images. */
  readonly hadMovingTags: () => boolean;
  /** A registry or an archive gave this image for this name. */
  readonly gave: (reference: string, imageId: string) => boolean;
  /** The disk was full at some time. */
  readonly diskWasFull: () => boolean;
  /** Somebody set the wall clock: times say nothing about an order any more. */
  readonly clockWasSet: () => boolean;
  readonly exitOfCommand: (execId: string) => number | undefined;
}
