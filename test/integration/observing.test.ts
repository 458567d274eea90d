/** Metrics and traces of a real daemon: what Prometheus reads, what a collector is sent, and a collector that fails. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import type { Daemon } from '../support/daemon.ts';
import { callsAfter, headOf } from '../support/journal.ts';
import { fetchInside, type Netns } from '../support/netns.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, ownPids, podConfig, removePod, runPod } from '../support/pods.ts';
import { type BackgroundProcess, startProcess } from '../support/process.ts';

const top = join(import.meta.dirname, '../..');
const metricsPort = 9324;
const collectorPort = 4318;
const password = 'password-of-the-collector';
const config = `
[metrics]
address = "127.0.0.1:${metricsPort}"
[tracing]
endpoint = "http://someone:${password}@127.0.0.1:${collectorPort}/v1/traces"
`;

const startCollector = async (owner: Owner, netns: Netns, ...mode: readonly string[]): Promise<BackgroundProcess> => {
  const program = join(import.meta.dirname, '../support/otlp-collector-child.ts');
  const collector = await startProcess(
    owner,
    netns.inside([process.execPath, program, String(collectorPort), ...mode]),
  );
  await collector.until(/listening/);
  return collector;
};

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly intValue?: number | string } }[];
  readonly status: { readonly code: number; readonly message?: string };
}

const spansIn = (collector: BackgroundProcess): Span[] =>
  collector
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as Span);

const ask = ({ netns }: Daemon, path: string, method?: string) =>
  fetchInside(netns, `http://127.0.0.1:${metricsPort}${path}`, method);

const figure = (text: string, name: string): number => {
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  assert.ok(line, `${name} is not in\n${text}`);
  return Number(line.slice(name.length + 1));
};

describe('a daemon that is observed', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    node = await startNode(owner, { config });
  });

  test('Prometheus reads its figures', async () => {
    const { daemon } = node;
    const { podSandboxId } = await runPod(daemon, 'figures', busyboxName, ['sleep', '1000'], { pod: ownPids });
    await assert.rejects(daemon.cri.runtime.stopPodSandbox({ podSandboxId: '' }));
    const { status, text } = await ask(daemon, '/metrics');
    assert.equal(status, 200);
    assert.ok(figure(text, 'scribe_calls_total{method="RunPodSandbox",code="OK"}') >= 1);
    assert.equal(figure(text, 'scribe_calls_total{method="StopPodSandbox",code="INVALID_ARGUMENT"}'), 1);
    assert.ok(figure(text, 'scribe_call_duration_seconds_sum{method="StartContainer"}') > 0.001);
    assert.ok(figure(text, 'scribe_effects_total{kind="AttachNetwork",outcome="done"}') >= 1);
    assert.ok(figure(text, 'scribe_journal_commit_seconds_count') > 0);
    assert.ok(figure(text, 'scribe_journal_bytes{file="database"}') > 0);
    assert.equal(figure(text, 'scribe_shims'), 1);
    assert.equal(figure(text, 'scribe_containers{state="CONTAINER_RUNNING"}'), 1);
    assert.equal(figure(text, 'scribe_pod_sandboxes{state="SANDBOX_READY"}'), 1);
    assert.ok(figure(text, 'scribe_event_loop_delay_max_seconds') < 10);
    await removePod(daemon, podSandboxId);
    const after = await ask(daemon, '/metrics');
    assert.equal(figure(after.text, 'scribe_shims'), 0);
    assert.equal(figure(after.text, 'scribe_calls_in_progress'), 0);
    assert.equal(figure(after.text, 'scribe_effects_in_progress'), 0);
  });

  test('each of its own figures is in the document, and each of the document is there', async () => {
    const { text } = await ask(node.daemon, '/metrics');
    const told = [...text.matchAll(/^# TYPE (scribe_\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    const document = await readFile(join(top, 'docs/observability.md'), 'utf8');
    const described = [...document.matchAll(/^\| (scribe_\S+) \| (\S+) \|/gm)].map(
      ([, name, type]) => `${name} ${type}`,
    );
    assert.deepEqual(told.sort(), described.sort());
  });

  test('anything but reading them is refused', async () => {
    assert.equal((await ask(node.daemon, '/')).status, 404);
    assert.equal((await ask(node.daemon, '/metrics', 'POST')).status, 405);
    assert.equal((await ask(node.daemon, '/metrics?x=%00')).status, 200);
  });

  test("a collector gets each call as a span below its caller's, and its effects below that", async (t) => {
    const { daemon } = node;
    const collector = await startCollector(t, daemon.netns);
    const traceId = 'a'.repeat(32);
    const parentId = 'b'.repeat(16);
    const since = headOf(daemon);
    const metadata = { traceparent: `00-${traceId}-${parentId}-01` };
    const request = { config: podConfig(daemon, 'traced', ownPids) };
    const { podSandboxId } = await daemon.cri.runtime.runPodSandbox(request, { metadata });
    await removePod(daemon, podSandboxId);
    const traced = (): Span[] => spansIn(collector).filter((span) => span.traceId === traceId);
    const all = await eventually('spans of the call', async () => {
      const found = traced();
      return found.some(({ name }) => name === 'RunPodSandbox') && found;
    });
    const call = all.find(({ name }) => name === 'RunPodSandbox');
    assert.ok(call);
    assert.equal(call.parentSpanId, parentId);
    const [journaled] = (await callsAfter(daemon, since)).filter(
      ({ request: { method } }) => method === 'RunPodSandbox',
    );
    const number = call.attributes.find(({ key }) => key === 'scribe.call')?.value.intValue;
    assert.equal(Number(number), journaled?.seq);
    const effects = all.filter(({ parentSpanId }) => parentSpanId === call.spanId);
    assert.deepEqual(effects.map(({ name }) => name).sort(), [
      'AttachNetwork',
      'PinNamespaces',
      'PreparePodSandbox',
      'StartShim',
    ]);
    for (const { name, startTimeUnixNano, endTimeUnixNano } of effects) {
      assert.ok(BigInt(startTimeUnixNano) >= BigInt(call.startTimeUnixNano));
      // Nobody waits for it.
      if (name === 'StartShim') continue;
      assert.ok(BigInt(endTimeUnixNano) <= BigInt(call.endTimeUnixNano));
    }
    const others = await eventually('spans of the other calls', async () => {
      const names = spansIn(collector).map(({ name }) => name);
      return names.includes('RemovePodSandbox') && names;
    });
    assert.ok(others.includes('StopPodSandbox'));
  });

  test("a read is a span below its caller's too, which decides whether it is traced", async (t) => {
    const { daemon } = node;
    const collector = await startCollector(t, daemon.netns);
    const [parentId, unsampledId] = ['c'.repeat(16), 'd'.repeat(16)];
    const headerOf = (spanId: string, flags: string): { readonly traceparent: string } => ({
      traceparent: `00-${'e'.repeat(32)}-${spanId}-${flags}`,
    });
    await daemon.cri.runtime.listContainers({}, { metadata: headerOf(unsampledId, '00') });
    await daemon.cri.runtime.listPodSandbox({}, { metadata: headerOf(parentId, '01') });
    const span = await eventually('the span', async () =>
      spansIn(collector).find(({ name }) => name === 'ListPodSandbox'),
    );
    assert.deepEqual([span.traceId, span.parentSpanId], ['e'.repeat(32), parentId]);
    assert.ok(!spansIn(collector).some(({ name }) => name === 'ListContainers'));
  });

  test('a malformed traceparent is no parent', async (t) => {
    const { daemon } = node;
    const collector = await startCollector(t, daemon.netns);
    const metadata = { traceparent: `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01` };
    await daemon.cri.runtime.stopPodSandbox({ podSandboxId: 'nobody' }, { metadata });
    const span = await eventually('the span', async () =>
      spansIn(collector).find(({ name }) => name === 'StopPodSandbox'),
    );
    assert.equal(span.parentSpanId ?? '', '');
  });

  test('a collector that hangs holds nothing up', async (t) => {
    const { daemon } = node;
    await startCollector(t, daemon.netns, 'hang');
    const before = figure((await ask(daemon, '/metrics')).text, 'scribe_spans_total');
    const startedMs = performance.now();
    for (let count = 0; count < 2_000; count += 1) await daemon.cri.runtime.version();
    const tookMs = performance.now() - startedMs;
    t.diagnostic(`2,000 calls in ${Math.round(tookMs)} ms with a collector that hangs`);
    assert.ok(tookMs < 20_000);
    assert.ok(figure((await ask(daemon, '/metrics')).text, 'scribe_spans_total') >= before + 2_000);
    await eventually('a line in the log', async () => daemon.log().includes('"msg":"tracing"'));
    assert.ok(!daemon.log().includes(password), 'the password of the collector is in the log');
    const stoppingMs = performance.now();
    await daemon.stop();
    assert.ok(performance.now() - stoppingMs < 12_000, 'the end of the daemon waits for no collector');
    await daemon.start();
  });

  test('an address that is taken costs the metrics, not the daemon', async (t) => {
    const { daemon } = node;
    await daemon.stop();
    const script = `require('node:http').createServer().listen(${metricsPort}, '127.0.0.1', () => console.log('listening'))`;
    const squatter = await startProcess(t, daemon.netns.inside([process.execPath, '-e', script]));
    await squatter.until(/listening/);
    await daemon.start();
    assert.match(daemon.log(), /metrics\.address cannot be listened on/);
    await squatter.stop();
  });
});
