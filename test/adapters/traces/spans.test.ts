/**
 * What spans say of calls and effects that failed: who may read a collector need not be who may read the journal. Whose
 * children they are.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SpanStatusCode, type Tracer } from '@opentelemetry/api';
import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import { createCallSpans } from '../../../src/adapters/traces/spans.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { fromJournalRecord } from '../../../src/engine/codec.ts';
import { recordsOf, startNode } from '../../cli/support.ts';

const canary = 'canary-5f1c';

/** A tracer, and the spans of it that have ended. */
const traced = (): { readonly tracer: Tracer; readonly ended: readonly ReadableSpan[] } => {
  const ended: ReadableSpan[] = [];
  const provider = new TracerProvider({
    spanProcessors: [
      {
        onStart: () => undefined,
        onEnd: (span) => void ended.push(span),
        forceFlush: () => Promise.resolve(),
        shutdown: () => Promise.resolve(),
      },
    ],
  });
  return { tracer: provider.getTracer('test'), ended };
};

describe('spans', () => {
  it('are below the span that a traceparent names, where it is one by W3C Trace Context', () => {
    const [traceId, spanId] = ['a'.repeat(32), 'b'.repeat(16)];
    const parentOf = (traceParent: string): string | undefined => {
      const { ended, tracer } = traced();
      const read = {
        atNs: 0n,
        method: 'Version',
        code: 0,
        durationNs: 0n,
        callerPid: 0,
        callerUid: 0,
        subject: '',
      } as const;
      createCallSpans(tracer).hearRead(read, () => traceParent);
      return ended[0]?.parentSpanContext?.spanId;
    };
    for (const known of [`00-${traceId}-${spanId}-01`, `fe-${traceId}-${spanId}-01`, `01-${traceId}-${spanId}-01-more`])
      assert.equal(parentOf(known), spanId, known);
    for (const none of [
      ...['', `ff-${traceId}-${spanId}-01`, `00-${traceId}-${spanId}-01-more`, `01-${traceId}-${spanId}-01more`],
      ...[`00-${'0'.repeat(32)}-${spanId}-01`, `00-${traceId}-${spanId}`, `00-${traceId.toUpperCase()}-${spanId}-01`],
    ])
      assert.equal(parentOf(none), undefined, none);
  });

  it('of what failed have the reason and no message, which quotes what a client asked for', async () => {
    const node = await startNode({
      perform: {
        PullImage: async () => {
          throw new FailureError('RegistryFailed', `it was asked for ${canary}`);
        },
      },
    });
    await node.ask({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
    const { ended, tracer } = traced();
    const records = recordsOf(node);
    assert.ok(records.some(({ body }) => body.includes(canary)));
    createCallSpans(tracer).hearRecords(records.flatMap((record) => fromJournalRecord(record) ?? []));
    const told = ended.map(({ name, status, attributes, events }) => ({ name, status, attributes, events }));
    const status = { code: SpanStatusCode.ERROR, message: 'RegistryFailed' };
    // The effect, and then the call.
    assert.deepEqual(
      told.map((span) => [span.name, span.status]),
      [
        ['PullImage', status],
        ['PullImage', status],
      ],
    );
    assert.doesNotMatch(JSON.stringify(told), new RegExp(canary));
  });
});
