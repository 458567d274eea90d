/** Requests that are larger than the server takes: nothing of them is read, and still each is a call that was refused. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import { rawClient, startServer } from './support.ts';

it('C10: a request that is refused for its size is recorded with who sent it', { timeout: 30_000 }, async (t) => {
  const messageBytesMax = 1024 * 1024;
  const refused: unknown[] = [];
  const server = await startServer(t, {
    messageBytesMax,
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
