/** `scribe nri`: its tables, its JSON, and what it says where there is no daemon or no NRI. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { tempDir } from '../support/temp-dir.ts';
import { fakeDaemon } from './fake-daemon.ts';
import { jsonLines, scribe } from './support.ts';

const nriPlugins = {
  enabled: true,
  plugins: [
    {
      index: '10',
      name: 'logger',
      state: 'active',
      nriVersion: 'v0.12.5',
      registeredNs: '1795420800123000000',
      launched: true,
      pid: 812,
      requests: '41',
      failures: '2',
      deadlinesMissed: '1',
      lastFailure: 'The NRI plugin 10-logger did not answer StartContainer within 2000 ms.',
      hooks: ['CreateContainer'],
      latencies: [{ hook: 'CreateContainer', answers: '39', p50Ns: '512000', p99Ns: '1250000', maxNs: '2000000' }],
      owned: [
        {
          containerId: 'c',
          containerName: 'app',
          podNamespace: 'default',
          podName: 'pod',
          fields: ['Env A', 'MemLimit'],
        },
      ],
    },
    { index: '20', name: 'evil\u001b[2J', state: 'waiting', launched: true, requests: '0', failures: '0' },
  ],
};

const cellsOf = (text: string): string[][] => text.split('\n').map((line) => line.split(/ {2,}/));

describe('nri', () => {
  test('has a table of plugins, one of how long they take, and one of what they own', async (t) => {
    const { socketPath } = await fakeDaemon(t, { nriPlugins });
    const { exitStatus, stdout } = await scribe(['nri', '--socket', socketPath, '--utc']);
    assert.equal(exitStatus, 0);
    assert.deepEqual(cellsOf(stdout), [
      ['PLUGIN', 'STATE', 'STARTED', 'PID', 'NRI', 'SINCE', 'REQUESTS', 'FAILED', 'MISSED', 'LAST FAILURE'],
      [
        '10-logger',
        'active',
        'launched',
        '812',
        'v0.12.5',
        '2026-11-23 08:00:00.123Z',
        '41',
        '2',
        '1',
        'The NRI plugin 10-logger did not answer StartContainer within 2000 ms.',
      ],
      ['20-evil\\u{1b}[2J', 'waiting', 'launched', '-', '-', '-', '0', '0', '0', '-'],
      [''],
      ['PLUGIN', 'HOOK', 'ANSWERS', 'P50', 'P99', 'MAX'],
      ['10-logger', 'CreateContainer', '39', '512 µs', '1.25 ms', '2.00 ms'],
      [''],
      ['PLUGIN', 'CONTAINER', 'OWNS'],
      ['10-logger', 'default/pod/app', 'Env A, MemLimit'],
      [''],
    ]);
  });

  test('--json prints each plugin as an object', async (t) => {
    const { socketPath } = await fakeDaemon(t, { nriPlugins });
    const { exitStatus, stdout } = await scribe(['nri', '--socket', socketPath, '--json']);
    assert.equal(exitStatus, 0);
    assert.doesNotMatch(stdout, /\u001b/);
    const [first, second] = jsonLines<Record<string, unknown>>(stdout);
    const { registeredNs: _since, ...plugin } = nriPlugins.plugins[0] ?? assert.fail();
    assert.deepEqual(first, { ...plugin, registeredAt: '2026-11-23T08:00:00.123000000Z' });
    assert.deepEqual(
      ['pid', 'nriVersion', 'registeredAt', 'lastFailure'].map((key) => second?.[key]),
      [null, null, null, null],
    );
  });

  test('says that NRI is off', async (t) => {
    const { socketPath } = await fakeDaemon(t, { nriPlugins: { enabled: false } });
    const { exitStatus, stdout, stderr } = await scribe(['nri', '--socket', socketPath]);
    assert.equal(exitStatus, 0);
    assert.equal(cellsOf(stdout).length, 2);
    assert.match(stderr, /^NRI is off.*nri\.enable/);
  });

  test('says that there is no daemon, and when it is too old', async (t) => {
    const none = await scribe(['nri', '--socket', join(await tempDir(t), 'none')]);
    assert.equal(none.exitStatus, 1);
    assert.match(none.stderr, /There is no daemon at .*: there is no such socket\. Start it with "scribe serve"/);
    const { socketPath } = await fakeDaemon(t, { images: [] });
    const old = await scribe(['nri', '--socket', socketPath]);
    assert.equal(old.exitStatus, 1);
    assert.match(old.stderr, /ListNriPlugins.*UNIMPLEMENTED/);
  });
});
