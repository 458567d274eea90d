/** Calls that no record tells of, as those who observe hear of them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createFindings } from '../../src/daemon/findings.ts';
import { startObserving } from '../../src/daemon/metrics-and-traces.ts';
import type { CallReply } from '../../src/engine/ports.ts';
import { onCleanup } from '../support/cleanup.ts';
import { testModel } from '../adapters/cri/support.ts';
import { clock } from '../adapters/stats/support.ts';

const refused: CallReply = {
  outcome: { ok: false, failure: { reason: 'DiskFull', message: 'The disk is full.' } },
  attachment: null,
  unrecorded: true,
};

describe('metrics', { timeout: 20_000 }, () => {
  it('count what is refused before it is decided about, and no other call twice', async (t) => {
    let written = '';
    const log = pino({ level: 'info' }, { write: (line) => void (written += line) });
    const { unrecorded: _, ...recorded } = refused;
    const observed = await startObserving({
      config: { metrics: { address: { host: '127.0.0.1', port: 0 } }, tracing: { endpoint: null, sampleRatio: 1 } },
      version: '1',
      nodeName: 'node',
      submit: async ({ method }) => (method === 'RunPodSandbox' ? refused : recorded),
      recordRead: () => assert.fail('no read'),
      journal: { waitingRecords: () => 0 },
      journalPath: '/nowhere/journal.db',
      view: testModel(),
      clock,
      findings: createFindings(),
      eventsPassedOver: () => 0,
      log,
      report: (message) => assert.fail(message),
    });
    onCleanup(t, observed.close);
    const options = { caller: null, deadlineNs: null };
    assert.equal(await observed.submit({ method: 'RunPodSandbox', runtimeHandler: '', config: {} }, options), refused);
    await observed.submit({ method: 'StopPodSandbox', podSandboxId: 'p' }, options);
    const [url = ''] = /http:[^"]+/.exec(written) ?? [];
    const calls = (await (await fetch(url)).text()).split('\n').filter((line) => line.startsWith('scribe_calls_total'));
    assert.deepEqual(calls, ['scribe_calls_total{method="RunPodSandbox",code="RESOURCE_EXHAUSTED"} 1']);
  });
});
