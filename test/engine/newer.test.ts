/** Who wrote a record: told by the start of its daemon, also where somebody has damaged that. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writerIn } from '../../src/engine/newer.ts';

const start = (body: string) => ({ type: 'daemon.started', v: 1, body });

test('the start of a daemon says its version and its rules', () => {
  assert.deepEqual(writerIn(start('{"facts":{"version":"1.2.3","rules":4}}')), { version: '1.2.3', rules: 4 });
});

test('a start that is pruned, is no JSON, or does not say leaves it open', () => {
  for (const body of ['', 'no JSON', 'null', '{}', '{"facts":{"version":7}}'])
    assert.equal(writerIn(start(body)), null, body);
});
