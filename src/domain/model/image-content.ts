/**
 * What is known of an image that is whole on this node, the same in effects, records and state, and what bounds it.
 */

/** More volumes than this no image may declare: each is a directory and a mount of every container that is made from it. */
export const IMAGE_VOLUMES_MAX = 128;

/** The part of an OCI image config that containers are made from. */
export interface ImageConfig {
  readonly user?: string;
  readonly env?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
  readonly workingDir?: string;
  readonly volumes?: readonly string[];
  readonly stopSignal?: string;
}

export interface ImageLayer {
  /** Digest of the compressed blob, sha256:… */
  readonly digest: string;
  readonly diffId: string;
  /** Names the unpacked snapshot: SHA-256 over the chain of diffIds (OCI image-spec, "ChainID"). */
  readonly chainId: string;
  readonly sizeBytes: number;
}

/** What is known of an image once it is whole on this node. */
export interface ImageContent {
  /** The image's id: the digest of its config blob, sha256:… */
  readonly id: string;
  readonly manifestDigest: string;
  /** familiar.host/repo:tag forms this content was asked for by; empty when asked for by digest only. */
  readonly repoTags: readonly string[];
  /** host/repo@sha256:… */
  readonly repoDigests: readonly string[];
  /** Compressed size of config and layers, in bytes. */
  readonly sizeBytes: number;
  readonly config: ImageConfig;
  readonly layers: readonly ImageLayer[];
  /** Every blob this image needs on disk: manifest (and index), config, layers. */
  readonly blobs: readonly string[];
}

/** What is recorded of a pull or load. */
export interface ImagePulled {
  readonly image: ImageContent;
  /** Not all of it is on the disk for certain; absent: it is. */
  readonly unsynced?: true;
}
