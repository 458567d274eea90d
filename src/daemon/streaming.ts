/**
 * Sessions, between the streaming server and the engine: each is a call of its own, made on behalf of whoever asked for
 * its address, and finds its client's streams here when its effect is performed. What goes through the streams stays
 * beside the journal (C12).
 */
import type { Allowance, StreamingDoor } from '../adapters/cri/parts.ts';
import type { ForwardedConnection } from '../adapters/port-forward/adapter.ts';
import type {
  SessionStreams,
  StreamingBackend,
  StreamingRequest,
  StreamingServer,
} from '../adapters/streaming/types.ts';
import { FailureError } from '../domain/errors.ts';
import { type Caller, type CallResponse, subjectOf } from '../domain/records.ts';
import type { CallDraft, Ids, ReadModel, TakeCall } from '../engine/ports.ts';

export interface Sessions {
  readonly backend: StreamingBackend;
  /** The server's addresses, for sessions whose calls say who asked for them. */
  readonly doorOf: (server: Pick<StreamingServer, 'urlFor'>) => StreamingDoor;
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
  // What the server need not know of a request, for as long as it keeps it.
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
    doorOf: (server) => ({
      newId: ids.hex64,
      urlFor: (request, allowance) => {
        allowances.set(request, allowance);
        return server.urlFor(request);
      },
    }),
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
