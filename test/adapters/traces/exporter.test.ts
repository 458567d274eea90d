/** Spans on their way to collectors that answer wrong, too much, or not at all. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { createExporter } from '../../../src/adapters/traces/exporter.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { eventually } from '../../support/pods.ts';

const startCollector = async (t: TestContext, answer: (response: ServerResponse) => void): Promise<string> => {
  const server = createServer((request, response) => {
    request.resume();
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onCleanup(t, () => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
};

const startExporter = (t: TestContext, endpoint: string) => {
  const told: string[] = [];
  const warn = (message: string): void => void told.push(message);
  const exporter = createExporter({ endpoint, sampleRatio: 1, version: '1', nodeName: 'node', warn });
  onCleanup(t, exporter.close);
  const trace = (): void => exporter.tracer.startSpan('call').end();
  return { ...exporter, told, trace };
};

describe('traces on their way to a collector', () => {
  it('are told to be refused in one short sentence, however much the collector says, and not each time', async (t) => {
    let requests = 0;
    const endpoint = await startCollector(t, (response) => {
      requests += 1;
      response.writeHead(400).end('X'.repeat(2_000_000));
    });
    const { trace, told, counts } = startExporter(t, endpoint);
    for (let batch = 1; batch <= 3; batch += 1) {
      trace();
      await eventually('another batch', async () => requests === batch);
    }
    await eventually('the answer', async () => told.length > 0);
    assert.deepEqual(told, ['Bad Request']);
    assert.deepEqual(counts(), { ended: 3, exported: 0 });
  });

  it('are told with what the collector says of those that it rejects', async (t) => {
    const partialSuccess = { rejectedSpans: 1, errorMessage: 'too old'.repeat(10_000) };
    const endpoint = await startCollector(t, (response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ partialSuccess }));
    });
    const { trace, told } = startExporter(t, endpoint);
    trace();
    await eventually('the answer', async () => told.length > 0);
    assert.match(told.join('\n'), /^Received Partial Success response: \{"rejectedSpans":1,"errorMessage":"too old/);
    assert.ok(told.join('\n').length < 1_000);
  });

  it('are dropped when nobody is there, and the end waits no longer than it may', async (t) => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await new Promise((closed) => server.close(closed));
    const { trace, told, counts, close } = startExporter(t, `http://127.0.0.1:${port}/v1/traces`);
    for (let span = 0; span < 10_000; span += 1) trace();
    const closingMs = performance.now();
    await close();
    assert.ok(performance.now() - closingMs < 6_000);
    assert.deepEqual(counts(), { ended: 10_000, exported: 0 });
    assert.ok(told.every((sentence) => sentence.length < 1_000));
  });
});
