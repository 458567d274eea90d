/**
 * Runs alone: it measures. ADD and DEL of the usual chain take as long as the plugins' processes do; what the
 * adapter adds to that is bounded here.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { attach, bridgeChain, detach, makeNode, podNetwork } from './support.ts';

const ROUNDS = 11;
const OWN_MEDIAN_MS_MAX = 10;

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

describe('time that attaching takes', { timeout: 120_000 }, () => {
  it('is that of the plugins', async (t) => {
    const node = await makeNode(t);
    const adapter = node.adapter();
    await adapter.start();
    const confList = bridgeChain(node, ['10.77.9.0/24']);
    const took = { add: [] as number[], del: [] as number[], addOwn: [] as number[], delOwn: [] as number[] };
    const measure = async <T>(total: number[], own: number[], work: () => Promise<T>): Promise<T> => {
      node.runs.length = 0;
      const startedMs = performance.now();
      const result = await work();
      const tookMs = performance.now() - startedMs;
      total.push(tookMs);
      own.push(tookMs - node.runs.reduce((sum, run) => sum + run.tookMs, 0));
      return result;
    };
    for (let round = 0; round < ROUNDS; round++) {
      const network = podNetwork(confList, await node.makePodNetns(), {
        portMappings: [{ hostPort: 18080, containerPort: 80 }],
      });
      const { result } = await measure(took.add, took.addOwn, () => attach(adapter, network));
      await measure(took.del, took.delOwn, () => detach(adapter, network, result));
    }
    const ms = (values: readonly number[]): string => `${median(values).toFixed(1)} ms`;
    t.diagnostic(`median ADD ${ms(took.add)}, of which the adapter ${ms(took.addOwn)}`);
    t.diagnostic(`median DEL ${ms(took.del)}, of which the adapter ${ms(took.delOwn)}`);
    assert.ok(median(took.addOwn) < OWN_MEDIAN_MS_MAX, `the adapter itself took ${ms(took.addOwn)} of an ADD`);
    assert.ok(median(took.delOwn) < OWN_MEDIAN_MS_MAX, `the adapter itself took ${ms(took.delOwn)} of a DEL`);
  });
});
