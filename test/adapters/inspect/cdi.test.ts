/** CDI spec files on the real file system: which are read, which device wins, and what a bad file does. Needs root. */
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { createInspectCdiDevices } from '../../../src/adapters/inspect/cdi-devices.ts';
import { createCdiSpecs } from '../../../src/adapters/inspect/cdi-specs.ts';
import { parseFiles } from '../../../src/adapters/inspect/parse-files.ts';
import { deviceNumber, makeNode, NodeType } from '../../../src/platform/linux/syscalls.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { requireRoot } from '../../support/netns.ts';
import { tempDir } from '../../support/temp-dir.ts';

before(requireRoot);

const spec = (edits: object, devices: readonly string[] = ['d0'], kind = 'vendor.com/gpu'): string =>
  JSON.stringify({
    cdiVersion: '0.7.0',
    kind,
    devices: devices.map((name) => ({ name, containerEdits: { env: [`${name.toUpperCase()}=device`] } })),
    containerEdits: edits,
  });

const setUp = async (t: TestContext) => {
  const dir = await tempDir(t);
  const dirs = [join(dir, 'static'), join(dir, 'dynamic'), join(dir, 'absent')];
  const [fixed = '', dynamic = ''] = dirs;
  await mkdir(fixed, { mode: 0o755 });
  await mkdir(dynamic, { mode: 0o755 });
  const warnings: string[] = [];
  const log = { warn: (fields: object) => void warnings.push(JSON.stringify(fields)) };
  const specs = createCdiSpecs({ dirs, log });
  const tokens: string[] = [];
  const tokenOf = (value: string): string => `token-${tokens.push(value) - 1}`;
  const inspect = createInspectCdiDevices({ specs, tokenOf });
  const refusal = async (...names: string[]): Promise<string> => {
    const error = await inspect(names).then(
      () => assert.fail('was not refused'),
      (failure: unknown) => failure,
    );
    assert.ok(error instanceof FailureError, String(error));
    assert.equal(error.failure.reason, 'HostLacks');
    return error.message;
  };
  return { dir, fixed, dynamic, warnings, tokens, inspect, refusal };
};

describe('CDI devices', () => {
  it('have the edits of their file once, then their own, with tokens for values', async (t) => {
    const { fixed, tokens, inspect } = await setUp(t);
    const hooks = [{ hookName: 'poststop', path: '/bin/true', env: ['H=hook'] }];
    await writeFile(join(fixed, 'a.json'), spec({ env: ['ALL=a=b'], hooks }, ['d0', 'd1']));
    assert.deepEqual(await inspect(['vendor.com/gpu=d1', 'vendor.com/gpu=d0']), [
      {
        env: [{ name: 'ALL', token: 'token-0' }],
        hooks: [{ hookName: 'poststop', path: '/bin/true', env: [{ name: 'H', token: 'token-1' }] }],
      },
      { env: [{ name: 'D1', token: 'token-2' }] },
      { env: [{ name: 'D0', token: 'token-3' }] },
    ]);
    assert.deepEqual(tokens, ['a=b', 'hook', 'device', 'device']);
  });

  it('are read from YAML, and anew when a file comes, changes or goes', async (t) => {
    const { fixed, inspect, refusal } = await setUp(t);
    const path = join(fixed, 'a.yaml');
    const yaml = (group: number): string => `---
cdiVersion: 0.7.0
kind: vendor.com/gpu
devices:
  - name: 0
    containerEdits: &edits
      additionalGids: [${group}]
      deviceNodes:
        - {path: /dev/null, fileMode: 0660}
  - name: 'all'
    containerEdits: *edits
`;
    const groupsOf = async (name: string) =>
      (await inspect([`vendor.com/gpu=${name}`])).flatMap(({ additionalGids = [] }) => additionalGids);
    await writeFile(path, yaml(5));
    assert.deepEqual([await groupsOf('0'), await groupsOf('all')], [[5], [5]]);
    const [, edits] = await inspect(['vendor.com/gpu=0']);
    assert.deepEqual(edits?.deviceNodes, [{ path: '/dev/null', type: 'c', major: 1, minor: 3, fileMode: 0o660 }]);
    await writeFile(path, yaml(6));
    assert.deepEqual(await groupsOf('0'), [6]);
    await rm(path);
    assert.match(await refusal('vendor.com/gpu=0'), /^CDI_devices "vendor\.com\/gpu=0": no CDI spec describes it/);
  });

  it('are those of the later directory; two files of one directory are in each other’s way', async (t) => {
    const { fixed, dynamic, inspect, refusal } = await setUp(t);
    const gidsOf = async (name: string) => (await inspect([name])).flatMap(({ additionalGids = [] }) => additionalGids);
    await writeFile(join(fixed, 'a.json'), spec({ additionalGids: [1] }, ['d0', 'd1']));
    await writeFile(join(dynamic, 'a.json'), spec({ additionalGids: [2] }));
    assert.deepEqual([await gidsOf('vendor.com/gpu=d0'), await gidsOf('vendor.com/gpu=d1')], [[2], [1]]);
    await writeFile(join(fixed, 'b.json'), spec({ additionalGids: [3] }, ['d0', 'd1']));
    assert.deepEqual(await gidsOf('vendor.com/gpu=d0'), [2]);
    const twice = await refusal('vendor.com/gpu=d1');
    assert.match(
      twice,
      /"vendor\.com\/gpu=d1" is described by .*static\/a\.json and .*static\/b\.json: remove it from all but one/,
    );
  });

  it('that are not there are named, with what is wrong with files that might have had them', async (t) => {
    const { fixed, warnings, inspect, refusal } = await setUp(t);
    await writeFile(join(fixed, 'good.json'), spec({}));
    await writeFile(join(fixed, 'bad.json'), '{');
    await writeFile(join(fixed, 'bad.yaml'), 'kind: a: b');
    await writeFile(join(fixed, 'twice.yaml'), 'kind: a/b\nkind: a/b');
    await writeFile(join(fixed, 'notes.txt'), 'no spec');
    assert.equal((await inspect(['vendor.com/gpu=d0'])).length, 2);
    const message = await refusal('vendor.com/gpu=d0', 'vendor.com/gpu=d7', 'vendor.com/net=d8');
    assert.match(
      message,
      /^CDI_devices "vendor\.com\/gpu=d7", "vendor\.com\/net=d8": no CDI spec describes it \(looked in /,
    );
    for (const name of ['bad.json', 'bad.yaml', 'twice.yaml']) assert.ok(message.includes(name), `${name}: ${message}`);
    assert.doesNotMatch(message, /\n|notes\.txt/);
    assert.equal(warnings.length, 3, warnings.join());
  });

  it('C12: leave no word of their files in messages, whatever is wrong with them', async (t) => {
    const { fixed, warnings, refusal } = await setUp(t);
    const secret = 'canary-in-a-spec';
    const good = spec({ env: [`A=${secret}`] });
    const texts = [
      ['cut.json', good.slice(0, good.indexOf(secret) + secret.length)],
      ['comma.json', good.replace(secret, `${secret}",`)],
      ['word.json', `A=${secret}`],
      ['indent.yaml', `kind: v/c\ncontainerEdits:\n  env:\n  - A=${secret}\n - B=${secret}\n`],
      ['value.yaml', `kind: v/c\nenv: "A=${secret}" ${secret}\n`],
      ['token.yaml', `{A: ${secret}}} ${secret}: {`],
      ['key.yaml', good.replace(`["A=${secret}"]`, `{"A=${secret}": 1}`)],
      ['alias.yaml', `env: *${secret}\n`],
      ['field.yaml', `A=${secret}: 1\n`],
      ['text.json', good.replace('A=', '')],
      ['tag.yaml', `kind: !${secret} x`],
    ] as const;
    for (const [name, text] of texts) {
      await writeFile(join(fixed, name), text);
      assert.match(await refusal('vendor.com/net=d0'), new RegExp(name));
      await rm(join(fixed, name));
    }
    await writeFile(join(fixed, 'lines.json'), '{\n  "kind": 1,\n}');
    assert.match(await refusal('vendor.com/net=d0'), /lines\.json is not valid JSON at line 3, column 1/);
    await writeFile(join(fixed, 'lines.yaml'), 'kind: a\nkind: b\n');
    assert.match(
      await refusal('vendor.com/net=d0'),
      /lines\.yaml is not valid YAML at line 2, column 1 \(DUPLICATE_KEY\)/,
    );
    assert.equal(warnings.length, texts.length + 2);
    assert.equal(warnings.join().includes(secret), false, warnings.join('\n'));
  });

  it('are never taken from what others than root can write', async (t) => {
    const { dir, fixed, dynamic, warnings, inspect, refusal } = await setUp(t);
    const path = join(fixed, 'a.json');
    await writeFile(path, spec({}));
    for (const [spoil, mend, problem] of [
      [() => chmod(path, 0o666), () => chmod(path, 0o644), /a\.json can be written by others/],
      [() => chmod(path, 0o620), () => chmod(path, 0o600), /a\.json can be written by others/],
      [() => chown(path, 1, 0), () => chown(path, 0, 0), /a\.json belongs to the user 1/],
      [() => chmod(fixed, 0o777), () => chmod(fixed, 0o755), /static can be written by others/],
      [() => chown(fixed, 1, 0), () => chown(fixed, 0, 0), /static belongs to the user 1/],
    ] as const) {
      await spoil();
      assert.match(await refusal('vendor.com/gpu=d0'), problem);
      await mend();
      assert.equal((await inspect(['vendor.com/gpu=d0'])).length, 2);
    }
    assert.equal(warnings.length, 5);
    const elsewhere = join(dir, 'elsewhere.json');
    await writeFile(elsewhere, spec({}, ['linked']), { mode: 0o666 });
    await chmod(elsewhere, 0o666);
    await symlink(elsewhere, join(dynamic, 'link.json'));
    assert.match(await refusal('vendor.com/gpu=linked'), /link\.json can be written by others/);
  });

  it('files are bounded: by size, by what aliases make of them, by time; no FIFO is waited for', async (t) => {
    const { fixed, refusal } = await setUp(t);
    await writeFile(join(fixed, 'large.json'), '');
    await truncate(join(fixed, 'large.json'), 5 * 1024 * 1024);
    await makeNode(join(fixed, 'fifo.json'), NodeType.fifo | 0o600);
    const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]'];
    for (const [name, from] of ['ba', 'cb', 'dc', 'ed', 'fe', 'gf', 'hg'].map((pair) => [...pair]))
      bomb.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${from}`).join(', ')}]`);
    await writeFile(join(fixed, 'bomb.yaml'), bomb.join('\n'));
    const message = await refusal('vendor.com/gpu=d0');
    assert.match(message, /bomb\.yaml is not valid YAML/);
    assert.match(message, /fifo\.json is no regular file/);
    assert.match(message, /large\.json has 5242880 bytes/);
    const [slow] = await parseFiles('cdi', [{ path: '/etc/cdi/a.json', text: spec({}) }], 0);
    assert.equal(slow?.problem, '/etc/cdi/a.json could not be parsed: that took more than 0 ms');
  });

  it('are found although another file takes all the memory that parsing may take', async (t) => {
    const { fixed, warnings, inspect, refusal } = await setUp(t);
    for (const name of ['a', 'z']) await writeFile(join(fixed, `${name}.json`), spec({}, [name]));
    await writeFile(join(fixed, 'many.yaml'), `a: [${'x,'.repeat(2_000_000)}]`);
    for (const name of ['a', 'z']) assert.equal((await inspect([`vendor.com/gpu=${name}`])).length, 2);
    assert.match(await refusal('vendor.com/gpu=d0'), /many\.yaml could not be parsed: .* memory limit/);
    assert.equal(warnings.length, 1, 'it is parsed once');
  });

  it('devices are looked up on the host unless the file gives their numbers', async (t) => {
    const { dir, fixed, inspect, refusal } = await setUp(t);
    const node = join(dir, 'node');
    await makeNode(node, NodeType.blockDevice | 0o640, deviceNumber(7, 300));
    await chmod(node, 0o640);
    const nodesOf = async (...deviceNodes: readonly object[]) => {
      await writeFile(join(fixed, 'a.json'), spec({ deviceNodes }));
      return (await inspect(['vendor.com/gpu=d0']))[0]?.deviceNodes;
    };
    const found = { type: 'b', major: 7, minor: 300, fileMode: 0o640 };
    assert.deepEqual(await nodesOf({ path: node }), [{ path: node, ...found }]);
    assert.deepEqual(await nodesOf({ path: '/dev/x', hostPath: node, permissions: 'r', uid: 4 }), [
      { path: '/dev/x', hostPath: node, permissions: 'r', uid: 4, ...found },
    ]);
    const whole = { path: '/dev/absent', type: 'c', major: 9, minor: 1 };
    assert.deepEqual(await nodesOf(whole), [whole]);
    for (const [wrong, problem] of [
      [{ path: '/dev/absent' }, /the device \/dev\/absent cannot be used: ENOENT/],
      [{ path: node, type: 'c' }, /is no device of type c/],
      [{ path: dir }, /is no device$/],
    ] as const) {
      await writeFile(join(fixed, 'a.json'), spec({ deviceNodes: [wrong] }));
      assert.match(await refusal('vendor.com/gpu=d0'), problem);
    }
  });
});
