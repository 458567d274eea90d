/**
 * What the daemon and its pulling thread say to each other. A job is a pull or a load; the thread says what it found
 * and which layers are whole on the disk, the daemon has them unpacked. Failures cross as data. Credentials cross to
 * the thread only, and are in no answer.
 */
import type { ImageContent, ImageLayer } from '../../../domain/model/image-content.ts';
import type { Failure } from '../../../domain/model/errors.ts';
import type { Progress } from '../registry/pace.ts';
import type { ImageLimits, Platform, RegistryCredentials } from '../types.ts';

/** What the thread is started with. */
export interface PullThreadOptions {
  readonly root: string;
  readonly registryConfigDirs: readonly string[];
  readonly mirrorCredentials: boolean;
  readonly maxConcurrentDownloads: number;
  readonly maxConcurrentDownloadsPerRegistry: number;
  readonly progress: Progress;
  readonly platform: Platform;
  readonly limits: ImageLimits;
}

export interface AskedPull {
  readonly reference: string;
  readonly credentials: RegistryCredentials | null;
  /** An image of that name is here already. */
  readonly isHere: boolean;
}

export type ToPullThread =
  | ({
      readonly kind: 'pull';
      readonly job: number;
      /** As they are now: they may have changed since the thread was started. */
      readonly registryConfigDirs: readonly string[];
    } & AskedPull)
  /** `path` is an archive in the ingest directory; the thread removes it. */
  | { readonly kind: 'load'; readonly job: number; readonly path: string }
  | { readonly kind: 'removeBlobs'; readonly job: number; readonly digests: readonly string[] }
  /** Removes blobs that are not what their digests say, so that the next pull fetches them anew: of these, or of all. */
  | {
      readonly kind: 'checkBlobs';
      readonly job: number;
      readonly digests: readonly string[] | null;
      readonly bytesPerSecond: number;
    }
  /** Makes blobs of what is kept of them, see BlobStore.restore. */
  | { readonly kind: 'restoreBlobs'; readonly job: number; readonly digests: readonly string[] }
  | { readonly kind: 'cancel'; readonly job: number }
  /** The job is over for the daemon too: its blobs are no longer needed for it. */
  | { readonly kind: 'release'; readonly job: number };

/** The messages that begin a job. */
export type JobMessage = Extract<
  ToPullThread,
  { kind: 'pull' | 'load' | 'removeBlobs' | 'checkBlobs' | 'restoreBlobs' }
>;

export type FromPullThread =
  /** The job's image is new here: its manifest is being fetched. */
  | { readonly kind: 'fetching'; readonly job: number }
  /** The layers of one image of the job, base first, before the first of them is ready. */
  | { readonly kind: 'layers'; readonly job: number; readonly image: string; readonly layers: readonly ImageLayer[] }
  /** The blob of that layer is being downloaded, and may be read as it comes (arrivals.ts). */
  | { readonly kind: 'layerBegun'; readonly job: number; readonly image: string; readonly index: number }
  /** The blob of that layer is whole on the disk. */
  | { readonly kind: 'layerReady'; readonly job: number; readonly image: string; readonly index: number }
  | {
      readonly kind: 'progress';
      readonly job: number;
      readonly digest: string;
      readonly bytesDone: number;
      readonly bytesTotal: number;
    }
  | {
      readonly kind: 'finished';
      readonly job: number;
      readonly images: readonly ImageContent[];
      readonly freedBytes: number;
      /** Digests of blobs that were. */
      readonly damaged: readonly string[];
    }
  | { readonly kind: 'failed'; readonly job: number; readonly failure: Failure };
