/** What OCI runtimes say they can do is asked of them; one that says nothing can nothing more. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseRuntimeFeatures, withFeatures } from '../../../src/adapters/shim/runtime-features.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { RuntimeHandler } from '../../../src/domain/model/runtime-handler.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { tempDir } from '../../support/temp-dir.ts';

const handler = (name: string, binaryName: string): RuntimeHandler => ({
  name,
  runtimeType: 'io.containerd.runc.v2',
  binaryName,
  systemdCgroup: false,
});

test('recursive read-only mounts need a runtime and a kernel that know them', () => {
  const able = '{"mountOptions":["ro","rro"]}';
  const rro = (text: string, kernel: string) => parseRuntimeFeatures(text, kernel).recursiveReadOnlyMounts;
  assert.equal(rro(able, '5.12.0-1'), true);
  assert.equal(rro(able, '6.1.0'), true);
  assert.equal(rro(able, '5.11.22'), false);
  assert.equal(rro(able, 'what'), false);
  for (const text of ['', 'null', '[]', '{}', '{"mountOptions":"rro"}', '{"mountOptions":["ro"]}', 'unknown command'])
    assert.equal(rro(text, '6.1.0'), false, text);
});

test('network interfaces are moved by runtimes that say so', () => {
  const moves = (text: string) => parseRuntimeFeatures(text, '6.1.0').netDevices;
  assert.equal(moves('{"linux":{"netDevices":{"enabled":true}}}'), true);
  for (const text of [
    '{"linux":{"netDevices":{"enabled":"yes"}}}',
    '{"linux":{"netDevices":null}}',
    '{"linux":null}',
    '[]',
  ])
    assert.equal(moves(text), false, text);
});

test('memory policies are set by runtimes that name modes of them', () => {
  const sets = (text: string) => parseRuntimeFeatures(text, '6.1.0').memoryPolicy;
  assert.equal(sets('{"linux":{"memoryPolicy":{"modes":["MPOL_BIND"],"flags":[]}}}'), true);
  for (const text of ['{"linux":{"memoryPolicy":{}}}', '{"linux":{"memoryPolicy":true}}', '{"linux":{}}', '[]'])
    assert.equal(sets(text), false, text);
});

test('user namespaces need a runtime that knows them and a kernel that maps the ids of any volume', () => {
  const able = '{"linux":{"namespaces":["pid","user"]}}';
  const users = (text: string, kernel: string) => parseRuntimeFeatures(text, kernel).userNamespaces;
  assert.equal(users(able, '6.3.0'), true);
  assert.equal(users(able, '6.2.16'), false);
  for (const text of [
    '{"linux":{"namespaces":["pid"]}}',
    '{"linux":null}',
    '{"linux":{}}',
    '{"namespaces":["user"]}',
    '',
  ])
    assert.equal(users(text, '6.12.0'), false, text);
});

test('each runtime is asked once, and one that fails, hangs or is not there can nothing more', async (t) => {
  const dir = await tempDir(t);
  const spawner = await startSpawner({ lockPath: join(dir, 'spawner.lock'), startTimeoutMs: 10_000 });
  onCleanup(t, () => spawner.close());
  const commands: string[] = [];
  const run: typeof spawner.run = (request) => {
    commands.push(`${request.command} ${request.args.join(' ')}`);
    return spawner.run(request);
  };
  const handlers = [
    handler('runc', 'runc'),
    handler('other', 'runc'),
    handler('broken', 'false'),
    handler('none', '/no/such'),
  ];
  const options = {
    spawner: { run },
    searchPath: process.env['PATH'] ?? '',
    kernelRelease: '6.3.0',
    mapsIds: true,
    onEscapes: () => undefined,
  };
  assert.deepEqual(
    (await withFeatures(options, handlers)).map(({ name, recursiveReadOnlyMounts, userNamespaces }) => [
      name,
      recursiveReadOnlyMounts,
      userNamespaces,
    ]),
    [
      ['runc', true, true],
      ['other', true, true],
      ['broken', false, false],
      ['none', false, false],
    ],
  );
  assert.deepEqual(commands, ['runc features', 'false features', '/no/such features']);
  const [without] = await withFeatures({ ...options, mapsIds: false }, handlers);
  assert.deepEqual([without?.recursiveReadOnlyMounts, without?.userNamespaces], [true, false]);
});

test('a runc that containers escape from is told of once, whatever number of handlers it runs for', async () => {
  const features = (version: string): string =>
    JSON.stringify({ annotations: { 'org.opencontainers.runc.version': version } });
  const texts: Readonly<Record<string, string>> = {
    'runc-old': features('1.1.5+ds1'),
    'runc-new': features('1.3.7'),
    // As 1.3.0 has it.
    'runc-line': features('1.3.2\n'),
    another: '{"annotations":{"run.oci.crun.version":"1.8.1"}}',
    broken: '{"annotations":null}',
  };
  const told: string[] = [];
  await withFeatures(
    {
      spawner: {
        run: ({ command }) =>
          Promise.resolve({
            exitCode: 0,
            signalName: null,
            timedOut: false,
            truncated: false,
            stdout: Buffer.from(texts[command] ?? ''),
            stderr: Buffer.alloc(0),
          }),
      },
      searchPath: '',
      kernelRelease: '6.3.0',
      mapsIds: true,
      onEscapes: (runtime, version, { cves }) => void told.push(`${runtime} ${version} ${cves.join(' ')}`),
    },
    ['runc-old', 'runc-old', 'runc-new', 'runc-line', 'another', 'broken'].map((name, index) =>
      handler(`${name}-${index}`, name),
    ),
  );
  assert.deepEqual(told, [
    'runc-old 1.1.5+ds1 CVE-2024-21626 CVE-2025-31133 CVE-2025-52565 CVE-2025-52881 CVE-2026-119101',
    'runc-line 1.3.2 CVE-2025-31133 CVE-2025-52565 CVE-2025-52881 CVE-2026-119101',
  ]);
});
