/** Patterns of names in the configuration: what they match, and which are none. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { globExpression, withMatchingKeys } from '../../../src/domain/values/glob.ts';

const matches = (pattern: string, name: string): boolean => globExpression(pattern)?.test(name) ?? false;

describe('a pattern', () => {
  for (const [pattern, name, expected] of [
    ['example.com/*', 'example.com/key', true],
    ['example.com/*', 'exampleXcom/key', false],
    ['example.com/*', 'example.com/a/b', false],
    ['*', 'a/b', false],
    ['*/*', 'a/b', true],
    ['*.runtime.io', 'a.runtime.io', true],
    ['*.runtime.io', 'a.runtime.io/x', false],
    ['key?', 'keys', true],
    ['key?', 'key', false],
    ['key?', 'key/', false],
    ['[a-c]x', 'bx', true],
    ['[^a-c]x', 'bx', false],
    ['[^a-c]x', 'dx', true],
    ['[\\]\\-]', '-', true],
    ['[.]', 'x', false],
    ['a\\*', 'a*', true],
    ['a\\*', 'ab', false],
    ['a+(b)|c{1}$', 'a+(b)|c{1}$', true],
    ['x', 'xx', false],
    ['x', 'x\n', false],
  ] as const) {
    it(`${JSON.stringify(pattern)} ${expected ? 'matches' : 'does not match'} ${JSON.stringify(name)}`, () => {
      assert.equal(matches(pattern, name), expected);
    });
  }

  it('has to be closed, in order and complete', () => {
    for (const pattern of ['[', '[]', '[a', '[z-a]', 'a\\', '[^]', '[a\\'])
      assert.equal(globExpression(pattern), null, pattern);
  });
});

it('entries are chosen by any of the patterns, and by none where there is none', () => {
  const entries = { 'a/1': '1', 'b/2': '2', c: '3' };
  assert.deepEqual(withMatchingKeys(entries, ['a/*', 'c']), { 'a/1': '1', c: '3' });
  assert.deepEqual(withMatchingKeys(entries, []), {});
  assert.deepEqual(withMatchingKeys(entries, undefined), {});
});
