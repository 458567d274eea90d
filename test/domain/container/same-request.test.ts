/** Which two requests for a container are one (C5): kubelet's random path is nothing that tells them apart; all else is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isSameRequest } from '../../../src/domain/container/same-request.ts';
import type { ContainerConfig, Mount } from '../../../src/domain/model/cri.ts';
import { DECISION_RULES } from '../../../src/domain/model/rules.ts';
import { FACTS } from '../../simulation/facts.ts';

const state = { facts: FACTS };
const dir = '/var/lib/kubelet/pods/0b9cd8be/containers/main';
const key = 'io.kubernetes.container.terminationMessagePath';
const path = '/dev/termination-log';

const withMount = (mount: Mount, more: Partial<ContainerConfig> = {}): ContainerConfig => ({
  metadata: { name: 'main', attempt: 0 },
  image: { image: 'app' },
  mounts: [{ containerPath: '/data', hostPath: '/data/01234567' }, mount],
  annotations: { [key]: path },
  ...more,
});
const log = (hostPath: string, containerPath = path): Mount => ({ hostPath, containerPath });
const first = withMount(log(`${dir}/1a2b3c4d`));

test('C5: requests that differ in the random path of the termination log are the same', () => {
  const random = fc.integer({ min: 0, max: 0xffffffff }).map((n) => n.toString(16).padStart(8, '0'));
  fc.assert(
    fc.property(random, random, fc.constantFrom(path, '/tmp/message', '/a/b'), (one, other, inside) => {
      const [a, b] = [one, other].map((part) =>
        withMount(log(`${dir}/${part}`, inside), { annotations: { [key]: inside } }),
      );
      assert.ok(a && b && isSameRequest(state, a, b));
    }),
  );
  const { annotations: _none, ...plain } = first;
  const { annotations: _too, ...again } = withMount(log(`${dir}/00000000`));
  assert.ok(isSameRequest(state, plain, again));
});

const others: readonly (readonly [string, ContainerConfig])[] = [
  ['another container’s directory', withMount(log(`${dir}-2/1a2b3c4d`))],
  ['a part that is no random number', withMount(log(`${dir}/message`))],
  ['a random part elsewhere', withMount(log(`${dir}/1a2b3c4d`), { mounts: [log('/data/76543210', '/data')] })],
  ['another place in the container', withMount(log(`${dir}/1a2b3c4d`, '/tmp/log'))],
  ['a mount that is read-only', withMount({ ...log(`${dir}/1a2b3c4d`), readonly: true })],
  ['another attempt', withMount(log(`${dir}/1a2b3c4d`), { metadata: { name: 'main', attempt: 1 } })],
  ['another image', withMount(log(`${dir}/1a2b3c4d`), { image: { image: 'other' } })],
  ['no mounts', { ...first, mounts: [] }],
];
for (const [what, other] of others)
  test(`C5: a request with ${what} is another one`, () => {
    assert.ok(!isSameRequest(state, first, other));
  });

test('by the rules of older journals any difference makes another request', () => {
  const again = withMount(log(`${dir}/00000000`));
  assert.ok(!isSameRequest({ facts: { ...FACTS, rules: 1 } }, first, again));
  assert.ok(isSameRequest({ facts: { ...FACTS, rules: DECISION_RULES } }, first, again));
});
