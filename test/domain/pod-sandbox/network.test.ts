/** What CNI plugins are told of a pod; of the limits on its traffic, what its annotations say, in bits per second, or refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodSandboxConfig } from '../../../src/domain/model/cri.ts';
import { validatePodSandboxConfig } from '../../../src/domain/oci/validate.ts';
import { lacksNetwork, podNetwork } from '../../../src/domain/pod-sandbox/network.ts';
import { NET_HANDLER } from '../../simulation/changing.ts';
import { CONF_LIST, FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import { networkIs, nodeStarts } from '../happenings.ts';

const config = (ingress: string, egress?: string): PodSandboxConfig => ({
  metadata: { name: 'pod', namespace: 'ns', uid: 'uid' },
  annotations: {
    'kubernetes.io/ingress-bandwidth': ingress,
    ...(egress === undefined ? {} : { 'kubernetes.io/egress-bandwidth': egress }),
  },
});

test('any quantity of bits per second limits the traffic', () => {
  const quantities: readonly (readonly [string, string])[] = [
    ['10M', '10000000'],
    ['1.5M', '1500000'],
    ['1e6', '1000000'],
    ['0.5Gi', '536870912'],
    ['1P', '1000000000000000'],
    ['2500000m', '2500'],
  ];
  for (const [quantity, bits] of quantities) {
    const given = config(quantity, '1k');
    assert.equal(validatePodSandboxConfig(given, FACTS), null, quantity);
    const { bandwidth } = podNetwork(FACTS, 'a', given, CONF_LIST);
    assert.deepEqual(bandwidth, { ingressRate: bits, egressRate: '1000' }, quantity);
  }
});

test('a limit that is no quantity, or none that was meant, is refused by the annotation’s name', () => {
  for (const quantity of ['', 'fast', '10MB', '-1M', '999', '0', '2P', '1M\n']) {
    const failure = validatePodSandboxConfig(config('1M', quantity), FACTS);
    assert.equal(failure?.reason, 'InvalidField', quantity);
    assert.match(failure.message, /annotations\.kubernetes\.io\/egress-bandwidth/);
  }
});

test('plugins are told the name servers of the pod', () => {
  const servers = { servers: ['10.0.0.10'], searches: ['ns.svc.cluster.local'], options: ['ndots:5'] };
  const { dns } = podNetwork(FACTS, 'a', { ...config('1M'), dnsConfig: servers }, CONF_LIST);
  assert.deepEqual(dns, servers);
  assert.deepEqual(podNetwork(FACTS, 'a', { ...config('1M'), dnsConfig: {} }, CONF_LIST).dns, {
    servers: [],
    searches: [],
    options: [],
  });
});

test('a node lacks a network as long as pods of one of its handlers would be refused for want of one', () => {
  assert.equal(lacksNetwork(given().state), false);
  assert.equal(lacksNetwork(given(networkIs(null)).state), true);
  assert.equal(lacksNetwork(given(nodeStarts({ ...FACTS, handlers: [...FACTS.handlers, NET_HANDLER] })).state), true);
});
