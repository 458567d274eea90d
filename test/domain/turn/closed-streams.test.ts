/** C11: what may be pruned of an object that is still there: commands that are over, and no others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Container, type ContainerRun, initialState } from '../../../src/domain/model/state.ts';
import { isClosedStream, isProbe } from '../../../src/domain/turn/closed-streams.ts';
import { running } from '../../support/phases.ts';

const BODY = JSON.stringify({
  request: { method: 'ExecSync', containerId: 'c', cmd: ['true'], timeoutSeconds: '0', newId: 'x' },
});

const stateWith = (run: Partial<ContainerRun>) => {
  const state = initialState();
  state.containers.set('c', { phase: running(run) } as Container);
  return state;
};

test('C11: a command that is over may be pruned, one that is still to be ended may not', () => {
  assert.equal(isProbe(stateWith({}), { seq: 7, body: BODY }), true);
  assert.equal(isProbe(initialState(), { seq: 7, body: BODY }), true);
  assert.equal(isProbe(stateWith({ staleExecs: ['x'] }), { seq: 7, body: BODY }), false);
  assert.equal(isProbe(stateWith({ execs: ['x'] }), { seq: 7, body: BODY }), false);
  assert.equal(
    isProbe(stateWith({}), { seq: 7, body: '{"request":{"method":"StopContainer","containerId":"c"}}' }),
    false,
  );
});

test('C11: a command may not be pruned while something is under way on its behalf', () => {
  const state = stateWith({});
  const intent = { kind: 'WaitUntil', dueAtNs: '1', purpose: 'retry' } as const;
  state.effects.set('9.0', { id: '9.0', stream: 'container/c', intent, call: 7 });
  assert.equal(isProbe(state, { seq: 7, body: BODY }), false);
  assert.equal(isProbe(state, { seq: 8, body: BODY }), true);
});

test('C11: the stream of a pod that is gone may be pruned when nothing of it is under way any more', () => {
  const state = initialState();
  assert.equal(isClosedStream(state, 'sandbox/p'), true);
  const intent = { kind: 'StreamPort', sessionId: 's', port: 80 } as const;
  state.effects.set('1.0', { id: '1.0', stream: 'sandbox/p', intent, call: null });
  assert.equal(isClosedStream(state, 'sandbox/p'), false);
  assert.equal(isClosedStream(state, 'sandbox/other'), true);
});
