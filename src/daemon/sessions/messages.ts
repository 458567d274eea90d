/**
 * What the daemon and the thread of the streaming server say to each other. Bytes of sessions are never among it: the
 * thread has the clients, is handed descriptors and paths, and moves the bytes itself.
 *
 *   thread                                    daemon
 *     | redeem (a client shows a token) -------> |
 *     | <----------------------------- redeemed  |
 *     | begun (its streams are there) ---------> |   makes the session's call; its effect is performed
 *     | <----- pumpOutput, pumpInput, dropInput  |   a command's streams, or
 *     | <------------------------ hear, forward  |   a container's output, or a port
 *     | pumpEnded, attached, done, resized ----> |
 *     | gone (the client left) ----------------> |
 *     | <--------------------------------- over  |   what the client is told at the end
 */
import type {
  Attachment,
  AttachmentEnd,
  ForwardedBytes,
  ForwardTarget,
  OutputName,
  StreamingRequest,
  TerminalSize,
} from '../../adapters/streaming/types.ts';
import type { Meter } from '../../adapters/streaming/pumps.ts';
import type { NamedSession } from '../../adapters/streaming/urls.ts';
import { FailureError, type FailureReason, messageOf } from '../../domain/model/errors.ts';

/** An error on its way to the other thread; no reason: it was none of those that are meant for clients. */
export interface CarriedError {
  readonly reason: FailureReason | null;
  readonly message: string;
}

export const carried = (error: unknown): CarriedError =>
  error instanceof FailureError ? error.failure : { reason: null, message: messageOf(error) };

export const revived = ({ reason, message }: CarriedError): Error =>
  reason === null ? new Error(message) : new FailureError(reason, message);

/** What a session is about: a process, or one connection to a port (0 otherwise). */
export interface SessionSubject {
  readonly request: StreamingRequest;
  readonly port: number;
}

/** `session`, `pump` and `work` are numbers that whoever begins one gives it. */
export type ToThread =
  | { readonly kind: 'redeemed'; readonly number: number; readonly request: StreamingRequest | null }
  | {
      readonly kind: 'pumpOutput';
      readonly session: number;
      readonly pump: number;
      readonly stream: OutputName;
      readonly fd: number;
      readonly meter: Meter;
    }
  | {
      readonly kind: 'pumpInput';
      readonly session: number;
      readonly pump: number;
      readonly fd: number;
      readonly meter: Meter;
    }
  | { readonly kind: 'closePump'; readonly pump: number }
  | { readonly kind: 'dropInput'; readonly session: number }
  | { readonly kind: 'hear'; readonly session: number; readonly work: number; readonly attachment: Attachment }
  | { readonly kind: 'forward'; readonly session: number; readonly work: number; readonly target: ForwardTarget }
  | { readonly kind: 'cancel'; readonly work: number }
  | { readonly kind: 'over'; readonly session: number; readonly exitCode: number }
  | { readonly kind: 'failed'; readonly session: number; readonly error: CarriedError }
  | { readonly kind: 'endIfIdle' }
  | { readonly kind: 'close' };

export type FromThread =
  | { readonly kind: 'listening'; readonly baseUrl: string }
  | { readonly kind: 'notListening'; readonly message: string }
  | { readonly kind: 'redeem'; readonly number: number; readonly named: NamedSession }
  | { readonly kind: 'begun'; readonly session: number; readonly subject: SessionSubject }
  | { readonly kind: 'resized'; readonly session: number; readonly size: TerminalSize }
  | { readonly kind: 'gone'; readonly session: number }
  | { readonly kind: 'pumpEnded'; readonly pump: number }
  | { readonly kind: 'attached'; readonly work: number }
  | { readonly kind: 'done'; readonly work: number; readonly result: AttachmentEnd | ForwardedBytes }
  | { readonly kind: 'notDone'; readonly work: number; readonly error: CarriedError }
  | { readonly kind: 'warned'; readonly message: string }
  | { readonly kind: 'vacant' }
  | { readonly kind: 'isBusy' }
  | { readonly kind: 'isEnding' }
  | { readonly kind: 'closed' };
