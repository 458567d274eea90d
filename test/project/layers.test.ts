/**
 * The layer table of docs/architecture.md holds, and every rule of .dependency-cruiser.js bites: a tree with one planted
 * violation per line is checked, and exactly the expected rules are found, no more and no less.
 */
import assert from 'node:assert/strict';
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const top = join(import.meta.dirname, '../..');
const depcruise = join(top, 'node_modules/.bin/depcruise');

/** File, what it imports, and the rules that this breaks; with none the import is allowed. */
const planted: readonly (readonly [file: string, line: string, ...rules: readonly string[]])[] = [
  ['domain/packages.ts', "import 'rxjs';", 'domain-imports-nothing'],
  ['domain/built-ins.ts', "import 'node:crypto';", 'domain-imports-nothing'],
  ['domain/types.ts', "import type { X } from '../journal/types.ts';", 'domain-imports-nothing'],

  ['domain/model/up.ts', "import type { X } from '../oci/own.ts';", 'domain-model-sees-what-is-below'],
  ['domain/values/up.ts', "import '../oci/own.ts';", 'domain-values-sees-what-is-below'],
  ['domain/oci/up.ts', "import '../deciding/own.ts';", 'domain-oci-sees-what-is-below'],
  ['domain/nri/up.ts', "import '../deciding/own.ts';", 'domain-nri-sees-what-is-below'],
  ['domain/deciding/up.ts', "import '../turn/own.ts';", 'domain-deciding-sees-what-is-below'],
  ['domain/image/up.ts', "import '../container/decide.ts';", 'domain-image-sees-what-is-below'],
  ['domain/container/up.ts', "import '../pod-sandbox/own.ts';", 'domain-container-sees-what-is-below'],
  ['domain/pod-sandbox/up.ts', "import '../node/own.ts';", 'domain-pod-sandbox-sees-what-is-below'],
  ['domain/node/up.ts', "import '../call/own.ts';", 'domain-node-sees-what-is-below'],
  ['domain/call/up.ts', "import '../turn/own.ts';", 'domain-call-sees-what-is-below'],
  ['domain/turn/new-room.ts', "import '../new/own.ts';", 'domain-turn-sees-what-is-below'],
  ['domain/turn/no-room.ts', "import '../packages.ts';", 'domain-has-rooms-only', 'domain-turn-sees-what-is-below'],
  [
    'domain/turn/all.ts',
    [
      ...['model/errors', 'values/own', 'oci/own', 'nri/own', 'deciding/own', 'image/own', 'container/own'],
      ...['pod-sandbox/own', 'node/own', 'call/own', 'turn/own'],
    ]
      .map((path) => `import '../${path}.ts';`)
      .join('\n'),
  ],

  ['journal/domain.ts', "import '../domain/model/errors.ts';", 'journal-knows-records-only'],
  ['journal/engine.ts', "import '../engine/ports.ts';", 'journal-knows-records-only'],
  ['journal/thread.ts', "import '../platform/native-thread.ts';"],
  ['journal/platform.ts', "import '../platform/foreign-json.ts';", 'journal-knows-records-only'],
  ['journal/package.ts', "import 'pino';", 'journal-knows-records-only'],
  ['journal/stream.ts', "import 'rxjs';", 'journal-knows-records-only'],
  ['journal/sqlite.ts', "import 'better-sqlite3';\nimport 'node:worker_threads';"],
  ['journal/ffi.ts', "import 'koffi';", 'system-calls-in-one-place'],
  ['journal/lock.ts', "import 'koffi';"],

  ['engine/adapter.ts', "import '../adapters/shim/own.ts';", 'engine-sees-domain-and-journal'],
  ['engine/built-in.ts', "import 'node:fs';", 'engine-sees-domain-and-journal'],
  ['engine/projection.ts', "import '../projections/own.ts';", 'engine-sees-domain-and-journal'],
  ['engine/sqlite.ts', "import '../journal/sqlite.ts';", 'engine-sees-domain-and-journal'],
  [
    'engine/own.ts',
    "import './ports.ts';\nimport '../domain/model/errors.ts';\nimport '../journal/types.ts';\nimport 'rxjs';",
  ],

  ['projections/journal.ts', "import type { X } from '../journal/types.ts';", 'projections-see-domain'],
  ['projections/package.ts', "import 'rxjs';", 'projections-see-domain'],
  ['projections/own.ts', "import '../domain/model/errors.ts';"],

  ['adapters/shim/sibling.ts', "import '../cni/own.ts';", 'adapters-see-contracts'],
  ['adapters/shim/journal.ts', "import '../../journal/types.ts';", 'adapters-see-contracts'],
  ['adapters/shim/engine.ts', "import '../../engine/own.ts';", 'adapters-see-contracts'],
  ['adapters/shim/projection.ts', "import '../../projections/own.ts';", 'adapters-see-contracts'],
  ['adapters/shim/decides.ts', "import { x } from '../../domain/container/decide.ts';", 'adapters-decide-nothing'],
  ['adapters/shim/sqlite.ts', "import 'better-sqlite3';", 'sqlite-is-the-journals'],
  ['adapters/shim/metrics.ts', "import 'prom-client';", 'prometheus-in-one-place'],
  ['daemon/spans.ts', "import '@opentelemetry/api';", 'opentelemetry-in-one-place'],
  ['adapters/shim/ffi.ts', "import 'koffi';", 'system-calls-in-one-place'],
  ['adapters/shim/grpc.ts', "import '@grpc/grpc-js';", 'grpc-is-for-both-ends-of-the-socket'],
  ['adapters/shim/dev.ts', "import 'typescript';", 'no-dev-packages'],
  ['adapters/shim/config.ts', "import '../../config/own.ts';", 'adapters-see-contracts', 'config-is-for-the-root'],
  ['adapters/shim/root.ts', "import '../../daemon/own.ts';", 'adapters-see-contracts', 'daemon-is-the-root'],
  ['adapters/shim/cli.ts', "import '../../cli/own.ts';", 'adapters-see-contracts', 'cli-is-the-outside'],
  ['cli/missing.ts', "import './nowhere.ts';", 'resolvable'],
  ['adapters/shim/test.ts', "import '../../../test/a.ts';", 'adapters-see-contracts', 'source-stays-in-src'],
  ['adapters/shim/circle-a.ts', "import './circle-b.ts';", 'no-circles'],
  ['adapters/shim/circle-b.ts', "import './circle-a.ts';"],
  [
    'adapters/shim/own.ts',
    [
      "import '../../domain/model/errors.ts';",
      "import type { X } from '../../domain/container/decide.ts';",
      "import '../../engine/ports.ts';",
      "import '../../wire/api.ts';",
      "import '../../platform/ttrpc/client.ts';",
      "import '../../platform/linux/calls.ts';",
      "import '../images/snapshots-port.ts';",
      "import 'node:net';",
      "import 'pino';",
    ].join('\n'),
  ],
  ['platform/linux/calls.ts', "import 'koffi';\nimport '../../domain/model/errors.ts';"],
  ['platform/linux/pods.ts', "import '../../domain/container/own.ts';", 'platform-knows-no-pods'],
  ['platform/rpc/words.ts', "import '../../domain/model/errors.ts';", 'rpc-knows-nobody'],
  ['platform/rpc/package.ts', "import 'rxjs';", 'platform-knows-no-pods', 'rpc-knows-nobody'],
  ['platform/rpc/own.ts', "import './words.ts';\nimport 'node:timers/promises';"],
  ['adapters/cri/own.ts', "import '@grpc/grpc-js';"],
  ['wire/api.ts', "import '@bufbuild/protobuf/wire';"],
  ['wire/types.ts', "import '../adapters/cri/own.ts';", 'wire-is-generated'],

  ['adapters/cni/schema.ts', "import 'zod';"],
  ['platform/foreign-json.ts', "import 'zod';"],
  ['platform/linux/schema.ts', "import 'zod';", 'zod-is-for-what-others-wrote'],
  ['daemon/schema.ts', "import 'zod';", 'zod-is-for-what-others-wrote'],
  ['adapters/log-keeper/keeper-main.ts', "import './schema.ts';", 'small-programs-load-no-zod'],
  ['adapters/log-keeper/schema.ts', "import 'zod';"],

  ['config/own.ts', "import 'zod';\nimport 'smol-toml';\nimport 'node:fs';\nimport '../domain/model/errors.ts';"],
  ['config/adapter.ts', "import '../adapters/cri/own.ts';", 'config-stands-alone'],
  ['daemon/own.ts', "import '../config/own.ts';\nimport '../adapters/cri/own.ts';\nimport '../journal/sqlite.ts';"],
  ['cli/own.ts', "import '../daemon/own.ts';\nimport '../config/own.ts';"],
  ['ui/built-in.ts', "import 'node:fs';", 'pages-run-in-browsers'],
  ['ui/words.ts', "import './own.ts';"],
  ['daemon/page.ts', "import '../ui/own.ts';", 'pages-are-served-by-commands'],
  ['cli/page.ts', "import '../ui/own.ts';"],
  ['cli/grpc.ts', "import '@grpc/grpc-js';"],
];

/** Files that are imported above and need no imports of their own. */
const plain = [
  'domain/model/errors.ts',
  'domain/container/decide.ts',
  'journal/types.ts',
  'engine/ports.ts',
  'adapters/cni/own.ts',
  ...['values', 'oci', 'nri', 'deciding', 'image', 'container', 'pod-sandbox', 'node', 'call', 'turn', 'new'].map(
    (room) => `domain/${room}/own.ts`,
  ),
  'platform/native-thread.ts',
  'platform/ttrpc/client.ts',
  'adapters/images/snapshots-port.ts',
  'ui/own.ts',
  '../test/a.ts',
];

test('the layer table holds', async () => {
  const { exitCode, stdout } = await run([depcruise, '--config', '.dependency-cruiser.js', 'src'], { cwd: top });
  assert.equal(exitCode, 0, stdout);
});

test('every planted violation of the layer table is found, and nothing else', async (t) => {
  const dir = await tempDir(t);
  for (const name of ['.dependency-cruiser.js', 'package.json', 'tsconfig.json']) {
    await copyFile(join(top, name), join(dir, name));
  }
  await symlink(join(top, 'node_modules'), join(dir, 'node_modules'));
  const files = [...plain.map((file) => [file, ''] as const), ...planted];
  for (const [file, line] of files) {
    const path = join(dir, 'src', file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, `${line}\nexport const x = 1;\nexport type X = 1;\n`);
  }

  const { stdout } = await run([depcruise, '--config', '.dependency-cruiser.js', '-T', 'json', 'src'], { cwd: dir });
  const { summary } = JSON.parse(stdout) as {
    summary: { violations: { from: string; rule: { name: string } }[]; ruleSetUsed: { forbidden: { name: string }[] } };
  };
  const found = new Set(summary.violations.map(({ from, rule }) => `${from} ${rule.name}`));
  const expected = planted.flatMap(([file, , ...rules]) => rules.map((rule) => `src/${file} ${rule}`));
  assert.deepEqual([...found].sort(), [...expected].sort());

  const proven = new Set(planted.flatMap(([, , ...rules]) => rules));
  assert.deepEqual(
    summary.ruleSetUsed.forbidden.map(({ name }) => name).filter((name) => !proven.has(name)),
    [],
    'rules without a planted violation',
  );
});
