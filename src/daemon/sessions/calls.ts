/**
 * Sessions, between the streaming server's thread and the engine: each is a call of its own, made on behalf of whoever
 * asked for its address, and finds its client here when its effect is performed. The bytes of its streams stay beside
 * the journal (C12).
 */
import type {
  AttachRequest,
  ExecRequest,
  PortClient,
  PortForwardRequest,
  ProcessClient,
} from '../../adapters/streaming/types.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { type Caller, type CallResponse, subjectOf } from '../../domain/model/records.ts';
import type { Ids, ReadModel, SubmitCall } from '../../engine/ports.ts';
import type { CallDraft } from '../../domain/call/draft.ts';

/** Makes the calls of sessions. All resolve when the session is over, and reject with FailureError. */
export interface SessionCalls {
  readonly exec: (request: ExecRequest, client: ProcessClient) => Promise<{ readonly exitCode: number }>;
  readonly attach: (request: AttachRequest, client: ProcessClient) => Promise<void>;
  readonly portForward: (request: PortForwardRequest, port: number, client: PortClient) => Promise<void>;
}

export interface Sessions {
  readonly calls: SessionCalls;
  /** Both throw Cancelled when the client has gone. */
  readonly processClientOf: (sessionId: string) => ProcessClient;
  readonly portClientOf: (sessionId: string) => PortClient;
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

export function createSessions(submit: SubmitCall, ids: Ids): Sessions {
  const processClients = createTable<ProcessClient>();
  const portClients = createTable<PortClient>();

  async function hold(draft: CallDraft, caller: Caller | null, signal: AbortSignal): Promise<CallResponse> {
    const { outcome } = await submit(draft, { caller, deadlineNs: null, signal });
    if (outcome.ok) return outcome.value;
    throw new FailureError(outcome.failure.reason, outcome.failure.message);
  }

  return {
    processClientOf: processClients.get,
    portClientOf: portClients.get,
    calls: {
      async exec({ kind: _, caller, ...fields }, client) {
        const newId = ids.hex64();
        const { exitCode = 0 } = await processClients.during(newId, client, () =>
          hold({ method: 'ExecSession', newId, ...fields }, caller, client.signal),
        );
        return { exitCode };
      },
      async attach({ kind: _, caller, ...fields }, client) {
        const newId = ids.hex64();
        await processClients.during(newId, client, () =>
          hold({ method: 'AttachSession', newId, ...fields }, caller, client.signal),
        );
      },
      async portForward({ caller, allowedBy, podSandboxId }, port, client) {
        const newId = ids.hex64();
        await portClients.during(newId, client, () =>
          hold({ method: 'PortForwardSession', newId, allowedBy, podSandboxId, port }, caller, client.signal),
        );
      },
    },
  };
}

/** Calls `end` with the id of each pod that is about to go. */
export function whenPodsEnd(view: Pick<ReadModel, 'recordsOf'>, end: (podSandboxId: string) => void): void {
  view
    .recordsOf('sandbox.stopping', 'sandbox.lost', 'sandbox.removing', 'sandbox.failed')
    .subscribe(({ stream }) => end(subjectOf(stream).id));
}
