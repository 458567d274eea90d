/** What spans say of calls and effects that failed: who may read a collector need not be who may read the journal. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SpanStatusCode } from '@opentelemetry/api';
import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import { createCallSpans } from '../../../src/adapters/traces/spans.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { fromJournalRecord } from '../../../src/engine/codec.ts';
import { recordsOf, startNode } from '../../cli/support.ts';

const canary = 'canary-5f1c';

describe('spans', () => {
  it('of what failed have the reason and no message, which quotes what a client asked for', async () => {
    const node = await startNode({
      perform: {
        PullImage: async () => {
          throw new FailureError('RegistryFailed', `it was asked for ${canary}`);
        },
      },
    });
    await node.ask({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
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
    const records = recordsOf(node);
    assert.ok(records.some(({ body }) => body.includes(canary)));
    createCallSpans(provider.getTracer('test')).hearRecords(
      records.flatMap((record) => fromJournalRecord(record) ?? []),
    );
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
