/** The reference grammar: examples from the specification, and properties over texts nobody thought of. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  formatImageReference,
  type ImageReference,
  parseImageReference,
  repoDigestOf,
  repoTagOf,
} from '../../../src/domain/image/reference.ts';

const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

const parsed = (text: string): ImageReference => {
  const result = parseImageReference(text);
  assert.ok(result.ok, result.ok ? '' : result.failure);
  return result.value;
};

const normal = (text: string): string => formatImageReference(parsed(text));

describe('image references', () => {
  it('normalises familiar names', () => {
    const cases: Record<string, string> = {
      busybox: 'docker.io/library/busybox:latest',
      'busybox:1.36': 'docker.io/library/busybox:1.36',
      'user/app': 'docker.io/user/app:latest',
      'docker.io/busybox': 'docker.io/library/busybox:latest',
      'index.docker.io/busybox': 'docker.io/library/busybox:latest',
      'index.docker.io/user/app:v1': 'docker.io/user/app:v1',
      'localhost/app': 'localhost/app:latest',
      'localhost:5000/app': 'localhost:5000/app:latest',
      'localhost:5000': 'docker.io/library/localhost:5000',
      'Upper/app': 'Upper/app:latest',
      'registry.k8s.io/pause:3.10': 'registry.k8s.io/pause:3.10',
      '127.0.0.1:5000/a/b/c:x': '127.0.0.1:5000/a/b/c:x',
      '[::1]:5000/a': '[::1]:5000/a:latest',
      '[2001:db8::1]/a:t': '[2001:db8::1]/a:t',
      [`busybox@${digest}`]: `docker.io/library/busybox@${digest}`,
      [`busybox:1.36@${digest}`]: `docker.io/library/busybox:1.36@${digest}`,
      'a/b__c/d---e:T_1.-': 'docker.io/a/b__c/d---e:T_1.-',
    };
    for (const [text, expected] of Object.entries(cases)) assert.equal(normal(text), expected, text);
  });

  it('refuses what is outside the grammar, naming the reference', () => {
    const refused = [
      '',
      ':tag',
      '/app',
      'app/',
      'app:',
      'app@',
      'a//b',
      'UPPER',
      'registry.example/Upper',
      '-a',
      'a-',
      'a..b',
      'a___b',
      'a b',
      'a\nb',
      'a:b c',
      `a:${'t'.repeat(129)}`,
      'a:.x',
      `a@sha256:${'0'.repeat(63)}`,
      `a@sha256:${'A'.repeat(64)}`,
      `a@sha512:${'0'.repeat(128)}`,
      `a@${digest}@${digest}`,
      `${'0123456789abcdef'.repeat(4)}`,
      'registry.example:port/app',
      'registry.example:99999/app',
      'registry..example/app',
      '-registry.example/app',
      '[::1/app',
      '[zz]:5000/a',
      `${'a'.repeat(256)}`,
      'a'.repeat(100_000),
      '../../etc/passwd',
      'registry.example/../app',
      'https://registry.example/app',
      'user:pass@registry.example/app',
    ];
    for (const text of refused) {
      const result = parseImageReference(text);
      assert.ok(!result.ok, text);
      assert.match(result.failure, /^The image reference .*\.$/);
    }
  });

  it('names tags and digests as images carry them', () => {
    assert.equal(repoTagOf(parsed('busybox')), 'docker.io/library/busybox:latest');
    assert.equal(repoTagOf(parsed(`busybox:1@${digest}`)), null);
    assert.equal(repoDigestOf(parsed('busybox'), digest), `docker.io/library/busybox@${digest}`);
  });

  const alphanumeric = fc.stringMatching(/^[a-z0-9]{1,8}$/);
  const separator = fc.constantFrom('.', '_', '__', '-', '---');
  const component = fc
    .tuple(alphanumeric, fc.array(fc.tuple(separator, alphanumeric), { maxLength: 3 }))
    .map(([first, rest]) => first + rest.flat().join(''));
  const host = fc.oneof(
    fc.constantFrom('localhost', 'docker.io', '127.0.0.1', '[::1]'),
    fc.tuple(fc.stringMatching(/^[a-zA-Z0-9]([a-zA-Z0-9-]{0,6}[a-zA-Z0-9])?$/), alphanumeric).map((l) => l.join('.')),
  );
  const port = fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: null });
  const tag = fc.option(fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}$/), { nil: null });
  const anyDigest = fc.option(
    fc.stringMatching(/^[0-9a-f]{64}$/).map((hex) => `sha256:${hex}`),
    { nil: null },
  );
  const reference = fc
    .record({ host, port, components: fc.array(component, { minLength: 1, maxLength: 4 }), tag, digest: anyDigest })
    .filter((parts) => parts.components.join('/').length < 200);

  it('takes apart every reference it is built from', () => {
    fc.assert(
      fc.property(reference, ({ host, port, components, tag, digest }) => {
        const registry = port === null ? host : `${host}:${port}`;
        const path = components.join('/');
        const text = `${registry}/${path}${tag === null ? '' : `:${tag}`}${digest === null ? '' : `@${digest}`}`;
        const result = parsed(text);
        const official = registry === 'docker.io' && components.length === 1;
        assert.deepEqual(result, {
          host: registry,
          path: official ? `library/${path}` : path,
          tag: tag ?? (digest === null ? 'latest' : null),
          digest,
        });
      }),
    );
  });

  it('reaches its normal form in one step', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          reference.map((r) => r.components.join('/')),
          fc.string({ maxLength: 60 }),
        ),
        (text) => {
          const result = parseImageReference(text);
          if (!result.ok) return;
          const once = formatImageReference(result.value);
          assert.deepEqual(parsed(once), result.value);
          assert.equal(normal(once), once);
          const { host, path, tag, digest } = result.value;
          assert.ok(host.length > 0 && path.length > 0 && (tag !== null || digest !== null));
          assert.ok(once.length <= 512 + 'docker.io/library/:latest'.length);
          assert.ok(!path.split('/').includes('..') && !/[\s\0]/.test(once));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('takes no longer for hostile text than its length allows', () => {
    const hostile = [
      'a-'.repeat(60_000),
      `${'a'.repeat(250)}!`,
      `${'a_'.repeat(125)}!`,
      `${'-'.repeat(500)}a`,
      `${'a.'.repeat(120)}/${'b-'.repeat(60)}!`,
      `${'a:'.repeat(250)}`,
      `[${':'.repeat(500)}]/a`,
    ];
    const started = process.hrtime.bigint();
    for (let round = 0; round < 200; round += 1) for (const text of hostile) parseImageReference(text);
    const elapsedMs = Number(process.hrtime.bigint() - started) / 1e6;
    assert.ok(elapsedMs < 1000, `${hostile.length * 200} hostile references took ${elapsedMs} ms`);
  });
});
