/**
 * The error catalogue: every way in which a call or an effect can fail, and the gRPC code it is answered with.
 * A failure is data ({ reason, message }), so that it can be recorded. Nothing else maps failures to codes: ttrpc and
 * gRPC reflection use the numbers in protocols of their own.
 */

/** The gRPC status codes that scribe answers with (google.rpc.Code). */
export const GrpcCode = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;
export type GrpcCode = (typeof GrpcCode)[keyof typeof GrpcCode];

const CODE_NAMES: ReadonlyMap<number, string> = new Map(Object.entries(GrpcCode).map(([name, code]) => [code, name]));

/** As the gRPC specification spells it. */
export const codeName = (code: number): string => CODE_NAMES.get(code) ?? `code ${code}`;

/** Each reason names what went wrong in the terms of whoever has to act on it. */
export const codeOfReason = {
  /** A field of the request is missing, malformed or contradicts another; the message names it and the remedy. */
  InvalidField: GrpcCode.INVALID_ARGUMENT,
  PodSandboxNotFound: GrpcCode.NOT_FOUND,
  ContainerNotFound: GrpcCode.NOT_FOUND,
  ImageNotFound: GrpcCode.NOT_FOUND,
  AmbiguousId: GrpcCode.INVALID_ARGUMENT,
  NameTaken: GrpcCode.ALREADY_EXISTS,
  /** The object is in a state that does not allow the call (not READY, not CREATED, not RUNNING, being removed). */
  WrongState: GrpcCode.FAILED_PRECONDITION,
  UnknownRuntimeHandler: GrpcCode.INVALID_ARGUMENT,
  /** The node lacks what the request needs (a controller, a kernel feature, a tool). */
  HostLacks: GrpcCode.FAILED_PRECONDITION,
  /** The archive of a checkpoint that nobody who is trusted made. */
  CheckpointUntrusted: GrpcCode.PERMISSION_DENIED,
  /** Two NRI plugins set the same thing. */
  PluginConflict: GrpcCode.FAILED_PRECONDITION,
  /** An NRI plugin did not allow it; the message has its words. */
  PluginRefused: GrpcCode.FAILED_PRECONDITION,
  /** An NRI plugin that has to be there, or has to agree, is not there or does not answer. */
  PluginMissing: GrpcCode.UNAVAILABLE,
  /** An NRI plugin answered what cannot be; the message names the field. */
  PluginInvalid: GrpcCode.FAILED_PRECONDITION,
  NetworkNotReady: GrpcCode.FAILED_PRECONDITION,
  /** The message begins with RegistryUnavailable, by which kubelet tells it from a bad image. */
  RegistryFailed: GrpcCode.UNAVAILABLE,
  RegistryDenied: GrpcCode.PERMISSION_DENIED,
  ImageInvalid: GrpcCode.INVALID_ARGUMENT,
  /** Not found at the registry. */
  ImageUnknownToRegistry: GrpcCode.NOT_FOUND,
  CniFailed: GrpcCode.UNKNOWN,
  ShimFailed: GrpcCode.UNKNOWN,
  RuntimeFailed: GrpcCode.UNKNOWN,
  HostFailed: GrpcCode.UNKNOWN,
  TimedOut: GrpcCode.DEADLINE_EXCEEDED,
  /** The daemon ended while the effect or call was under way. */
  Interrupted: GrpcCode.UNAVAILABLE,
  NotServing: GrpcCode.UNAVAILABLE,
  DiskFull: GrpcCode.RESOURCE_EXHAUSTED,
  /** A request of more bytes than the daemon takes. */
  TooLarge: GrpcCode.RESOURCE_EXHAUSTED,
  /** As many streaming URLs as there may be are waiting to be used. */
  TooManyTokens: GrpcCode.RESOURCE_EXHAUSTED,
  /** As many clients as there may be are attached. */
  TooManyClients: GrpcCode.RESOURCE_EXHAUSTED,
  NotImplemented: GrpcCode.UNIMPLEMENTED,
  /** A name that the health service was asked about and does not know. */
  UnknownService: GrpcCode.NOT_FOUND,
  Cancelled: GrpcCode.CANCELLED,
  Bug: GrpcCode.INTERNAL,
} as const satisfies Record<string, GrpcCode>;

export type FailureReason = keyof typeof codeOfReason;

/** A failure as it is recorded. `message` is one sentence for the person who reads the kubelet's log. */
export interface Failure {
  readonly reason: FailureReason;
  readonly message: string;
}

/** What adapters throw: the failure and nothing more. Anything else that is thrown becomes reason HostFailed or Bug. */
export class FailureError extends Error {
  readonly failure: Failure;
  constructor(reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'FailureError';
    this.failure = { reason, message };
  }
}

/** An error whose message is a sentence of scribe's own that quotes nobody: it may be told wherever scribe tells of errors. */
export class KnownError extends Error {}

export const grpcCodeOf = (failure: Failure): GrpcCode => codeOfReason[failure.reason];

const FULL_DISK: readonly unknown[] = ['ENOSPC', 'EDQUOT'];

/** Whether a file system had no room or no inodes left, or a quota was used up. */
export const isFullDisk = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && FULL_DISK.includes(error.code);

/** What anything that was thrown says of itself. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
