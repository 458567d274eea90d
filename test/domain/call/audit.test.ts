/** Which level a call has by the audit rules, and which methods there are to name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { auditPolicy, levelsOf, methodsLike, nameableMethods } from '../../../src/domain/call/audit.ts';
import type { AuditRule } from '../../../src/domain/model/audit-policy.ts';
import { ImageServiceDefinition, RuntimeServiceDefinition } from '../../../src/wire/cri/api.ts';
import { DaemonDefinition } from '../../../src/wire/scribe/v1/daemon.ts';

const rule = (level: AuditRule['level'], methods: string[], namespaces: string[] = []): AuditRule => ({
  level,
  methods,
  namespaces,
});
const never = (): string => assert.fail('nobody needs the namespace');

test('every RPC of the socket can be named, and each has its default first', () => {
  const services: readonly { readonly methods: Readonly<Record<string, { readonly name: string }>> }[] = [
    RuntimeServiceDefinition,
    ImageServiceDefinition,
    DaemonDefinition,
  ];
  const rpcs = services.flatMap(({ methods }) => Object.values(methods).map(({ name }) => name));
  assert.deepEqual(
    rpcs.filter((rpc) => !nameableMethods.includes(rpc)),
    [],
  );
  assert.equal(levelsOf('ContainerStatus')[0], 'metadata');
  assert.equal(levelsOf('RunPodSandbox')[0], 'request-response');
});

test('without rules everything has its default', () => {
  const level = auditPolicy([]);
  assert.equal(level('ListContainers', never), 'metadata');
  assert.equal(level('ExecSync', never), 'request-response');
});

test('the first rule that matches says the level, and namespaces are asked for where a rule has some', () => {
  const level = auditPolicy([
    rule('metadata', ['ExecSync'], ['kube-system']),
    rule('request', ['ContainerStatus'], ['']),
    rule('none', ['List*', 'Version']),
    rule('request', ['ListContainers']),
  ]);
  assert.equal(
    level('ExecSync', () => 'kube-system'),
    'metadata',
  );
  assert.equal(
    level('ExecSync', () => 'default'),
    'request-response',
  );
  assert.equal(
    level('ContainerStatus', () => ''),
    'request',
  );
  assert.equal(
    level('ContainerStatus', () => 'default'),
    'metadata',
  );
  assert.equal(level('ListContainers', never), 'none');
  assert.equal(level('Status', never), 'metadata');
});

test('a pattern that matches nothing, or is none, names no method', () => {
  assert.deepEqual(methodsLike('Lst*'), []);
  assert.deepEqual(methodsLike('[z-a]'), []);
  assert.ok(methodsLike('List*').includes('ListPodSandbox'));
});
