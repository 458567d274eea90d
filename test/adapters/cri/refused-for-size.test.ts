/** Requests and answers that are larger than the server lets through: nothing of them is read or sent, and what was asked is noted as refused. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import { withCode } from '../../support/failures.ts';
import { container, idOf, rawClient, startServer, testModel } from './support.ts';

const messageBytesMax = 1024 * 1024;

it('C10: a request that is refused for its size is recorded with who sent it', { timeout: 30_000 }, async (t) => {
  const refused: unknown[] = [];
  const server = await startServer(t, {
    parts: { messageBytesMax },
    submit: (draft, { caller }) => {
      if (draft.method === 'Refused') refused.push([draft.rpc, draft.failure.reason, caller?.pid]);
      return Promise.resolve({ outcome: { ok: true, value: {} }, attachment: null });
    },
  });
  const client = rawClient(t, server.socket);
  const { code } = await client.call('/runtime.v1.RuntimeService/RunPodSandbox', Buffer.alloc(messageBytesMax + 1));
  assert.equal(code, GrpcCode.RESOURCE_EXHAUSTED);
  assert.deepEqual(refused, [['RunPodSandbox', 'TooLarge', process.pid]]);
});

describe('a list that is larger than an answer may be', { timeout: 30_000 }, () => {
  const metrics = [0, 1].map((at) => ({
    ...{ metrics: [], containerMetrics: [] },
    podSandboxId: String(at).repeat(messageBytesMax / 2),
  }));

  it('says so, is noted as one that failed, and names the call that answers it in parts, which does', async (t) => {
    const podMetricsOf = () => Promise.resolve(metrics);
    const view = testModel();
    const config = { metadata: { name: 'x'.repeat(messageBytesMax) } };
    view.put({ containers: [container(idOf('c1'), idOf('a'), { config })] });
    const { cri, reads } = await startServer(t, { view, parts: { messageBytesMax, podMetricsOf } });
    const refused = (call: string, stream: string) =>
      withCode(
        GrpcCode.RESOURCE_EXHAUSTED,
        new RegExp(
          `The answer to ${call} has \\d+ bytes, more than limits\\.request_max \\(1048576\\) .*: ask ${stream},`,
        ),
      );
    const { runtime } = cri;
    // One answers from what is known, the other from what is looked up first.
    await assert.rejects(runtime.listContainers(), refused('ListContainers', 'StreamContainers'));
    await assert.rejects(runtime.listPodSandboxMetrics(), refused('ListPodSandboxMetrics', 'StreamPodSandboxMetrics'));
    assert.equal((await Array.fromAsync(runtime.streamPodSandboxMetrics())).length, metrics.length);
    assert.deepEqual(
      reads.map(({ method, code }) => [method, code]),
      [
        ['ListContainers', GrpcCode.RESOURCE_EXHAUSTED],
        ['ListPodSandboxMetrics', GrpcCode.RESOURCE_EXHAUSTED],
        ['StreamPodSandboxMetrics', GrpcCode.OK],
      ],
    );
  });
});
