/** The audit policy where calls come in: what becomes of reads, and what of commands. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAudit } from '../../src/daemon/audit.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import type { AuditRule, SealRules } from '../../src/domain/model/audit-policy.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { CallReply, ReadDetails } from '../../src/engine/ports.ts';
import type { ReadRow } from '../../src/journal/types.ts';
import { container, idOf, podSandbox, testModel } from '../adapters/cri/support.ts';

const model = testModel();
model.put({ sandboxes: [podSandbox(idOf('aa'))], containers: [container(idOf('cc'), idOf('aa'))] });

const NOTHING_SEALED: SealRules = {
  labels: [],
  annotations: [],
  execOptions: [],
  execArguments: [],
  containerOptions: [],
  containerArguments: [],
};

const setUp = (rules: readonly AuditRule[], reply: Partial<CallReply> = {}, seal: Partial<SealRules> = {}) => {
  const rows: ReadRow[] = [];
  const calls: CallDraft[] = [];
  const audit = createAudit({
    policy: { rules, seal: { ...NOTHING_SEALED, ...seal } },
    state: model.state,
    appendRead: (row) => void rows.push(row),
    submit: async (draft) => {
      calls.push(draft);
      return { outcome: { ok: true, value: {} }, attachment: null, ...reply };
    },
    tokenOf: (value) => `token of ${value.length}`,
  });
  return { audit, rows, calls };
};

const row = (method: string, subject = ''): ReadRow => ({
  atNs: 1n,
  durationNs: 2n,
  code: 0,
  callerPid: 3,
  callerUid: 4,
  method,
  subject,
});
const details =
  (request: object = {}): (() => ReadDetails) =>
  () => ({ caller: null, request: { ...request }, unknownFields: [], failure: null });

test('a read is a row, a record, or nothing, as the rules say', async () => {
  const { audit, rows, calls } = setUp([
    { level: 'none', methods: ['Version'], namespaces: [] },
    { level: 'request', methods: ['ContainerStatus'], namespaces: ['default'] },
  ]);
  audit.recordRead(row('Version'), () => assert.fail('nobody asks for more'));
  audit.recordRead(row('ListContainers'), () => assert.fail('nobody asks for more'));
  audit.recordRead(row('ContainerStatus', 'cc'), details({ containerId: 'cc', verbose: true }));
  audit.recordRead(row('ContainerStatus', 'nobody'), () => assert.fail('nobody asks for more'));
  assert.deepEqual(
    rows.map(({ method, subject }) => `${method} ${subject}`),
    ['ListContainers ', 'ContainerStatus nobody'],
  );
  assert.deepEqual(calls, [
    {
      method: 'Read',
      rpc: 'ContainerStatus',
      about: `container/${idOf('cc')}`,
      request: { containerId: 'cc', verbose: true },
      durationNs: '2',
    },
  ]);
});

test('a read that the full disk has no record for is a row, and a long request is its length', async () => {
  const { audit, rows, calls } = setUp([{ level: 'request', methods: ['List*'], namespaces: [] }], {
    unrecorded: true,
  });
  audit.recordRead(row('ListContainers'), details({ filter: 'x'.repeat(100_000) }));
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(rows.length, 1);
  assert.match(JSON.stringify(calls), /"request":\{"characters":1000\d\d\}/);
});

test('at level metadata all arguments of a command are sealed, and nothing that no program can be given', () => {
  const { audit } = setUp([{ level: 'metadata', methods: ['ExecSync'], namespaces: ['default'] }]);
  assert.deepEqual(audit.audited('ExecSync', 'cc', ['login', '--password', '', 'hunter2']), {
    cmd: ['login', { token: 'token of 10' }, '', { token: 'token of 7' }],
    auditLevel: 'metadata',
  });
  assert.deepEqual(audit.audited('Exec', 'cc', ['login', 'hunter2']), { cmd: ['login', 'hunter2'] });
  assert.throws(() => audit.audited('ExecSync', 'cc', ['a', 'b\0c']), FailureError);
});

test('words of commands are sealed by option and by pattern, and selectors of a recorded read', async () => {
  const { audit, calls } = setUp(
    [{ level: 'request', methods: ['ListContainers'], namespaces: [] }],
    {},
    { execOptions: ['--password', '-p'], execArguments: ['*token=*'], labels: ['team/*'] },
  );
  const words = ['--password', '--password', 'one', '--password=two', '-p', 'x', 'a token=3 b', '-px', 'plain'];
  assert.deepEqual(audit.audited('ExecSync', 'cc', words).cmd, [
    ...[
      '--password',
      { token: 'token of 10' },
      { token: 'token of 3' },
      { token: 'token of 14' },
      '-p',
      { token: 'token of 1' },
    ],
    ...[{ token: 'token of 11' }, '-px', 'plain'],
  ]);
  audit.recordRead(row('ListContainers'), details({ filter: { labelSelector: { 'team/key': 'secret', plain: 'x' } } }));
  assert.match(JSON.stringify(calls), /"labelSelector":\{"team\/key":"token of 6","plain":"x"\}/);
});

test('what comes in goes by the policy that is in force by then', () => {
  const { audit, rows } = setUp([]);
  const { seals } = audit;
  audit.recordRead(row('Version'), details());
  assert.deepEqual(audit.audited('Exec', 'cc', ['login', 'hunter2']), { cmd: ['login', 'hunter2'] });
  audit.setPolicy({
    rules: [{ level: 'none', methods: ['Version'], namespaces: [] }],
    seal: { ...NOTHING_SEALED, labels: ['team'], execArguments: ['hunter*'] },
  });
  audit.recordRead(row('Version'), details());
  assert.equal(rows.length, 1);
  assert.deepEqual(audit.audited('Exec', 'cc', ['login', 'hunter2']), { cmd: ['login', { token: 'token of 7' }] });
  assert.deepEqual(seals.labels({ team: 'red', plain: 'x' }), { team: 'token of 3', plain: 'x' });
});
