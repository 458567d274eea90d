/**
 * Relays the journal to OpenTelemetry: each call is a span, each of its effects a span below it, told from durable
 * records after the fact, so that no call ever waits for a trace. Attributes are what the journal may know (C12). How
 * spans reach a collector is not said here.
 */
import {
  type Attributes,
  type Context,
  type HrTime,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { codeName, type Failure, GrpcCode } from '../../domain/model/errors.ts';
import { type BodyOf, effectId, rpcOf, type Sequenced } from '../../domain/model/records.ts';
import { traceParentIn } from '../../domain/values/trace-parent.ts';
import type { HearRead } from '../../engine/ports.ts';

export interface CallSpans {
  readonly hearRecords: (records: readonly Sequenced[]) => void;
  readonly hearRead: HearRead;
}

/** A call that never ends, through a bug, must not be the first of ever more. */
const OPEN_MAX = 10_000;
const NS_PER_S = 1_000_000_000n;

const hrTime = (ns: bigint): HrTime => [Number(ns / NS_PER_S), Number(ns % NS_PER_S)];

/** The caller's span, of a W3C traceparent; the root where there is none. */
const parentOf = (traceParent: string | null | undefined): Context => {
  const { traceId = '', spanId = '', flags = '' } = traceParentIn(traceParent ?? '') ?? {};
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
  return isSpanContextValid(context) ? trace.setSpanContext(ROOT_CONTEXT, context) : ROOT_CONTEXT;
};

interface Open {
  readonly span: Span;
  /** The wall clock may be set meanwhile: ends are told by the monotonic one. */
  readonly atNs: bigint;
  readonly monoNs: bigint;
  readonly context: Context;
}

export const createCallSpans = (tracer: Tracer): CallSpans => {
  const calls = new Map<number, Open>();
  const effects = new Map<string, Open>();

  const bounded = <K>(open: Map<K, Open>): void => {
    const [oldest] = open.keys();
    if (open.size > OPEN_MAX && oldest !== undefined) open.delete(oldest);
  };

  const begin = (name: string, record: Sequenced, parent: Context, kind: SpanKind, attributes: Attributes): Open => {
    const { atNs, monoNs } = record;
    const span = tracer.startSpan(name, { kind, startTime: hrTime(atNs), attributes }, parent);
    return { span, atNs, monoNs, context: trace.setSpan(parent, span) };
  };

  const end = ({ span, atNs, monoNs }: Open, record: Sequenced, failure: Failure | undefined): void => {
    // Its message may quote what a client asked for, and leaves the node; the record has it.
    if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure.reason });
    span.end(hrTime(atNs + (record.monoNs - monoNs)));
  };

  const beginCall = (record: Sequenced & { readonly body: BodyOf<'call.received'> }): void => {
    const { request, caller, traceParent } = record.body;
    const rpc = rpcOf(request);
    const attributes: Attributes = { 'rpc.system': 'grpc', 'rpc.method': rpc, 'scribe.call': record.seq };
    if (caller !== null) attributes['client.process.pid'] = caller.pid;
    calls.set(record.seq, begin(rpc, record, parentOf(traceParent), SpanKind.SERVER, attributes));
    bounded(calls);
  };

  const beginEffects = (record: Sequenced & { readonly body: BodyOf<'effects.requested'> }): void => {
    const parent = calls.get(record.call ?? 0)?.context ?? ROOT_CONTEXT;
    record.body.effects.forEach(({ kind }, index) => {
      // A timer that nobody wants any more ends without a word.
      if (kind === 'WaitUntil') return;
      const id = effectId(record.seq, index);
      const attributes = { 'scribe.effect': id, 'scribe.object': record.stream };
      effects.set(id, begin(kind, record, parent, SpanKind.INTERNAL, attributes));
      bounded(effects);
    });
  };

  const hear = (record: Sequenced): void => {
    switch (record.type) {
      case 'call.received':
        return beginCall(record);
      case 'effects.requested':
        return beginEffects(record);
      case 'effect.ended': {
        const open = effects.get(record.body.effect);
        if (open === undefined) return;
        effects.delete(record.body.effect);
        return end(open, record, record.body.failure);
      }
      case 'call.completed': {
        const open = calls.get(record.call ?? 0);
        if (open === undefined) return;
        calls.delete(record.call ?? 0);
        const { code, failure, response } = record.body;
        open.span.setAttribute('rpc.grpc.status_code', code);
        if (response?.id !== undefined) open.span.setAttribute('scribe.object', response.id);
        return end(open, record, failure);
      }
      default:
    }
  };

  return {
    hearRecords: (records) => records.forEach(hear),
    hearRead: ({ atNs, method, code, durationNs, callerPid }, traceParent) => {
      const span = tracer.startSpan(
        method,
        {
          kind: SpanKind.SERVER,
          startTime: hrTime(atNs - durationNs),
          attributes: {
            'rpc.system': 'grpc',
            'rpc.method': method,
            'rpc.grpc.status_code': code,
            'client.process.pid': callerPid,
          },
        },
        parentOf(traceParent()),
      );
      if (code !== GrpcCode.OK) span.setStatus({ code: SpanStatusCode.ERROR, message: codeName(code) });
      span.end(hrTime(atNs));
    },
  };
};
