/** Credentials between the call that brings them and the pull: how long they are kept, and under which token. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCredentials } from '../../src/daemon/credentials.ts';
import { AuthConfig } from '../../src/wire/cri/api.ts';

const HOUR_MS = 3_600_000;
const auth = AuthConfig.fromPartial({ username: 'somebody', password: 'secret' });

test('credentials are kept for an hour from the last pull that brought them', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const credentials = createCredentials();
  const token = credentials.keep(auth);
  t.mock.timers.tick(HOUR_MS - 5);
  assert.equal(credentials.keep(auth), token);
  t.mock.timers.tick(10);
  assert.deepEqual(credentials.find(token), { username: 'somebody', password: 'secret' });
  t.mock.timers.tick(HOUR_MS);
  assert.equal(credentials.find(token), null);
});
