/** Where two pieces of data differ, and what paths name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differingPaths, memberPath, namesOnPath } from '../../../src/domain/values/json-paths.ts';

const pathsOf = (before: unknown, after: unknown): string[] =>
  [...differingPaths(before, after)].map(({ path }) => path);

test('the innermost places that differ are named, in order', () => {
  const before = { a: 1, list: [{ kind: 'x' }, { kind: 'y' }], same: { deep: [1, 2] }, 'a.b/c': 1 };
  const after = { a: 1, list: [{ kind: 'x' }, { kind: 'z' }, 3], same: { deep: [1, 2] }, 'a.b/c': 2, more: null };
  assert.deepEqual(pathsOf(before, after), ['list[1].kind', 'list[2]', '["a.b/c"]', 'more']);
});

test('what is undefined is absent, and a list is no object', () => {
  assert.deepEqual(pathsOf({ a: undefined }, {}), []);
  assert.deepEqual(pathsOf({ a: [] }, { a: {} }), ['a']);
  assert.deepEqual(pathsOf(null, { a: 1 }), ['']);
  assert.deepEqual([...differingPaths({ a: 1 }, {})], [{ path: 'a', before: 1, after: undefined }]);
});

test('a path names again what it was made of, whatever the names are', () => {
  for (const names of [['config', 'labels', 'app.kubernetes.io/name'], ['a"b\\', ''], ['0', 'x y', ']'], ['phase']]) {
    const path = names.reduce(memberPath, '');
    assert.deepEqual(namesOnPath(path), names, path);
  }
  assert.equal(
    ['config', 'labels', 'app.kubernetes.io/name'].reduce(memberPath, ''),
    'config.labels["app.kubernetes.io/name"]',
  );
  assert.deepEqual(namesOnPath('effects[0].kind'), ['effects', '0', 'kind']);
});

test('what is no path is said to be none', () => {
  for (const text of ['', '.', 'a..b', 'a.', 'a[', 'a["b]', 'a["b"', 'a[b]', 'a["\\x"]', 'a]b'])
    assert.equal(namesOnPath(text), null, text);
});
