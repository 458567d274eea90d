/** Whom the suggestions help: what people type wrong, and what is another word. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearest } from '../../src/config/nearest.ts';

const methods = ['Version', 'RunPodSandbox', 'Exec', 'ExecSync', 'Attach', 'Status'];

test('the word that was meant is found in whatever case and with a letter wrong, missing or left off', () => {
  assert.equal(nearest('ExecSinc', methods), 'ExecSync');
  assert.equal(nearest('execsink', methods), 'ExecSync');
  assert.equal(nearest('runpodsandbx', methods), 'RunPodSandbox');
  assert.equal(nearest('RunPod', methods), 'RunPodSandbox');
  assert.equal(nearest('Stauts', methods), 'Status');
  assert.equal(nearest('NOTFOUND', ['OK', 'NOT_FOUND', 'INTERNAL']), 'NOT_FOUND');
  assert.equal(nearest('not_fuond', ['OK', 'NOT_FOUND', 'INTERNAL']), 'NOT_FOUND');
  assert.equal(nearest('pdo', ['pod', 'json']), null);
  assert.equal(nearest('pos', ['pod', 'json']), 'pod');
});

test('another word is not taken for one of them', () => {
  for (const typed of ['Zzzz', 'abc', 'x', '', 'Sandboxes']) assert.equal(nearest(typed, methods), null, typed);
  assert.equal(nearest('why', ['at', 'ui', 'sql']), null);
  assert.equal(nearest('anything', []), null);
});
