/** C12: of an error that may quote anything, name, code and frames are told; its message where it is known whose it is. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { failureWordsOf, knownHeadOf, knownMessageOf, knownWordsOf } from '../../src/domain/model/error-words.ts';
import { FailureError, KnownError } from '../../src/domain/model/errors.ts';
import { JournalError } from '../../src/journal/errors.ts';
import { searcherFor } from '../support/canaries.ts';

const secret = `canary-${'3e7a91'.repeat(3)}`;
const search = searcherFor([{ name: 'message', secret }]);
const LEFT_OUT = '[message left out]';

const thrownBy = (code: () => unknown): unknown => {
  try {
    return assert.fail(String(code()));
  } catch (error) {
    return error;
  }
};

describe('what is told of an error', () => {
  test('V8 words of mistakes in a program stay, as V8 itself words them', () => {
    const nothing = JSON.parse('null') as Record<string, () => void> & { a: { b: () => void } };
    const thing = JSON.parse('{}') as object;
    const list = JSON.parse('[]') as number[];
    const deep = (): number => 1 + deep();
    const known: readonly (readonly [() => unknown, string])[] = [
      [() => nothing['app'], "TypeError: Cannot read properties of null (reading 'app')"],
      [() => (nothing['app'] = () => undefined), "TypeError: Cannot set properties of null (setting 'app')"],
      [() => (thing as { absent: () => void }).absent(), 'TypeError: thing.absent is not a function'],
      [() => [...(thing as unknown as number[])], 'TypeError: thing is not iterable'],
      [() => list.reduce((a, b) => a + b), 'TypeError: Reduce of empty array with no initial value'],
      [() => deep(), 'RangeError: Maximum call stack size exceeded'],
      [() => JSON.stringify(1n), 'TypeError: Do not know how to serialize a BigInt'],
      [() => new Date(Number.NaN).toISOString(), 'RangeError: Invalid time value'],
      [() => Object.keys(nothing), 'TypeError: Cannot convert undefined or null to object'],
    ];
    for (const [code, head] of known) assert.equal(knownHeadOf(thrownBy(code)), head);
  });

  test('V8 words with a value in them are left out', () => {
    const nothing = JSON.parse('null') as Record<string, unknown>;
    const texts: readonly (() => unknown)[] = [
      () => nothing[secret],
      () => JSON.parse(`{"a": ${secret}}`) as unknown,
      () => BigInt(secret),
      () => [1].map(secret as never),
      () => new URL(`//${secret}`),
      () => readFileSync(secret as never, { encoding: secret as never }),
    ];
    for (const code of texts) {
      const error = thrownBy(code);
      assert.deepEqual(search(knownWordsOf(error)), [], String(error));
      assert.match(knownWordsOf(error), /^\w+(?: \[\w+\])?: \[message left out\]\n {4}at /);
    }
  });

  test("scribe's own, the system's and SQLite's stay, with their codes and what led to them", () => {
    assert.equal(knownMessageOf(new FailureError('HostFailed', 'The node is odd.')), 'The node is odd.');
    assert.equal(knownMessageOf(new KnownError('The daemon is ending.')), 'The daemon is ending.');
    const enoent = thrownBy(() => readFileSync('/nowhere/at-all'));
    assert.match(
      knownHeadOf(enoent),
      /^Error \[ENOENT\]: ENOENT: no such file or directory, open '\/nowhere\/at-all'$/,
    );
    const full = Object.assign(new Error('database or disk is full'), { name: 'SqliteError', code: 'SQLITE_FULL' });
    const journal = new JournalError('Failed', 'The journal takes nothing more.', {
      cause: new Error(secret, { cause: full }),
    });
    const heads = knownWordsOf(journal)
      .split('\n')
      .filter((line) => !line.startsWith('    at '));
    assert.deepEqual(heads, [
      'JournalError [Failed]: The journal takes nothing more.',
      `Caused by: Error: ${LEFT_OUT}`,
      'Caused by: SqliteError [SQLITE_FULL]: database or disk is full',
    ]);
    assert.equal(knownWordsOf(journal).match(/^ {4}at .*error-words\.test\.ts:/gm)?.length, 3);
  });

  test('a failure that nobody meant to be one has the words of who threw it, unless they are the language its own', () => {
    assert.equal(failureWordsOf(new Error('is not a regular file')), 'is not a regular file');
    assert.equal(failureWordsOf(new FailureError('HostFailed', 'The node is odd.')), 'The node is odd.');
    const parsing = thrownBy(() => JSON.parse(`{"token": ${secret}}`) as unknown);
    assert.match(String(parsing), /"token": /, 'V8 quotes where it could not go on');
    assert.equal(failureWordsOf(parsing), `SyntaxError: ${LEFT_OUT}`);
    assert.equal(failureWordsOf(new TypeError('thing is not iterable')), 'TypeError: thing is not iterable');
  });

  test('nothing passes for more than it is: names, codes, frames, and what is no error', () => {
    const disguised = [
      new Error(`one line\n    at ${secret} (file:///x.ts:1:1)`),
      new Error(`one line\n    at x (${secret})\n    at y (${secret})`),
      Object.assign(new Error('said'), { name: `${secret} x`, code: `${secret} x` }),
      Object.assign(new Error(secret), { code: 'ENOENT' }),
      Object.assign(new Error('before'), { message: secret }),
      new Error('x', { cause: secret }),
      new AggregateError([new Error(secret)], secret),
      secret,
    ];
    for (const error of disguised) assert.deepEqual(search(knownWordsOf(error)), [], String(error));
    assert.equal(knownHeadOf(secret), `string: ${LEFT_OUT}`);
    const endless = new Error('round');
    endless.cause = endless;
    assert.equal(knownWordsOf(endless).match(/^Caused by/gm)?.length, 7);
  });
});
