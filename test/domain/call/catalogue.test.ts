/** What the catalogue of calls says beside decisions: ids, what a call is about, and a full disk. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callMethods, fullDiskFailure, madeBy, requestOf, subjectsOf } from '../../../src/domain/call/catalogue.ts';
import { containerStream, sandboxStream } from '../../../src/domain/model/records.ts';
import { initialState } from '../../../src/domain/model/state.ts';

const none = initialState();
const counting = (): (() => string) => {
  let last = 0;
  return () => `id${(last += 1)}`;
};

test('a draft gets the ids it lacks, each once, and keeps those it has', () => {
  const run = { method: 'RunPodSandbox', config: {}, runtimeHandler: '' } as const;
  assert.deepEqual(requestOf(none, run, counting()), { ...run, newId: 'id1' });
  assert.deepEqual(requestOf(none, { ...run, newId: 'own' }, counting()), { ...run, newId: 'own' });
  const restore = {
    method: 'RestorePod',
    checkpointPath: '/checkpoint',
    config: {},
    runtimeHandler: '',
    containerConfigs: [{}, {}],
  } as const;
  const made = requestOf(none, restore, counting());
  assert.deepEqual(made, { ...restore, newId: 'id1', newContainerIds: ['id2', 'id3'] });
  assert.deepEqual(subjectsOf(made), [sandboxStream('id1'), containerStream('id2'), containerStream('id3')]);
});

test('images are named in their normal form', () => {
  const pull = { method: 'PullImage', image: 'busybox', credentials: null } as const;
  assert.deepEqual(requestOf(none, pull, counting()), { ...pull, image: 'docker.io/library/busybox:latest' });
  assert.deepEqual(requestOf(none, { ...pull, image: '::' }, counting()), { ...pull, image: '::' });
});

test('the id in an answer is that of what the call makes', () => {
  assert.equal(madeBy('RunPodSandbox', 'p'), sandboxStream('p'));
  assert.equal(madeBy('RestorePod', 'p'), sandboxStream('p'));
  assert.equal(madeBy('CreateContainer', 'c'), containerStream('c'));
  assert.equal(madeBy('StartContainer', 'c'), null);
});

test('C7: only what stops or removes is served on a full disk', () => {
  const served = callMethods.filter((method) => fullDiskFailure({ method } as never) === null);
  assert.deepEqual(served.sort(), [
    'RemoveContainer',
    'RemoveImage',
    'RemovePodSandbox',
    'StopContainer',
    'StopPodSandbox',
  ]);
});
