/** What is wrong with a JSON file is told without a word of the file. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson } from '../../../src/domain/values/parse-json.ts';

const messageFor = (text: string): string => {
  try {
    parseJson(text);
    return '';
  } catch (error) {
    assert.equal((error as Error).cause, undefined);
    return (error as Error).message;
  }
};

test('a parser that quotes the text is not heard, only where it stopped', () => {
  assert.deepEqual(parseJson('{"a":[1]}'), { a: [1] });
  assert.equal(messageFor('secret'), 'is not JSON');
  assert.equal(messageFor('{"password": "secret" oops'), 'is not JSON at line 1, column 23');
  fc.assert(
    fc.property(fc.string(), (text) => {
      assert.match(messageFor(text), /^(is not JSON( at line \d+, column \d+)?)?$/);
    }),
  );
});
