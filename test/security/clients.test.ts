/** Classes of attacks on a daemon in Node that anybody who reaches its socket could try. */
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import * as wire from '../../src/wire/cri/api.ts';
import { container, idOf, podSandbox, startServer, testModel } from '../adapters/cri/support.ts';
import { running } from '../support/phases.ts';

describe('clients of the socket', { timeout: 60_000 }, () => {
  it('rapid reset: streams that are begun and cancelled by the thousand hold up nobody else', async (t) => {
    const { cri, socket } = await startServer(t, { view: testModel() });
    const client = http2.connect('http://localhost', { createConnection: () => connect(socket) });
    // The server may close the connection of such a client.
    client.on('error', () => undefined);
    for (let round = 0; round < 20 && !client.destroyed && !client.closed; round += 1) {
      for (let count = 0; count < 200; count += 1) {
        const stream = client.request({
          ':method': 'POST',
          ':path': '/runtime.v1.RuntimeService/ListContainers',
          'content-type': 'application/grpc',
          te: 'trailers',
        });
        stream.on('error', () => undefined);
        stream.close(http2.constants.NGHTTP2_CANCEL);
      }
      assert.equal((await cri.runtime.version({})).runtimeName, 'scribe');
    }
    client.destroy();
    assert.deepEqual((await cri.runtime.listContainers({})).containers, []);
  });

  it('numbers beyond 2^53: times and limits come back as they were, to the last digit', async (t) => {
    const view = testModel();
    const most = '9223372036854775807';
    view.put({
      sandboxes: [podSandbox(idOf('a'), { createdAtNs: most })],
      containers: [
        container(idOf('c'), idOf('a'), {
          phase: running({ startedAtNs: '1700000000000000001' }),
          config: { linux: { resources: { memoryLimitInBytes: most, cpuShares: '9007199254740993' } } },
        }),
      ],
    });
    const { cri } = await startServer(t, { view });
    const { status } = await cri.runtime.containerStatus({ containerId: 'c' });
    assert.equal(status?.startedAt, '1700000000000000001');
    const limits = status.resources?.linux ?? wire.LinuxContainerResources.fromPartial({});
    assert.deepEqual([limits.memoryLimitInBytes, limits.cpuShares], [most, '9007199254740993']);
    assert.equal((await cri.runtime.podSandboxStatus({ podSandboxId: 'a' })).status?.createdAt, most);
  });
});
