/**
 * What the images adapter is given and what it tells: credentials, limits, progress. Shapes only, shared by the
 * daemon's side and the threads that work for it. Credentials are secrets: they go to registries and nowhere else.
 */

/** CRI's AuthConfig, as the client gave it. */
export interface RegistryCredentials {
  readonly username?: string;
  readonly password?: string;
  /** base64 of "username:password". */
  readonly auth?: string;
  /** The registry they are for; when absent, that of the image. */
  readonly serverAddress?: string;
  /** An OAuth2 refresh token. */
  readonly identityToken?: string;
  /** A bearer token for the registry itself. */
  readonly registryToken?: string;
}

/** Of the machine, in Go's words: linux, amd64 or arm64. */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
  /** "v3" of amd64, "v7" of arm; the plain one where it is absent or "". */
  readonly variant?: string;
}

/** Bounds on what comes from registries, archives and images. */
export interface ImageLimits {
  /** Files, directories, links and nodes in one layer. */
  readonly layerEntriesMax: number;
  /** Of one layer, as unpacked. */
  readonly layerBytesMax: number;
  readonly unpackTimeoutMs: number;
  /** Private memory of one unpacking process. */
  readonly unpackMemoryBytesMax: number;
  /** Images must leave this much of the file system free: the journal is on it too. */
  readonly reservedBytes: number;
  /** Members of an archive that is loaded. */
  readonly archiveEntriesMax: number;
  /** First wait before a failed request is tried again; it doubles each time. */
  readonly retryDelayMs: number;
  /** Times all hosts are tried in turn without a byte gained. */
  readonly attemptsMax: number;
}

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

export const defaultImageLimits: ImageLimits = {
  layerEntriesMax: 1_000_000,
  layerBytesMax: 64 * GIB,
  unpackTimeoutMs: 60 * 60_000,
  unpackMemoryBytesMax: GIB,
  reservedBytes: 256 * MIB,
  archiveEntriesMax: 20_000,
  retryDelayMs: 250,
  attemptsMax: 5,
};

/** How far a layer of an image that is being pulled or loaded has come. */
export interface PullProgress {
  /** What was asked for: a normalised reference, or the upload. */
  readonly reference: string;
  /** Digest of the layer's blob. */
  readonly digest: string;
  readonly phase: 'downloading' | 'unpacking' | 'done';
  /** Bytes of the blob that have been downloaded or unpacked. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/** What scribe's logger offers of pino. */
export interface Log {
  readonly warn: (fields: object, message: string) => void;
}
