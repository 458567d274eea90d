/** JSON that others wrote: what is wrong with it is named, and never quoted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as z from 'zod';
import { parseAs, readAs } from '../../src/platform/foreign-json.ts';

const schema = z.object({ auths: z.record(z.string(), z.object({ token: z.string().max(8), port: z.int().max(9) })) });
const secret = 'hunter2-and-more';

const failureOf = (text: string): string => {
  try {
    parseAs(schema, text);
    return 'none';
  } catch (error) {
    assert.equal((error as Error).cause, undefined);
    return (error as Error).message;
  }
};

test('what is wrong is named by its field, its place, and what it must be', () => {
  assert.match(failureOf('{"auths":{"r":{"token":7,"port":1}}}'), /^auths\.r\.token: .*string/);
  assert.match(failureOf('{"auths":{"r":{"token":"t","port":10}}}'), /^auths\.r\.port: .*9/);
  assert.match(failureOf('[]'), /object/);
  assert.match(failureOf('{"auths":{}, x'), /^is not JSON/);
  assert.deepEqual(parseAs(schema, '{"auths":{}}'), { auths: {} });
});

test('nothing of the text is quoted, whichever part of it is wrong', () => {
  for (const text of [
    `{"auths":{"r":{"token":"${secret}","port":1}}}`,
    `{"auths":{"r":{"token":"t","port":"${secret}"}}}`,
    `{"auths":{"${secret} ${secret}":{"token":7,"port":1}}}`,
    `{"auths":"${secret}"}`,
    `"${secret}"`,
    `{"auths": ${secret}}`,
  ])
    assert.doesNotMatch(failureOf(text), /hunter2/, text);
});

test('what is read for better or worse is null when it is something else', () => {
  assert.equal(readAs(schema, '{"auths":7}'), null);
  assert.equal(readAs(schema, 'no JSON'), null);
  assert.deepEqual(readAs(schema, '{"auths":{}}'), { auths: {} });
});
