/** What `scribe nri` is told: who is there, who has left, and what each owns in containers that run. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NriPluginStatus } from '../../src/adapters/nri/plugins.ts';
import { nriPluginsReply } from '../../src/daemon/nri-status.ts';
import type { FieldOwners } from '../../src/domain/model/nri.ts';
import { initialState, type NodeState } from '../../src/domain/model/state.ts';
import { container, podSandbox } from '../adapters/cri/support.ts';
import { exited } from '../support/phases.ts';

const status: NriPluginStatus = {
  id: '10-logger@1',
  index: '10',
  name: 'logger',
  launched: true,
  pid: 812,
  state: 'active',
  events: ['CreateContainer'],
  nriVersion: 'v0.12.5',
  registeredNs: 1_795_420_800_000_000_000n,
  requests: 3,
  failures: 2,
  deadlinesMissed: 1,
  missesInARow: 0,
  latencies: [{ asked: 'CreateContainer', answers: 1, p50Ns: 5n, p99Ns: 7n, maxNs: 9n }],
  lastFailure: 'it went wrong',
};

const owners: FieldOwners = {
  simple: { MemLimit: '20-left', OciHooks: '10-logger,20-left', Args: '-20-left' },
  compound: { Env: { A: '10-logger', B: '-10-logger' } },
};

const stateWith = (...containers: readonly ReturnType<typeof container>[]): NodeState => {
  const state = initialState();
  state.sandboxes.set('p', podSandbox('p'));
  for (const one of containers) state.containers.set(one.id, one);
  return state;
};

const adjusted = { nri: { hooks: {}, adjusted: { adjust: {}, owners } } };

describe('what is told of NRI plugins', () => {
  it('is what the adapter knows, in the order in which they are asked', () => {
    const other = {
      ...status,
      index: '05',
      name: 'first',
      launched: false,
      pid: null,
      nriVersion: '',
      lastFailure: null,
    };
    const { enabled, plugins } = nriPluginsReply([status, other], stateWith());
    assert.ok(enabled);
    assert.deepEqual(plugins, [
      { ...plugins[1], index: '05', name: 'first', launched: false, pid: 0, nriVersion: '', lastFailure: '' },
      {
        index: '10',
        name: 'logger',
        state: 'active',
        nriVersion: 'v0.12.5',
        launched: true,
        pid: 812,
        requests: '3',
        failures: '2',
        deadlinesMissed: '1',
        lastFailure: 'it went wrong',
        hooks: ['CreateContainer'],
        latencies: [{ hook: 'CreateContainer', answers: '1', p50Ns: '5', p99Ns: '7', maxNs: '9' }],
        owned: [],
        registeredNs: '1795420800000000000',
      },
    ]);
  });

  it('is what they own in containers that run, also of those that have left', () => {
    const state = stateWith(
      container('c', 'p', adjusted),
      container('over', 'p', {
        ...adjusted,
        phase: exited({ exitStatus: 0, finishedAtNs: '4000', reason: 'Completed', message: '' }),
      }),
      container('plain', 'p'),
    );
    const { plugins } = nriPluginsReply([status], state);
    const inC = {
      containerId: 'c',
      containerName: 'c-c',
      podNamespace: 'default',
      podName: 'pod-p',
    };
    assert.deepEqual(
      plugins.map(({ index, name, state: its, owned }) => [`${index}-${name}`, its, owned]),
      [
        ['10-logger', 'active', [{ ...inC, fields: ['OciHooks', 'Env A'] }]],
        ['20-left', 'gone', [{ ...inC, fields: ['MemLimit', 'OciHooks'] }]],
      ],
    );
  });

  it('is that NRI is off', () => {
    assert.deepEqual(nriPluginsReply(null, stateWith(container('c', 'p'))), { enabled: false, plugins: [] });
  });
});
