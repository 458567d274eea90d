/** Results of every version of CNI, and the order of a pod's addresses. */
import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { cleanText, orderIps, parseAddResult, parsePluginError } from '../../../src/adapters/cni/result.ts';

const parse = (result: object, version = '1.0.0') => parseAddResult(JSON.stringify(result), version, 'eth0');

describe('results of ADD', () => {
  it('reads the shape up to 0.2.0', () => {
    const result = { ip4: { ip: '10.0.0.2/24', gateway: '10.0.0.1' }, ip6: { ip: 'fd00::2/64' }, dns: {} };
    const parsed = parse(result, '0.2.0');
    assert.deepEqual(parsed, { result: { ...result, cniVersion: '0.2.0' }, ips: ['10.0.0.2', 'fd00::2'] });
    assert.deepEqual(parse({ ip6: { ip: 'fd00::2/64' }, ip4: null }, '0.1.0').ips, ['fd00::2']);
  });

  it('reads the shape of 0.3.0 to 0.4.0', () => {
    const ips = [
      { version: '4', address: '10.0.0.2/24', interface: 1 },
      { version: '6', address: 'fd00::2/64', interface: 1 },
    ];
    const interfaces = [{ name: 'cni0' }, { name: 'eth0', sandbox: '/run/netns/a' }];
    assert.deepEqual(parse({ cniVersion: '0.4.0', interfaces, ips }).ips, ['10.0.0.2', 'fd00::2']);
  });

  it('reads the shape of 1.0.0 and 1.1.0 and keeps what it does not know', () => {
    const result = {
      cniVersion: '1.1.0',
      interfaces: [{ name: 'eth0', mtu: 1500, socketPath: '/s', pciID: 'x' }],
      ips: [{ address: '10.0.0.2/24', gateway: '10.0.0.1', interface: 0 }],
      routes: [{ dst: '0.0.0.0/0', table: 7 }],
      dns: { nameservers: ['10.0.0.10'] },
      vendor: { a: 1 },
    };
    assert.deepEqual(parse(result), { result, ips: ['10.0.0.2'] });
  });

  it('leaves out addresses of other interfaces, keeps those of none, and says each once', () => {
    const interfaces = [{ name: 'cni0' }, { name: 'eth0' }];
    const ips = [
      { address: '10.0.0.1/24', interface: 0 },
      { address: '10.0.0.2/24', interface: 1 },
      { address: '10.0.0.3/24', interface: null },
      { address: '10.0.0.2/24' },
    ];
    assert.deepEqual(parse({ cniVersion: '1.0.0', interfaces, ips }).ips, ['10.0.0.2', '10.0.0.3']);
  });

  it('takes null for an absent list, and the version of the configuration for an absent one', () => {
    const parsed = parse({ cniVersion: '', interfaces: null, ips: null }, '0.4.0');
    assert.equal(parsed.result.cniVersion, '0.4.0');
    assert.deepEqual(parsed.ips, []);
  });

  it('refuses lists without bound', () => {
    const ips = Array.from({ length: 300 }, (_, i) => ({ address: `10.0.${i >> 8}.${i & 255}/16` }));
    assert.throws(() => parse({ ips }), /is malformed \(ips: /);
  });

  it('puts the preferred family first and keeps the order of the rest', () => {
    const ips = ['fd00::1', '10.0.0.1', 'fd00::2', '10.0.0.2'];
    assert.deepEqual(orderIps(ips, 'ipv4'), ['10.0.0.1', 'fd00::1', 'fd00::2', '10.0.0.2']);
    assert.deepEqual(orderIps(ips, 'ipv6'), ips);
    assert.deepEqual(orderIps(ips, 'cni'), ips);
    assert.deepEqual(orderIps(['fd00::1'], 'ipv4'), ['fd00::1'], 'another family is better than none');
    assert.deepEqual(orderIps([], 'ipv4'), []);
  });
});

describe('error results', () => {
  it('reads code, msg and details', () => {
    const text = JSON.stringify({ cniVersion: '1.0.0', code: 7, msg: 'bad config', details: 'no subnet' });
    assert.deepEqual(parsePluginError(text, ''), { code: 7, message: 'bad config; no subnet' });
    assert.deepEqual(parsePluginError('{"msg":"x"}', ''), { code: null, message: 'x' });
  });

  it('takes stderr when there is no error structure', () => {
    assert.deepEqual(parsePluginError('{"msg":""}', 'panic: x\n\tat y'), { code: null, message: 'panic: x at y' });
  });

  it('cuts long texts', () => {
    assert.equal(cleanText('x'.repeat(5000)).length, 1025);
  });
});

describe('whatever a plugin prints', () => {
  const address = fc.oneof(
    fc.string(),
    fc.ipV4().map((ip) => `${ip}/24`),
    fc.ipV6(),
  );
  const near = fc.record(
    {
      cniVersion: fc.constantFrom('1.0.0', '', null, '7'),
      interfaces: fc.oneof(fc.jsonValue(), fc.array(fc.record({ name: fc.constantFrom('eth0', 'x') }))),
      ips: fc.array(fc.record({ address, interface: fc.oneof(fc.nat(3), fc.jsonValue()) }, { requiredKeys: [] })),
      ip4: fc.oneof(fc.jsonValue(), fc.record({ ip: address })),
    },
    { requiredKeys: [] },
  );
  const anything = fc.oneof(
    fc.string(),
    fc.json(),
    near.map((value) => JSON.stringify(value)),
  );

  it('is either a result with real addresses or refused in one sentence', () => {
    fc.assert(
      fc.property(anything, (text) => {
        try {
          const { ips } = parseAddResult(text, '1.0.0', 'eth0');
          return ips.every((ip) => isIP(ip) !== 0);
        } catch (error) {
          return error instanceof Error && !/\p{Cc}/u.test(error.message);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('makes a bounded message when it failed', () => {
    fc.assert(fc.property(anything, anything, (out, err) => parsePluginError(out, err).message.length <= 1025));
  });
});
