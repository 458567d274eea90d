/** What the CRI services are made from: doors to the engine, the read model, and what other adapters know. */
import type { CallDraft, CallReply, NoteRead, ReadModel, TakeCall } from '../../engine/ports.ts';
import { type Failure, FailureError, grpcCodeOf } from '../../domain/errors.ts';
import type { Container } from '../../domain/state.ts';
import { wholeId } from '../../domain/call/canonical.ts';
import type * as wire from '../wire/cri/api.ts';
import type { CallContext } from './context.ts';
import type { ContainerEvents } from './events.ts';
import type { Lists } from './lists.ts';

export interface CriParts {
  readonly version: string;
  readonly take: TakeCall;
  readonly view: ReadModel;
  readonly lists: Lists;
  readonly events: ContainerEvents;
  readonly noteRead: NoteRead;
  readonly nowNs: () => bigint;
  readonly monoNs: () => bigint;
  /** False until recovery lets calls in (C18). */
  readonly isServing: () => boolean;
  /** Keeps an env value and gives its token; forgets values that nobody used. */
  readonly tokenOf: (value: Uint8Array) => string;
  /** Keeps registry credentials for one pull and gives their token. */
  readonly keepCredentials: (auth: wire.AuthConfig) => string;
  /** null when the container has no cgroup any more. */
  readonly statsOf: (container: Container) => Promise<wire.ContainerStats | null>;
  readonly imageFsInfo: () => wire.ImageFsInfoResponse;
  /** Runtime features for Status, the default handler under the empty name too. */
  readonly runtimeHandlers: () => readonly wire.RuntimeHandler[];
  /** What verbose Status says of the configuration: no secrets. */
  readonly describeConfig: () => Readonly<Record<string, unknown>>;
}

/** Runs a call through the engine; a refusal or failure is thrown. */
export async function take(parts: CriParts, draft: CallDraft, { caller, deadlineNs, signal }: CallContext): Promise<CallReply & { readonly outcome: { readonly ok: true } }> {
  const reply = await parts.take(draft, { caller, deadlineNs, signal });
  const { outcome } = reply;
  if (!outcome.ok) throw failed(outcome.failure);
  return { ...reply, outcome };
}

export const failed = ({ reason, message }: Failure): FailureError => new FailureError(reason, message);

/** Wraps a handler of a read call: refused until the daemon serves, noted when it is answered. */
export function reading<Request, Response>(
  parts: CriParts,
  method: string,
  subjectOf: (request: Request) => string,
  answer: (request: Request, context: CallContext) => Promise<Response> | Response,
): (request: Request, context: CallContext) => Promise<Response> | Response {
  return (request, context) => {
    if (!parts.isServing()) throw new FailureError('NotServing', 'The daemon is starting; try again in a moment.');
    const startNs = parts.monoNs();
    const note = (code: number): void =>
      parts.noteRead({
        atNs: parts.nowNs(),
        method,
        code,
        durationNs: parts.monoNs() - startNs,
        callerPid: context.caller?.pid ?? 0,
        callerUid: context.caller?.uid ?? 0,
        subject: subjectOf(request),
      });
    try {
      const response = answer(request, context);
      if (!(response instanceof Promise)) {
        note(0);
        return response;
      }
      return response.then(
        (message) => {
          note(0);
          return message;
        },
        (error: unknown) => {
          note(codeOf(error));
          throw error;
        },
      );
    } catch (error) {
      note(codeOf(error));
      throw error;
    }
  };
}

const codeOf = (error: unknown): number => (error instanceof FailureError ? grpcCodeOf(error.failure) : grpcCodeOf({ reason: 'Bug', message: '' }));

export const find = <T>(map: ReadonlyMap<string, T>, id: string): T | undefined => map.get(id) ?? map.get(wholeId(map, id));
