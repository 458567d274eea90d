/**
 * What the daemon tells Prometheus: every metric, its name, its help and where its figure comes from. Hears the journal's
 * durable records and the answered reads; what is a state is asked for when somebody scrapes. Labels have few values:
 * never an id, a name or a path. Serves nothing itself.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { codeName } from '../../domain/model/errors.ts';
import type { EffectKind } from '../../domain/model/effects.ts';
import { effectId, rpcOf, type Sequenced } from '../../domain/model/records.ts';
import { containerStateOf } from '../../domain/model/container-state.ts';
import type { HearRead, ReadModel } from '../../engine/ports.ts';
import { eventLoopDelay } from './event-loop-delay.ts';

/** What is asked for at each scrape. */
export interface MetricsSources {
  readonly version: string;
  readonly view: Pick<ReadModel, 'state'>;
  readonly monoNs: () => bigint;
  /** Records that wait to be durable. */
  readonly waitingRecords: () => number;
  /** Sizes of the journal's files. */
  readonly journalBytes: () => Promise<{ readonly database: number; readonly wal: number }>;
  /** Container events that subscribers were too late for. */
  readonly eventsPassedOver: () => number;
  /** Spans of traces, and those of them that a collector has taken. */
  readonly spans: () => { readonly ended: number; readonly exported: number };
  readonly findings: () => number;
}

export interface Metrics {
  readonly hearRecords: (records: readonly Sequenced[]) => void;
  readonly hearRead: HearRead;
  /** The exposition format of Prometheus. */
  readonly text: () => Promise<string>;
  readonly contentType: string;
}

/** From what a read of the state takes to what a pull or a long command does. */
const CALL_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const COMMIT_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];
const NS_PER_S = 1e9;
const NEVER_MS = 2 ** 31 - 1;
const LOOP_LAG_PARTS = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'];

const secondsBetween = (fromNs: bigint, toNs: bigint): number => Number(toNs - fromNs) / NS_PER_S;

/** What is told as it happens. */
const instrumentsOf = (registers: Registry[]) => {
  const calls = new Counter({
    name: 'scribe_calls_total',
    help: 'Calls that were answered, by RPC and gRPC code.',
    labelNames: ['method', 'code'],
    registers,
  });
  const callSeconds = new Histogram({
    name: 'scribe_call_duration_seconds',
    help: 'Time from a call to its answer, by RPC.',
    labelNames: ['method'],
    buckets: CALL_SECONDS,
    registers,
  });
  const effects = new Counter({
    name: 'scribe_effects_total',
    help: 'Effects that ended, by kind and by what became of them (done, failed).',
    labelNames: ['kind', 'outcome'],
    registers,
  });
  const effectSeconds = new Histogram({
    name: 'scribe_effect_duration_seconds',
    help: 'Time from the request of an effect to its end, by kind.',
    labelNames: ['kind'],
    buckets: CALL_SECONDS,
    registers,
  });
  const commitSeconds = new Histogram({
    name: 'scribe_journal_commit_seconds',
    help: 'Time from a decision until its records are durable.',
    buckets: COMMIT_SECONDS,
    registers,
  });
  const records = new Counter({
    name: 'scribe_journal_records_total',
    help: 'Records that this life of the daemon has made durable.',
    registers,
  });
  return { calls, callSeconds, effects, effectSeconds, commitSeconds, records };
};

/** Figures that are read when they are asked for. */
const addGauges = (registers: Registry[], sources: MetricsSources): void => {
  addNumbers(registers, sources);
  addStates(registers, sources);
  const journalBytes: Gauge<'file'> = new Gauge({
    name: 'scribe_journal_bytes',
    help: "Sizes of the journal's files: the database and its write-ahead log.",
    labelNames: ['file'],
    registers,
    collect: async () => {
      const { database, wal } = await sources.journalBytes();
      journalBytes.set({ file: 'database' }, database);
      journalBytes.set({ file: 'wal' }, wal);
    },
  });
  new Gauge({
    name: 'scribe_build_info',
    help: 'Always 1; the label says which scribe this is.',
    labelNames: ['version'],
    registers,
  }).set({ version: sources.version }, 1);
};

const addNumbers = (registers: Registry[], sources: MetricsSources): void => {
  const { state } = sources.view;
  const gauge = (name: string, help: string, read: () => number): void => {
    const made: Gauge = new Gauge({ name, help, registers, collect: () => made.set(read()) });
  };
  const counter = (name: string, help: string, read: () => number): void => {
    const made: Counter = new Counter({
      name,
      help,
      registers,
      collect: () => {
        made.reset();
        made.inc(read());
      },
    });
  };
  gauge('scribe_calls_in_progress', 'Calls that change something and have no answer yet.', () => state.calls.size);
  gauge(
    'scribe_effects_in_progress',
    'Effects that were requested and have not ended, timers too.',
    () => state.effects.size,
  );
  gauge('scribe_journal_waiting_records', 'Records that are decided and not durable yet.', sources.waitingRecords);
  gauge('scribe_shims', 'Shims that the daemon holds to be running.', () =>
    [...state.sandboxes.values()].reduce((sum, { shim }) => sum + (shim === null ? 0 : 1), 0),
  );
  gauge('scribe_images', 'Images that are there.', () => state.images.size);
  gauge(
    'scribe_findings',
    'Troubles that the daemon met and went on without; scribe doctor tells them.',
    sources.findings,
  );
  counter(
    'scribe_container_events_passed_over_total',
    'Container events that a subscriber was too late for.',
    sources.eventsPassedOver,
  );
  counter('scribe_spans_total', 'Spans of calls and effects that were traced.', () => sources.spans().ended);
  counter('scribe_spans_exported_total', 'Those of them that the collector has taken.', () => sources.spans().exported);
};

const addStates = (registers: Registry[], { view: { state } }: MetricsSources): void => {
  const stateGauge = (name: string, help: string, statesNow: () => Iterable<string>): void => {
    const made: Gauge<'state'> = new Gauge({
      name,
      help,
      labelNames: ['state'],
      registers,
      collect: () => {
        made.reset();
        for (const now of statesNow()) made.inc({ state: now });
      },
    });
  };
  stateGauge('scribe_pod_sandboxes', 'Pods that are there, by state.', () =>
    [...state.sandboxes.values()].map(({ phase }) => (phase === 'ready' ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY')),
  );
  stateGauge('scribe_containers', 'Containers that are there, by state.', () =>
    [...state.containers.values()].flatMap((container) => containerStateOf(container) ?? []),
  );
};

export const createMetrics = (sources: MetricsSources): Metrics => {
  const registry = new Registry();
  // Node's measure of the loop wakes the process a hundred times a second, whatever it does.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  for (const part of LOOP_LAG_PARTS) registry.removeSingleMetric(`nodejs_eventloop_lag_${part}_seconds`);
  const worked = eventLoopDelay([registry]);
  const { calls, callSeconds, effects, effectSeconds, commitSeconds, records } = instrumentsOf([registry]);
  addGauges([registry], sources);

  const callsUnderWay = new Map<number, { readonly method: string; readonly monoNs: bigint }>();
  const effectsUnderWay = new Map<string, { readonly kind: EffectKind; readonly monoNs: bigint }>();

  const hear = (record: Sequenced): void => {
    switch (record.type) {
      case 'call.received':
        callsUnderWay.set(record.seq, { method: rpcOf(record.body.request), monoNs: record.monoNs });
        return;
      case 'call.completed': {
        const call = callsUnderWay.get(record.call ?? 0);
        if (call === undefined) return;
        callsUnderWay.delete(record.call ?? 0);
        calls.inc({ method: call.method, code: codeName(record.body.code) });
        callSeconds.observe({ method: call.method }, secondsBetween(call.monoNs, record.monoNs));
        return;
      }
      case 'effects.requested':
        record.body.effects.forEach(({ kind }, index) => {
          // A timer that nobody wants any more ends without a word.
          if (kind !== 'WaitUntil') effectsUnderWay.set(effectId(record.seq, index), { kind, monoNs: record.monoNs });
        });
        return;
      case 'effect.ended': {
        const { effect, failure } = record.body;
        const ended = effectsUnderWay.get(effect);
        if (ended === undefined) return;
        effectsUnderWay.delete(effect);
        effects.inc({ kind: ended.kind, outcome: failure === undefined ? 'done' : 'failed' });
        effectSeconds.observe({ kind: ended.kind }, secondsBetween(ended.monoNs, record.monoNs));
        return;
      }
      default:
    }
  };

  return {
    hearRecords: (heard) => {
      worked();
      const [first] = heard;
      if (first !== undefined) commitSeconds.observe(secondsBetween(first.monoNs, sources.monoNs()));
      records.inc(heard.length);
      for (const record of heard) hear(record);
    },
    hearRead: ({ method, code, durationNs }) => {
      worked();
      calls.inc({ method, code: codeName(code) });
      callSeconds.observe({ method }, Number(durationNs) / NS_PER_S);
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
};
