/** Streamed lists: the entries of the list call, each once, in order, in batches that are bounded. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { batchesOf } from '../../../src/adapters/cri/streamed-lists.ts';
import { StreamContainersResponse, StreamImagesResponse } from '../../../src/wire/cri/api.ts';
import { container, idOf, image, podSandbox, startServer, testModel } from './support.ts';

const many = 2_000;

describe('streamed lists', { timeout: 30_000 }, () => {
  it('are cut between entries: no batch is empty, and only a single entry exceeds the bound', () => {
    const images = fc.array(fc.record({ id: fc.string({ maxLength: 300 }) }), { maxLength: 40 });
    fc.assert(
      fc.property(images, fc.integer({ min: 1, max: 500 }), (entries, bytesMax) => {
        const whole = StreamImagesResponse.fromPartial({ images: entries });
        const reply = StreamImagesResponse.encode(whole).finish();
        const batches = [...batchesOf(reply, bytesMax)];
        assert.deepEqual(Buffer.concat(batches), Buffer.from(reply));
        const decoded = batches.map((batch) => StreamImagesResponse.decode(batch).images);
        assert.deepEqual(decoded.flat(), whole.images);
        for (const [index, batch] of batches.entries()) {
          const count = decoded[index]?.length ?? 0;
          assert.ok(count === 1 || (count > 1 && batch.length <= bytesMax));
        }
      }),
    );
  });

  it('tell of every object once over the socket, of none with no message, and are noted as reads', async (t) => {
    const view = testModel();
    const server = await startServer(t, { view });
    const { runtime, image: images } = server.cri;
    const messagesOf = <T>(stream: AsyncIterable<T>): Promise<T[]> => Array.fromAsync(stream);
    assert.deepEqual(await messagesOf(runtime.streamPodSandboxes({})), []);

    const pod = idOf('aa');
    const containers = Array.from({ length: many }, (_, index) => container(idOf(`c${index + 10_000}`), pod));
    view.put({ sandboxes: [podSandbox(pod)], containers, images: [image('sha256:i1')] });
    const batches = await messagesOf(runtime.streamContainers({}));
    assert.ok(batches.length > 1);
    assert.deepEqual(
      batches.flatMap((batch) => batch.containers.map(({ id }) => id)),
      containers.map(({ id }) => id),
    );
    for (const batch of batches) assert.ok(StreamContainersResponse.encode(batch).finish().length <= 65_536);
    const filtered = await messagesOf(runtime.streamContainers({ filter: { id: idOf('c10007') } }));
    assert.deepEqual(
      filtered.flatMap((batch) => batch.containers.map(({ id }) => id)),
      [idOf('c10007')],
    );
    const pods = await messagesOf(runtime.streamPodSandboxes({}));
    assert.deepEqual(
      pods.flatMap(({ podSandboxes }) => podSandboxes.map(({ id }) => id)),
      [pod],
    );
    const listed = await messagesOf(images.streamImages({}));
    assert.deepEqual(
      listed.flatMap((batch) => batch.images.map(({ id }) => id)),
      ['sha256:i1'],
    );
    assert.deepEqual([...new Set(server.reads.map(({ method }) => method))].toSorted(), [
      'StreamContainers',
      'StreamImages',
      'StreamPodSandboxes',
    ]);
  });

  it('end with a client that leaves early, and with nothing else', async (t) => {
    const view = testModel();
    const pod = idOf('aa');
    const containers = Array.from({ length: many }, (_, index) => container(idOf(`c${index + 10_000}`), pod));
    view.put({ sandboxes: [podSandbox(pod)], containers });
    const server = await startServer(t, { view });
    const stream = server.cri.runtime.streamContainers({})[Symbol.asyncIterator]();
    const first = (await stream.next()) as IteratorYieldResult<StreamContainersResponse>;
    assert.ok(first.value.containers.length > 0);
    await stream.return?.();
    assert.equal((await server.cri.runtime.listContainers({})).containers.length, many);
    assert.deepEqual(server.bugs, []);
  });
});
