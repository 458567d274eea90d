/**
 * Hands spans to a collector by OTLP over HTTP, in batches, in the background. Spans that do not fit while the
 * collector is slow or away are dropped and counted; nothing waits for the collector, and no failure of it is more than
 * a line in the log.
 */
import { diag, DiagLogLevel, type Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import * as z from 'zod';
import { messageOf } from '../../domain/model/errors.ts';
import { readAs } from '../../platform/foreign-json.ts';
import { orAfter } from '../../platform/rpc/timeout.ts';

const EXPORT_TIMEOUT_MS = 5_000;
const EVERY_MS = 1_000;
const QUEUE_MAX = 4_096;
const BATCH_MAX = 512;
const SERVICE = 'scribe';
/** A collector that stays away is not told of at each batch. */
const TELL_EVERY_MS = 60_000;
/** Part of what is told are the collector's own words. */
const SENTENCE_CHARACTERS_MAX = 300;

export interface ExporterOptions {
  /** Where the collector takes traces: http://127.0.0.1:4318/v1/traces. */
  readonly endpoint: string;
  /** Share of calls that are traced, where the caller has not decided it. */
  readonly sampleRatio: number;
  readonly version: string;
  readonly nodeName: string;
  readonly warn: (message: string) => void;
}

export interface Exporter {
  readonly tracer: Tracer;
  /** Spans that ended and were chosen, and those of them that a collector has taken. */
  readonly counts: () => { readonly ended: number; readonly exported: number };
  /** Hands over what is left; waits no longer than one export may take. */
  readonly close: () => Promise<void>;
}

const errorSchema = z.object({ message: z.string() });

/** The library makes JSON of an error, with its stack and all that the collector answered; the message says enough. */
const sentenceOf = (told: string): string => readAs(errorSchema, told)?.message ?? told;

/** Tells one thing in a minute, shortened. */
const sparingly = (warn: (message: string) => void) => {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return (message: string, ...details: readonly unknown[]): void => {
    const nowMs = performance.now();
    if (nowMs - toldAtMs < TELL_EVERY_MS) return;
    toldAtMs = nowMs;
    warn([sentenceOf(message), ...details.map(String)].join(' ').slice(0, SENTENCE_CHARACTERS_MAX));
  };
};

export const createExporter = (options: ExporterOptions): Exporter => {
  const { endpoint, sampleRatio, version, nodeName, warn } = options;
  let [ended, exported] = [0, 0];
  // The library tells its troubles here and nowhere else.
  const tell = sparingly(warn);
  const quiet = (): void => undefined;
  diag.setLogger(
    { error: tell, warn: tell, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const otlp = new OTLPTraceExporter({ url: endpoint, timeoutMillis: EXPORT_TIMEOUT_MS });
  const exporter: SpanExporter = {
    export: (spans, done) =>
      otlp.export(spans, (result) => {
        if (result.error === undefined) exported += spans.length;
        done(result);
      }),
    shutdown: () => otlp.shutdown(),
  };
  const batches = new BatchSpanProcessor({
    exporter,
    exportTimeoutMillis: EXPORT_TIMEOUT_MS,
    scheduledDelayMillis: EVERY_MS,
    maxQueueSize: QUEUE_MAX,
    maxExportBatchSize: BATCH_MAX,
  });
  const counted: SpanProcessor = {
    onStart: quiet,
    onEnd: () => {
      ended += 1;
    },
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': SERVICE,
      'service.version': version,
      'host.name': nodeName,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [counted, batches],
  });
  return {
    tracer: provider.getTracer(SERVICE, version),
    counts: () => ({ ended, exported }),
    close: () =>
      orAfter(
        provider.shutdown().catch((error: unknown) => warn(`Spans were left behind: ${messageOf(error)}`)),
        EXPORT_TIMEOUT_MS,
        undefined,
      ),
  };
};
