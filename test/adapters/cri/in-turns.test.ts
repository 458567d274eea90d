/** Replies of many large entries: others get their turn while they are encoded, and nothing of them is missing. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodedInTurns } from '../../../src/adapters/cri/in-turns.ts';
import { ListPodSandboxMetricsResponse, type Metric, PodSandboxMetrics } from '../../../src/wire/cri/api.ts';
import { idOf, podSandbox, startServer, testModel } from './support.ts';

const metricsOf = (podSandboxId: string): PodSandboxMetrics =>
  PodSandboxMetrics.fromPartial({ podSandboxId, metrics: [{ name: 'm', labelValues: ['a', 'b'] }] });

describe('replies that are encoded in turns', { timeout: 30_000 }, () => {
  it('are what the whole message would be', async () => {
    const podMetrics = Array.from({ length: 20 }, (_, index) => metricsOf(`pod-${index}`));
    const reply = await encodedInTurns(podMetrics, (metrics) => PodSandboxMetrics.encode(metrics).finish());
    assert.deepEqual(Buffer.from(reply), Buffer.from(ListPodSandboxMetricsResponse.encode({ podMetrics }).finish()));
    assert.equal((await encodedInTurns([], () => Buffer.of(1))).length, 0);
  });

  it('C17: are the metrics of pods, listed and streamed: while those of many are encoded, others have their turn', async (t) => {
    const view = testModel();
    const ids = Array.from({ length: 20 }, (_, index) => idOf(`a${index + 1000}`));
    view.put({ sandboxes: ids.map((id) => podSandbox(id)) });
    let turns = 0;
    let isOver = false;
    /** Each of them takes as long to encode as the metrics of some dozens of containers. */
    const slow = (podSandboxId: string): PodSandboxMetrics => ({
      podSandboxId,
      get metrics(): Metric[] {
        const overAtMs = performance.now() + 6;
        while (performance.now() < overAtMs);
        if (podSandboxId === ids[0]) turns = 0;
        if (podSandboxId === ids.at(-1)) isOver = true;
        return [];
      },
      containerMetrics: [],
    });
    const podMetricsOf = (): Promise<PodSandboxMetrics[]> => {
      isOver = false;
      const turn = (): void => {
        if (isOver) return;
        turns += 1;
        setImmediate(turn);
      };
      setImmediate(turn);
      return Promise.resolve(ids.map(slow));
    };
    const { runtime } = (await startServer(t, { view, parts: { podMetricsOf } })).cri;

    const { podMetrics } = await runtime.listPodSandboxMetrics({});
    assert.deepEqual(
      podMetrics.map(({ podSandboxId }) => podSandboxId),
      ids,
    );
    assert.ok(turns >= 5, `${turns} turns`);
    const streamed = await Array.fromAsync(runtime.streamPodSandboxMetrics({}));
    assert.deepEqual(
      streamed.flatMap((batch) => batch.podSandboxMetrics.map(({ podSandboxId }) => podSandboxId)),
      ids,
    );
    assert.ok(turns >= 5, `${turns} turns`);
  });
});
