/** Which pods have one shim together, who of them ends it, and what a new one is told of it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DaemonFacts } from '../../../src/domain/model/daemon-facts.ts';
import { sandboxStream } from '../../../src/domain/model/records.ts';
import type { RuntimeHandler } from '../../../src/domain/model/runtime-handler.ts';
import type { NodeState } from '../../../src/domain/model/state.ts';
import { effectRequest } from '../../../src/domain/turn/effect-requests.ts';
import { FACTS } from '../../simulation/facts.ts';
import { given, type Happening } from '../given.ts';
import { allSucceeds, call, fails, inTurn, nodeStarts, podConfig, restart, succeeds } from '../happenings.ts';

const runc = FACTS.handlers[0];
assert.ok(runc !== undefined);
const factsWith = (...handlers: readonly RuntimeHandler[]): DaemonFacts => ({ ...FACTS, handlers });
const upTo = (podsPerShim: number, name = 'runc'): RuntimeHandler => ({ ...runc, name, podsPerShim });
const sharing = nodeStarts(factsWith(upTo(3), upTo(3, 'other')));

const asked = (id: string, runtimeHandler = ''): Happening =>
  call({
    method: 'RunPodSandbox',
    newId: id,
    config: podConfig({ metadata: { name: id, uid: id, namespace: 'default', attempt: 0 } }),
    runtimeHandler,
  });
const made = (id: string, runtimeHandler = ''): Happening => inTurn(asked(id, runtimeHandler), allSucceeds);
const stopped = (id: string): Happening => call({ method: 'StopPodSandbox', podSandboxId: id });
const shimIsLost =
  (id: string): Happening =>
  (tell) =>
    tell({ type: 'shim.lost', body: {}, stream: sandboxStream(id), call: null });

const shimsOf = ({ sandboxes }: NodeState): Record<string, string | undefined> =>
  Object.fromEntries([...sandboxes].map(([id, { sharedShimId }]) => [id, sharedShimId]));

/** Whether a StopShim under way leaves the shim to others; by pod. */
const isLeft = (state: NodeState): Record<string, boolean | undefined> =>
  Object.fromEntries(
    [...state.effects.values()].flatMap((effect) => {
      const request = effect.intent.kind === 'StopShim' ? effectRequest(state, effect) : null;
      return request?.ok === true && request.value.kind === 'StopShim'
        ? [[request.value.podSandboxId, request.value.shared?.isInUse]]
        : [];
    }),
  );

describe('a shim that pods share', () => {
  it('is filled before another one is started', () => {
    const { state } = given(sharing, ...['a', 'b', 'c', 'd'].map((id) => made(id)));
    assert.deepEqual(shimsOf(state), { a: 'shared-a', b: 'shared-a', c: 'shared-a', d: 'shared-d' });
  });

  it('is one for pods that are made at the same moment', () => {
    const { state } = given(sharing, ...['a', 'b', 'c', 'd'].map((id) => asked(id)), succeeds('PreparePodSandbox'));
    assert.deepEqual(shimsOf(state), { a: 'shared-a', b: 'shared-a', c: 'shared-a', d: 'shared-d' });
  });

  it('is never one of two runtime handlers', () => {
    const { state } = given(sharing, made('a'), made('b', 'other'), made('c', 'other'), made('d'));
    assert.deepEqual(shimsOf(state), { a: 'shared-a', b: 'shared-b', c: 'shared-b', d: 'shared-a' });
  });

  it('is there only where the handler says so', () => {
    assert.deepEqual(shimsOf(given(made('a'), made('b')).state), { a: undefined, b: undefined });
  });

  it('takes no pod in that has been lost or was not asked since the daemon started', () => {
    const lost = given(sharing, made('a'), made('b'), shimIsLost('a'), shimIsLost('b'), made('c'));
    assert.equal(shimsOf(lost.state)['c'], 'shared-c');
    const silent = given(sharing, made('a'), restart({ facts: factsWith(upTo(3)) })).when(
      asked('b'),
      succeeds('PreparePodSandbox'),
    );
    assert.equal(shimsOf(silent.state)['b'], 'shared-b');
  });

  it('is asked by all of its pods when it gave one of them no answer, and takes no pod in where it gives none then', () => {
    const { state, when } = given(sharing, made('a'), made('b'), asked('c'), succeeds('PreparePodSandbox'));
    assert.deepEqual(shimsOf(state), { a: 'shared-a', b: 'shared-a', c: 'shared-a' });
    when(fails('StartShim', 'TimedOut')).follows({ asks: ['ReconnectShim', 'ReconnectShim'] });
    const silent = given(
      sharing,
      made('a'),
      inTurn(
        asked('b'),
        succeeds('PreparePodSandbox'),
        fails('StartShim', 'TimedOut'),
        fails('ReconnectShim', 'TimedOut'),
      ),
      asked('c'),
    ).when(succeeds('PreparePodSandbox'));
    assert.equal(shimsOf(silent.state)['c'], 'shared-c');
  });

  it('is ended by the last of its pods, and let go of by those before', () => {
    const { state, when } = given(sharing, made('a'), made('b'), stopped('a'));
    assert.deepEqual(isLeft(state), { a: true });
    // At the same moment: that of the first is not done yet.
    when(stopped('b'));
    assert.equal(isLeft(state)['b'], false);
  });

  it('is not ended under a pod that is about to have it', () => {
    const joining = given(sharing, made('a'), asked('b'), succeeds('PreparePodSandbox'), stopped('a'));
    assert.deepEqual(isLeft(joining.state), { a: true });
  });

  it('is ended after a start by the last that may have it, whoever was half made', () => {
    const { state, when } = given(sharing, made('a'), asked('b'), succeeds('PreparePodSandbox'), restart());
    assert.deepEqual(isLeft(state), { b: true });
    when(stopped('a'), succeeds('ReconnectShim'));
    assert.equal(isLeft(state)['a'], false);
  });

  it('frees a place when a pod leaves it', () => {
    const { state } = given(sharing, made('a'), made('b'), made('c'), stopped('b'), allSucceeds, made('d'));
    assert.equal(shimsOf(state)['d'], 'shared-a');
  });
});
