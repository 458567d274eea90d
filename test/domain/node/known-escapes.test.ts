/** Which versions of OCI runtimes containers are known to escape from. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapesFromRunc } from '../../../src/domain/node/known-escapes.ts';

const cvesOf = (version: string): readonly string[] => escapesFromRunc(version)?.cves ?? [];

const MOUNTS = ['CVE-2025-31133', 'CVE-2025-52565', 'CVE-2025-52881'];
const RESTORED = 'CVE-2026-119101';

test('CVE-2019-5736, CVE-2025-31133, CVE-2025-52565, CVE-2025-52881: a runc is told of until the release that mends it', () => {
  assert.deepEqual(cvesOf('1.0.0-rc6'), ['CVE-2019-5736', 'CVE-2024-21626', ...MOUNTS, RESTORED]);
  assert.deepEqual(cvesOf('1.0.0-rc7'), ['CVE-2024-21626', ...MOUNTS, RESTORED]);
  assert.deepEqual(cvesOf('1.1.11'), ['CVE-2024-21626', ...MOUNTS, RESTORED]);
  for (const version of ['1.1.12', '1.1.15', '1.2.0', '1.2.7', '1.3.0-rc.1', '1.3.2', '1.4.0-rc.2'])
    assert.deepEqual(cvesOf(version), [...MOUNTS, RESTORED], version);
});

test('CVE-2026-119101: so is one whose restored containers may get any directory of the node', () => {
  for (const version of ['1.2.8', '1.2.10', '1.3.3', '1.3.6', '1.4.0-rc.3', '1.4.0', '1.4.3', '1.5.2', '1.6.0-rc.1'])
    assert.deepEqual(cvesOf(version), [RESTORED], version);
  for (const version of ['1.3.7', '1.3.10', '1.4.4', '1.5.3', '1.6.0', '1.7.0-rc.1', '2.0.0'])
    assert.deepEqual(cvesOf(version), [], version);
});

test('a version that cannot be read is trusted with nothing', () => {
  assert.deepEqual(cvesOf('what'), ['CVE-2019-5736', 'CVE-2024-21626', ...MOUNTS, RESTORED]);
});
