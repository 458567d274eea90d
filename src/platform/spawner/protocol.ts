/**
 * What daemon and spawner say to each other over their socket pair: frames of a head and a body, any number of
 * requests under way at once, told apart by id. Pure encoding; both ends are of the same build, so it has no versions.
 *
 *   4 bytes  length of what follows, big-endian
 *   4 bytes  id of the request
 *   1 byte   kind (FrameKind)
 *   rest     the body: JSON, or bytes of a stream
 */
import type { FailureReason } from '../../domain/model/errors.ts';
import type { Hierarchy } from '../linux/memory-cgroup.ts';
import { createFrameReader as createReader, encodeFrame as encode, type FrameForm } from '../rpc/framing.ts';
import type { MappedMountsRequest, NamespacesRequest, ProcessName, RunRequest, RunResult, Spawner } from './types.ts';

/** The descriptor that the spawner's end of the socket pair is at. */
export const SPAWNER_FD = 3;

export const FrameKind = {
  /** To the spawner: JSON of SpawnerRequest; for a run, its stdin came in a frame before it. */
  request: 1,
  stdin: 2,
  cancel: 3,
  /** From the spawner: it holds its lock and takes requests; the id means nothing. */
  ready: 4,
  /** JSON of the pid (and process group) of a run. */
  started: 5,
  stdout: 6,
  stderr: 7,
  /** The last frame of a request: JSON of SpawnerReply. */
  reply: 8,
  /** To the spawner: JSON of Told, for a run under way that waits for it. */
  told: 9,
  /** To the spawner: the whole stdin of a run under way that waits for it. */
  input: 10,
} as const;
export type FrameKind = (typeof FrameKind)[keyof typeof FrameKind];

export interface Frame {
  readonly kind: FrameKind;
  readonly id: number;
  readonly body: Uint8Array;
}

export type RunHead = Omit<RunRequest, 'stdin' | 'input' | 'told' | 'onStdout' | 'onStarted' | 'signal'> & {
  /** It will be told something. */
  readonly waits?: true;
  /** Its stdin comes later. */
  readonly inputLater?: true;
};
export type RunTail = Omit<RunResult, 'stdout' | 'stderr'>;
export type DetachedRequest = Parameters<Spawner['startDetached']>[0];
export type MountRequest = Parameters<Spawner['mount']>[0];

export type SpawnerRequest =
  | { readonly op: 'run'; readonly run: RunHead }
  | { readonly op: 'startDetached'; readonly program: DetachedRequest }
  | { readonly op: 'pinNamespaces'; readonly namespaces: NamespacesRequest }
  | { readonly op: 'pinNetnsOf'; readonly holder: ProcessName; readonly path: string }
  | { readonly op: 'readNetDev'; readonly path: string }
  | { readonly op: 'mountMapped'; readonly mapped: MappedMountsRequest }
  | { readonly op: 'mount'; readonly mount: MountRequest }
  | { readonly op: 'unmount'; readonly target: string }
  | { readonly op: 'unpin'; readonly paths: readonly string[] }
  | { readonly op: 'joinAhead'; readonly forMs: number; readonly hierarchy: Hierarchy };

export type SpawnerReply =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: FailureReason; readonly message: string };

const LENGTH_BYTES = 4;
const HEAD_BYTES = 5;
/** A stdin goes in one frame; nothing that is run is told more than this. */
export const FRAME_BODY_BYTES_MAX = 64 * 1024 * 1024;

const form: FrameForm<Pick<Frame, 'kind' | 'id'>> = {
  headBytes: LENGTH_BYTES + HEAD_BYTES,
  bodyBytesMax: FRAME_BODY_BYTES_MAX,
  writeHead: (target, { kind, id }, bodyBytes) => {
    target.writeUInt32BE(HEAD_BYTES + bodyBytes, 0);
    target.writeUInt32BE(id, LENGTH_BYTES);
    target.writeUInt8(kind, LENGTH_BYTES + 4);
  },
  headOf: (source, at) => ({
    id: source.readUInt32BE(at + LENGTH_BYTES),
    kind: source.readUInt8(at + LENGTH_BYTES + 4) as FrameKind,
  }),
  bodyBytesOf: (source, at) => source.readUInt32BE(at) - HEAD_BYTES,
};

export const encodeFrame = (kind: FrameKind, id: number, body: Uint8Array): Uint8Array =>
  encode(form, { kind, id }, body);

export const encodeJson = (kind: FrameKind, id: number, value: unknown): Uint8Array =>
  encodeFrame(kind, id, Buffer.from(JSON.stringify(value)));

/** The JSON body of a frame, in the type that its kind stands for. */
export const decodeJson = <T>(body: Uint8Array): T => JSON.parse(Buffer.from(body).toString()) as T;

/**
 * Takes pieces of the stream as they come and calls `onFrame` for each whole frame. Throws on a length that no frame
 * has, after which the stream is of no more use.
 */
export const createFrameReader = (onFrame: (frame: Frame) => void): ((chunk: Buffer) => void) =>
  createReader(form, {
    frame: (head, body) => onFrame({ ...head, body }),
    misfit: (_head, bodyBytes) => {
      throw new Error(`A frame of ${HEAD_BYTES + bodyBytes} bytes`);
    },
  });
