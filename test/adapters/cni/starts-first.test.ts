/** Who goes first where pods start and stop at the same time: an ADD at once, a DEL when there is a place for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStartsFirst } from '../../../src/adapters/cni/starts-first.ts';

const FOREVER_MS = 60_000;

/** Work that goes on until it is told to end; `begun` has the names in the order in which they began. */
const workshop = () => {
  const begun: string[] = [];
  const ends = new Map<string, (how: Error | null) => void>();
  const work = (name: string) => (): Promise<void> => {
    begun.push(name);
    return new Promise((resolve, reject) => ends.set(name, (how) => (how === null ? resolve() : reject(how))));
  };
  const end = async (name: string, how: Error | null = null): Promise<void> => {
    ends.get(name)?.(how);
    await new Promise(setImmediate);
  };
  return { begun, work, end };
};

test('while a pod is attached no more are detached than there are places, first come first served', async () => {
  const { begun, work, end } = workshop();
  const { add, del } = createStartsFirst(2, FOREVER_MS);
  void add(work('add'));
  for (const name of ['one', 'two', 'three', 'four']) void del(work(name));
  await new Promise(setImmediate);
  assert.deepEqual(begun, ['add', 'one', 'two']);
  void add(work('another add'));
  assert.equal(begun.at(-1), 'another add');
  await end('two');
  assert.deepEqual(begun.slice(4), ['three']);
  await end('add');
  assert.equal(begun.length, 5);
  await end('another add');
  assert.deepEqual(begun.slice(4), ['three', 'four']);
  for (const name of ['one', 'three', 'four']) await end(name);
});

test('while none is attached all are detached at once', async () => {
  const { begun, work, end } = workshop();
  const { del } = createStartsFirst(1, FOREVER_MS);
  const names = ['one', 'two', 'three'];
  for (const name of names) void del(work(name));
  await new Promise(setImmediate);
  assert.deepEqual(begun, names);
  for (const name of names) await end(name);
});

test('one that fails gives its place back, and its failure is its own', async () => {
  const { begun, work, end } = workshop();
  const { add, del } = createStartsFirst(1, FOREVER_MS);
  void add(work('add'));
  const failing = del(work('failing'));
  void del(work('next'));
  await new Promise(setImmediate);
  const rejected = assert.rejects(failing, /it is stuck/);
  await end('failing', new Error('it is stuck'));
  await rejected;
  assert.deepEqual(begun, ['add', 'failing', 'next']);
  for (const name of ['add', 'next']) await end(name);
});

test('one that hangs keeps its place for a moment only, and gives back none when it ends', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { begun, work, end } = workshop();
  const { add, del } = createStartsFirst(1, FOREVER_MS);
  void add(work('add'));
  for (const name of ['hanging', 'next', 'last']) void del(work(name));
  await new Promise(setImmediate);
  t.mock.timers.tick(FOREVER_MS);
  await new Promise(setImmediate);
  assert.deepEqual(begun, ['add', 'hanging', 'next']);
  await end('hanging');
  assert.deepEqual(begun, ['add', 'hanging', 'next'], 'its place was given to the next one');
  await end('next');
  assert.equal(begun.at(-1), 'last');
  for (const name of ['last', 'add']) await end(name);
});
