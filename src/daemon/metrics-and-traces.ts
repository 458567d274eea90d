/**
 * Metrics and traces, where the configuration asks for them: both hear what is durable already, beside all calls. Their
 * libraries are loaded only then. A failure of either is reported and keeps nothing from running (C20).
 */
import { stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import { Subject, takeUntil } from 'rxjs';
import { errorCodeOf } from '../platform/error-code.ts';
import type { Config } from '../config/config.ts';
import { grpcCodeOf, messageOf } from '../domain/model/errors.ts';
import type { Sequenced } from '../domain/model/records.ts';
import type { Clock, HearRead, NoteRead, ReadModel, RecordRead, SubmitCall } from '../engine/ports.ts';
import type { SqliteJournal } from '../journal/sqlite-journal.ts';
import type { Findings } from './findings.ts';

interface Sources {
  readonly config: Pick<Config, 'metrics' | 'tracing'>;
  readonly version: string;
  readonly nodeName: string;
  readonly submit: SubmitCall;
  readonly recordRead: RecordRead;
  readonly journal: Pick<SqliteJournal, 'waitingRecords'>;
  readonly journalPath: string;
  readonly view: Pick<ReadModel, 'state' | 'changes'>;
  readonly clock: Pick<Clock, 'monoNs' | 'nowNs'>;
  readonly findings: Findings;
  readonly eventsPassedOver: () => number;
  readonly log: Logger;
  readonly report: (message: string) => void;
}

export interface Observed {
  /** As it was given; who observes is told of the calls that no record tells of. */
  readonly submit: SubmitCall;
  /** Notes a read in the journal, and tells who observes. */
  readonly noteRead: NoteRead;
  readonly close: () => Promise<void>;
}

interface Observer {
  readonly hearRecords: (records: readonly Sequenced[]) => void;
  readonly hearRead: HearRead;
  readonly close: () => Promise<void> | void;
}

type Read = Parameters<HearRead>;

interface Tracing extends Observer {
  readonly counts: () => { readonly ended: number; readonly exported: number };
}

export const startObserving = async (sources: Sources): Promise<Observed> => {
  const { recordRead, view, submit } = sources;
  const tracing = await startTracing(sources);
  const metrics = await startMetrics(sources, tracing);
  const observers: readonly Observer[] = [tracing, metrics].filter((observer) => observer !== null);
  const closing = new Subject<void>();
  const reads = new Subject<Read>();
  for (const { hearRecords, hearRead } of observers) {
    view.changes.pipe(takeUntil(closing)).subscribe(hearRecords);
    reads.pipe(takeUntil(closing)).subscribe((read) => hearRead(...read));
  }
  return {
    submit: observers.length === 0 ? submit : telling(submit, (...read) => reads.next(read), sources.clock),
    noteRead:
      observers.length === 0
        ? (row, _, details) => recordRead(row, details)
        : (row, traceParent, details) => {
            recordRead(row, details);
            reads.next([row, traceParent]);
          },
    close: async () => {
      closing.next();
      for (const { close } of observers) await close();
    },
  };
};

/** A node whose disk is full refuses calls: that is when somebody looks. */
const telling =
  (submit: SubmitCall, tell: HearRead, { monoNs, nowNs }: Sources['clock']): SubmitCall =>
  async (draft, options) => {
    const startNs = monoNs();
    const reply = await submit(draft, options);
    if (reply.unrecorded !== true || reply.outcome.ok) return reply;
    const { caller, traceParent = null } = options;
    const row = {
      atNs: nowNs(),
      method: 'rpc' in draft ? draft.rpc : draft.method,
      code: grpcCodeOf(reply.outcome.failure),
      durationNs: monoNs() - startNs,
      callerPid: caller?.pid ?? 0,
      callerUid: caller?.uid ?? 0,
      subject: '',
    };
    tell(row, () => traceParent);
    return reply;
  };

const startTracing = async ({ config, version, nodeName, log }: Sources): Promise<Tracing | null> => {
  const { endpoint, sampleRatio } = config.tracing;
  if (endpoint === null) return null;
  const { createCallSpans } = await import('../adapters/traces/spans.ts');
  const { createExporter } = await import('../adapters/traces/exporter.ts');
  // Without a name and password, which a URL may hold.
  const { host } = new URL(endpoint);
  const warn = (problem: string): void => log.warn({ collector: host, problem }, 'tracing');
  const { tracer, counts, close } = createExporter({ endpoint, sampleRatio, version, nodeName, warn });
  return { ...createCallSpans(tracer), counts, close };
};

const startMetrics = async (sources: Sources, tracing: Tracing | null): Promise<Observer | null> => {
  const { config, version, view, clock, journal, journalPath, findings, log, report } = sources;
  const { address } = config.metrics;
  if (address === null) return null;
  const { createMetrics } = await import('../adapters/metrics/metrics.ts');
  const { startMetricsServer } = await import('../adapters/metrics/server.ts');
  const { hearRecords, hearRead, text, contentType } = createMetrics({
    version,
    view,
    monoNs: clock.monoNs,
    waitingRecords: journal.waitingRecords,
    journalBytes: async () => ({ database: await sizeOf(journalPath), wal: await sizeOf(`${journalPath}-wal`) }),
    eventsPassedOver: sources.eventsPassedOver,
    spans: tracing?.counts ?? (() => ({ ended: 0, exported: 0 })),
    findings: () => findings.list().length,
  });
  try {
    const server = await startMetricsServer({ ...address, text, contentType });
    log.info({ url: server.url }, 'metrics');
    return { hearRecords, hearRead, close: server.close };
  } catch (error) {
    report(
      `Nobody gets metrics: metrics.address cannot be listened on (${messageOf(error)}); name another, and restart.`,
    );
    return null;
  }
};

const sizeOf = async (path: string): Promise<number> => {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return 0;
    throw error;
  }
};
