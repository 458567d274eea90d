/** What the policy seals of labels, annotations and commands. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sealsOf } from '../../../src/domain/call/sealing.ts';
import { matchesWildcard } from '../../../src/domain/values/wildcard.ts';

const rules = {
  ...{ labels: [], annotations: [] },
  ...{ execOptions: [], execArguments: [], containerOptions: [], containerArguments: [] },
};
const tokenOf = (value: string): string => `<${value.length}>`;

test('a wildcard stands for any characters, and everything else for itself', () => {
  const yes = {
    '': '',
    '*': '',
    'a*': 'a',
    '*a': 'ba',
    'a*c': 'abc',
    '*b*': 'a/b\nc',
    'a*b*c': 'aXbYbc',
    '**': 'x',
    'a.c': 'a.c',
  };
  const no = { '': 'a', 'a*': 'b', 'a*a': 'a', '*ab*ab': 'ab', 'a*b*c': 'acb', 'a.c': 'abc', '*x*': '' };
  for (const [pattern, text] of Object.entries(yes)) assert.ok(matchesWildcard(pattern, text), pattern);
  for (const [pattern, text] of Object.entries(no)) assert.ok(!matchesWildcard(pattern, text), pattern);
});

test('no pattern and text make a match take long', () => {
  const before = process.cpuUsage();
  assert.ok(!matchesWildcard(`${'*a'.repeat(5_000)}*b`, 'a'.repeat(200_000)));
  assert.ok(process.cpuUsage(before).user < 1_000_000);
});

test('values are sealed by key, and those that others read stay whatever the pattern is', () => {
  const { annotations, labels } = sealsOf({ ...rules, annotations: ['*'], labels: ['team/*'] }, tokenOf);
  assert.deepEqual(
    annotations({
      ...{ 'a/b': 'hunter2', empty: '', 'io.kubernetes.container.hash': 'x', 'cdi.k8s.io/gpu': 'y' },
      'devices.noderesource.dev/container.main': 'z',
    }),
    {
      'devices.noderesource.dev/container.main': 'z',
      'a/b': '<7>',
      empty: '',
      'io.kubernetes.container.hash': 'x',
      'cdi.k8s.io/gpu': 'y',
    },
  );
  assert.deepEqual(labels({ 'team/a': 'xx', other: 'y' }), { 'team/a': '<2>', other: 'y' });
  assert.equal(annotations(undefined), undefined);
});

test('what a container runs is sealed as one row of words, but for the program', () => {
  const { command } = sealsOf(
    { ...rules, containerOptions: ['--password', '-p'], containerArguments: ['*token*'] },
    tokenOf,
  );
  assert.deepEqual(
    command({ command: ['token-server', '-p'], args: ['hunter2', '--password=x', '', 'a', 'my token'] }),
    {
      command: ['token-server', '-p'],
      args: [{ token: '<7>' }, { token: '<12>' }, '', 'a', { token: '<8>' }],
    },
  );
  assert.deepEqual(command({ args: ['token', '--password', 'b'] }), {
    args: [{ token: '<5>' }, '--password', { token: '<1>' }],
  });
  assert.deepEqual(command({ command: ['--password'] }), { command: ['--password'] });
  assert.throws(
    () => command({ command: ['a'], args: ['token hunter2\0'] }),
    /^FailureError: args holds a NUL byte in a word that is sealed: no program can be given one/,
  );
});

test('without rules nothing is touched', () => {
  const entries = { a: 'b' };
  assert.equal(sealsOf(rules, tokenOf).annotations(entries), entries);
  assert.deepEqual(sealsOf(rules, tokenOf).words(['a', '--password', 'b']), ['a', '--password', 'b']);
});
