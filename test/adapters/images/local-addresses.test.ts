/**
 * A registry elsewhere sends nobody to this machine's own addresses, by redirect, token server or layer address, in
 * whatever form it names them. Real servers in a network namespace; names are resolved by a stand-in. Needs root.
 */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { isLocalAddress } from '../../../src/adapters/images/registry/local-addresses.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { netnsOf } from '../../support/netns.ts';
import { runOk } from '../../support/process.ts';

interface Report {
  readonly outcomes: Readonly<Record<string, string>>;
  readonly refusedReached: number;
  readonly allowed: Readonly<Record<string, string>>;
}

const program = new URL('../../support/images/registry-from-afar.ts', import.meta.url).pathname;

describe('a registry that is not on this machine', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let report: Report;

  before(async () => {
    const netns = await netnsOf(owner);
    await runOk(['ip', '-n', netns.name, 'address', 'add', '192.0.2.1/32', 'dev', 'lo']);
    report = JSON.parse(await runOk(netns.inside([process.execPath, program]))) as Report;
  });

  for (const way of ['redirect', 'token', 'foreign']) {
    it(`leads nobody to this machine by ${way}`, () => {
      const outcomes = Object.entries(report.outcomes).filter(([name]) => name.startsWith(`${way} `));
      assert.ok(outcomes.length >= 3);
      for (const [name, outcome] of outcomes) {
        // Plain http is spoken to nobody whose name does not say that it is this machine.
        const isRefusedAsPlain = / http:\/\/[a-z]+\.example/.test(name) || name.includes(' http://localhost.:');
        assert.match(
          outcome,
          isRefusedAsPlain ? /which is not https/ : /on this machine: only a registry on this/,
          name,
        );
      }
    });
  }

  it('and nothing of it all came to a server on loopback', () => {
    assert.equal(report.refusedReached, 0);
  });

  it('while registries on loopback may, by address and by name, and other addresses of a name are used', () => {
    assert.deepEqual(new Set(Object.values(report.allowed)), new Set(['200']), JSON.stringify(report.allowed));
  });
});

describe('local addresses', () => {
  it('are loopback, unspecified and link-local ones, in every form', () => {
    const local = [
      '127.0.0.1',
      '127.9.9.9',
      '0.0.0.0',
      '169.254.169.254',
      '::1',
      '[::1]',
      '::',
      'fe80::1%eth0',
      'febf::1',
    ];
    const wrapped = ['::ffff:127.0.0.1', '::ffff:a9fe:a9fe', '64:ff9b::7f00:1', '::127.0.0.1'];
    for (const address of [...local, ...wrapped]) assert.ok(isLocalAddress(address), address);
    const others = ['10.0.0.1', '192.168.1.1', '126.255.255.255', '128.0.0.1', '169.253.0.1', '2001:db8::1', 'fec0::1'];
    const names = ['::ffff:8.8.8.8', '64:ff9b::808:808', 'localhost', ''];
    for (const address of [...others, ...names]) assert.ok(!isLocalAddress(address), address);
  });
});
