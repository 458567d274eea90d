/** What the page may see of a record: its shape, names and numbers; no key or text that a client chose. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownRecord } from '../../../src/cli/ui/redact.ts';
import type { JournalRecord } from '../../../src/journal/types.ts';

const record = (body: object): JournalRecord => ({
  ...{
    seq: 1,
    atNs: 1n,
    monoNs: 1n,
    boot: 'boot',
    type: 'call.received',
    v: 1,
    stream: 'call/1',
    cause: null,
    call: null,
  },
  body: JSON.stringify(body),
});

const shown = (request: object): unknown =>
  (JSON.parse(shownRecord('metadata', record({ request })).body) as { request: unknown }).request;

test("options of CRI's own are shown by their names and numbers, those of clients not at all", () => {
  const securityContext = {
    namespaceOptions: {
      network: 2,
      pid: 1,
      targetId: 'c1',
      usernsOptions: { mode: 2, uids: [{ hostId: 1, length: 9 }] },
    },
    selinuxOptions: { user: 'system_u', level: 's0' },
  };
  assert.deepEqual(shown({ config: { linux: { securityContext, sysctls: { 'net.a': '1' } } } }), {
    config: {
      linux: {
        securityContext: {
          namespaceOptions: { ...securityContext.namespaceOptions, targetId: '…' },
          selinuxOptions: { user: '…', level: '…' },
        },
        sysctls: {},
      },
    },
  });
  assert.deepEqual(shown({ method: 'CheckpointPod', options: { password: 'x' } }), {
    method: 'CheckpointPod',
    options: {},
  });
});

test('a reason is shown where scribe worded it, and hidden where somebody typed it', () => {
  assert.deepEqual(shown({ method: 'AcknowledgeJournal', reason: 'restored with hunter2' }), {
    method: 'AcknowledgeJournal',
    reason: '…',
  });
  const body = { code: 5, failure: { reason: 'NotFound', message: 'x' } };
  assert.deepEqual(JSON.parse(shownRecord('metadata', record(body)).body), {
    code: 5,
    failure: { reason: 'NotFound', message: '…' },
  });
});

test('of a body that is no JSON nothing is shown', () => {
  const { body } = shownRecord('metadata', { ...record({}), body: '{"request": hunter2' });
  assert.equal(body, 'unreadable');
});

test('the image that was asked for is shown by both of its names', () => {
  const image = { image: 'sha256:1', userSpecifiedImage: 'registry.example/app:1', annotations: { a: 'b' } };
  assert.deepEqual(shown({ config: { image } }), { config: { image: { ...image, annotations: {} } } });
});
