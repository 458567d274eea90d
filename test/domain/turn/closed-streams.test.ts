/** C11: what may be pruned of an object that is still there: commands that are over, and no others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Container, type ContainerRun, initialState } from '../../../src/domain/model/state.ts';
import { classOfCall, isClosedStream } from '../../../src/domain/turn/closed-streams.ts';
import { running } from '../../support/phases.ts';

const BODY = JSON.stringify({
  request: { method: 'ExecSync', containerId: 'c', cmd: ['true'], timeoutSeconds: '0', newId: 'x' },
});

const RECEIVED = { type: 'call.received', seq: 7, body: BODY };

const stateWith = (run: Partial<ContainerRun>) => {
  const state = initialState();
  state.containers.set('c', { phase: running(run) } as Container);
  return state;
};

test('C11: a command that is over may be pruned, one that is still to be ended may not', () => {
  assert.equal(classOfCall(stateWith({}), { ...RECEIVED, seq: 7 }), 'probes');
  assert.equal(classOfCall(initialState(), { ...RECEIVED, seq: 7 }), 'probes');
  assert.equal(classOfCall(stateWith({ staleExecs: ['x'] }), { ...RECEIVED, seq: 7 }), null);
  assert.equal(classOfCall(stateWith({ execs: ['x'] }), { ...RECEIVED, seq: 7 }), null);
  const body = '{"request":{"method":"StopContainer","containerId":"c"}}';
  assert.equal(classOfCall(stateWith({}), { ...RECEIVED, body }), null);
});

test('C11: a command may not be pruned while something is under way on its behalf', () => {
  const state = stateWith({});
  const intent = { kind: 'WaitUntil', dueAtNs: '1', purpose: 'retry' } as const;
  state.effects.set('9.0', { id: '9.0', stream: 'container/c', intent, call: 7 });
  assert.equal(classOfCall(state, { ...RECEIVED, seq: 7 }), null);
  assert.equal(classOfCall(state, { ...RECEIVED, seq: 8 }), 'probes');
});

test('C11: the stream of a pod that is gone may be pruned when nothing of it is under way any more', () => {
  const state = initialState();
  assert.equal(isClosedStream(state, 'sandbox/p'), true);
  const intent = { kind: 'StreamPort', sessionId: 's', port: 80 } as const;
  state.effects.set('1.0', { id: '1.0', stream: 'sandbox/p', intent, call: null });
  assert.equal(isClosedStream(state, 'sandbox/p'), false);
  assert.equal(isClosedStream(state, 'sandbox/other'), true);
});

test('C11: sessions, reads and calls that failed have classes of their own', () => {
  const received = (method: string): string => JSON.stringify({ request: { method, containerId: 'c', newId: 'x' } });
  for (const method of ['Exec', 'ExecSession', 'AttachSession', 'PortForward'])
    assert.equal(classOfCall(stateWith({}), { ...RECEIVED, body: received(method) }), 'sessions');
  assert.equal(classOfCall(stateWith({ execs: ['x'] }), { ...RECEIVED, body: received('ExecSession') }), null);
  assert.equal(classOfCall(initialState(), { ...RECEIVED, body: received('Read') }), 'reads');
  const completed = { type: 'call.completed', seq: 8 };
  assert.equal(
    classOfCall(initialState(), { ...completed, body: '{"code":5,"failure":{"reason":"x"}}' }),
    'refused calls',
  );
  assert.equal(classOfCall(initialState(), { ...completed, body: '{"code":0}' }), null);
});
