/**
 * Sessions, between the streaming server and the engine: each is a call of its own, made on behalf of whoever asked for
 * its address, and finds its client's streams here when its effect is performed. What goes through the streams stays
 * beside the journal (C12).
 */
import type { ForwardedConnection } from '../adapters/port-forward/adapter.ts';
import type { SessionStreams, StreamingBackend, StreamingRequest } from '../adapters/streaming/types.ts';
import { FailureError } from '../domain/errors.ts';
import { type Caller, type CallResponse, subjectOf } from '../domain/records.ts';
import type { CallDraft, Ids, ReadModel, TakeCall } from '../engine/ports.ts';

/** The call that allowed a session, and who made it. */
export interface Allowance {
  readonly allowedBy: string;
  readonly caller: Caller | null;
}

export interface Sessions {
  readonly backend: StreamingBackend;
  /** Remembers what the server need not know, for as long as it keeps the request. */
  readonly allow: (request: StreamingRequest, allowance: Allowance) => void;
  /** Both throw Cancelled when the client has gone. */
  readonly streamsOf: (sessionId: string) => SessionStreams;
  readonly connectionOf: (sessionId: string) => ForwardedConnection;
}

const gone = (): FailureError => new FailureError('Cancelled', 'The client went away before its session began.');

/** The client's side of the sessions under way, by id. */
const createTable = <T>() => {
  const entries = new Map<string, T>();
  return {
    get: (id: string): T => {
      const found = entries.get(id);
      if (found === undefined) throw gone();
      return found;
    },
    /** For as long as `work` goes on. */
    during: async <R>(id: string, entry: T, work: () => Promise<R>): Promise<R> => {
      entries.set(id, entry);
      try {
        return await work();
      } finally {
        entries.delete(id);
      }
    },
  };
};

export function createSessions(take: TakeCall, ids: Ids): Sessions {
  const allowances = new WeakMap<StreamingRequest, Allowance>();
  const streams = createTable<SessionStreams>();
  const connections = createTable<ForwardedConnection>();

  const allowanceOf = (request: StreamingRequest): Allowance =>
    allowances.get(request) ?? { allowedBy: '', caller: null };

  /** Resolves when the session is over. */
  async function hold(draft: CallDraft, caller: Caller | null, signal: AbortSignal): Promise<CallResponse> {
    const { outcome } = await take(draft, { caller, deadlineNs: null, signal });
    if (outcome.ok) return outcome.response;
    throw new FailureError(outcome.failure.reason, outcome.failure.message);
  }

  return {
    allow: (request, allowance) => void allowances.set(request, allowance),
    streamsOf: streams.get,
    connectionOf: connections.get,
    backend: {
      async exec(request, session) {
        const { containerId, cmd, tty, stdin, stdout, stderr } = request;
        const { allowedBy, caller } = allowanceOf(request);
        const newId = ids.hex64();
        const fields = { newId, allowedBy, containerId, cmd, tty, stdin, stdout, stderr };
        const { exitCode = 0 } = await streams.during(newId, session, () =>
          hold({ method: 'ExecSession', ...fields }, caller, session.signal),
        );
        return { exitCode };
      },
      async attach(request, session) {
        const { containerId, tty, stdin, stdout, stderr } = request;
        const { allowedBy, caller } = allowanceOf(request);
        const newId = ids.hex64();
        const fields = { newId, allowedBy, containerId, tty, stdin, stdout, stderr };
        await streams.during(newId, session, () =>
          hold({ method: 'AttachSession', ...fields }, caller, session.signal),
        );
      },
      async portForward(request, port, stream, signal) {
        const { allowedBy, caller } = allowanceOf(request);
        const newId = ids.hex64();
        const fields = { newId, allowedBy, podSandboxId: request.podSandboxId, port };
        await connections.during(newId, { stream, signal }, () =>
          hold({ method: 'PortForwardSession', ...fields }, caller, signal),
        );
      },
    },
  };
}

const ENDS: readonly string[] = ['sandbox.stopping', 'sandbox.lost', 'sandbox.removing', 'sandbox.failed'];

/** Calls `end` with the id of each pod that is about to go. */
export function whenPodsEnd(view: ReadModel, end: (podSandboxId: string) => void): void {
  view.onChange((records) => {
    for (const { type, stream } of records) if (ENDS.includes(type)) end(subjectOf(stream).id);
  });
}
