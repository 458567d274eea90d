/**
 * Loading and looking for AppArmor profiles, with directories like the kernel's and a parser that writes down what it is
 * given: a kernel with AppArmor can't be had everywhere. What the real parser makes of the profile is in profile.test.ts.
 */
import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { type Apparmor, createApparmor } from '../../../src/adapters/apparmor/loader.ts';
import { defaultProfileText } from '../../../src/adapters/apparmor/profile.ts';
import { readSecurityModules } from '../../../src/platform/linux/security-modules.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { tempDir } from '../../support/temp-dir.ts';

interface Fake extends Apparmor {
  readonly path: (name: string) => string;
  /** What the parser was given, with its arguments before it; '' before the first time. */
  readonly given: () => Promise<string>;
  readonly write: (name: string, content: string) => Promise<void>;
}

/** Does what the kernel would: lists the profile. */
const PARSER = `echo "$@" > $0.given
cat >> $0.given
echo loaded >> $0.count
sed -n 's/^profile \\([^ ]*\\) .*/\\1 (enforce)/p' $0.given >> $0.profiles`;

const fakeNode = async (t: TestContext, parser: string | null, label = 'unconfined\n'): Promise<Fake> => {
  const dir = await tempDir(t);
  const spawner = await startSpawner({ lockPath: join(dir, 'spawner.lock'), startTimeoutMs: 10_000 });
  onCleanup(t, () => spawner.close());
  const path = (name: string): string => join(dir, name);
  const write = (name: string, content: string): Promise<void> => writeFile(path(name), content);
  await write('profiles', 'mine (enforce)\nother one (complain)\n');
  await write('label', label);
  if (parser !== null) {
    const program = path('apparmor_parser');
    await writeFile(program, `#!/bin/sh\n${parser.replaceAll('$0.profiles', path('profiles'))}\n`);
    await chmod(program, 0o755);
  }
  return {
    ...createApparmor({
      spawner,
      // The parser's own programs come after it; a real parser is in none of these.
      searchPath: `${dir}:/usr/bin:/bin`,
      directory: dir,
      ownLabelPaths: [path('missing'), path('label')],
    }),
    path,
    write,
    given: () => readFile(path('apparmor_parser.given'), 'utf8').catch(() => ''),
  };
};

describe('AppArmor profiles', { timeout: 60_000 }, () => {
  it('of the node are looked for in the kernel', async (t) => {
    const apparmor = await fakeNode(t, PARSER);
    assert.deepEqual(await apparmor.inspect('mine'), { loaded: true });
    assert.deepEqual(await apparmor.inspect('other one'), { loaded: true });
    for (const name of ['min', 'ine', 'other']) assert.equal((await apparmor.inspect(name)).loaded, false, name);
    assert.equal(await apparmor.given(), '', 'nobody wanted one of ours');
    await rm(apparmor.path('profiles'));
    await assert.rejects(apparmor.inspect('mine'), /profiles cannot be read/);
  });

  it('of ours is loaded once, in place of an older one, and again when somebody has unloaded it', async (t) => {
    const apparmor = await fakeNode(t, PARSER, 'systemd/scribe (enforce)\n');
    await apparmor.write('profiles', 'scribe-default (enforce)\n');
    const count = async (): Promise<number> =>
      (await readFile(apparmor.path('apparmor_parser.count'), 'utf8')).trim().split('\n').length;
    const both = await Promise.all([0, 1].map(() => apparmor.inspect('scribe-default')));
    assert.deepEqual(both, [{ loaded: true }, { loaded: true }]);
    assert.equal(await apparmor.given(), `--replace --skip-cache\n${defaultProfileText('systemd/scribe')}`);
    assert.deepEqual(await apparmor.inspect('scribe-default'), { loaded: true });
    assert.equal(await count(), 1);
    await apparmor.write('profiles', '');
    assert.deepEqual(await apparmor.inspect('scribe-default'), { loaded: true });
    assert.equal(await count(), 2);
  });

  it('of ours that cannot be loaded is a fact with its reason; one of an earlier life serves', async (t) => {
    const apparmor = await fakeNode(t, 'echo bad; echo "no such\nrule" >&2; exit 3');
    const problem = 'apparmor_parser ended with 3: no such; rule';
    assert.deepEqual(await apparmor.inspect('scribe-default'), { loaded: false, problem });
    await apparmor.write('profiles', 'scribe-default (enforce)\n');
    assert.deepEqual(await apparmor.inspect('scribe-default'), { loaded: true });
  });

  it('of ours needs apparmor_parser', async (t) => {
    const fact = await (await fakeNode(t, null)).loadDefault();
    assert.ok(!fact.loaded);
    assert.match(fact.problem, /Install apparmor_parser/);
  });
});

describe('security modules', () => {
  it('are on where the kernel says so', async (t) => {
    const dir = await tempDir(t);
    const places = {
      apparmorDir: join(dir, 'apparmor'),
      apparmorEnabledPath: join(dir, 'enabled'),
      selinuxDir: join(dir, 'selinux'),
    };
    const none = { apparmor: false, selinux: false };
    assert.deepEqual(await readSecurityModules(places), none);
    await mkdir(places.apparmorDir);
    await mkdir(places.selinuxDir);
    await writeFile(places.apparmorEnabledPath, 'N\n');
    assert.deepEqual(await readSecurityModules(places), none);
    await writeFile(places.apparmorEnabledPath, 'Y\n');
    await writeFile(join(places.selinuxDir, 'enforce'), '0');
    assert.deepEqual(await readSecurityModules(places), { apparmor: true, selinux: true });
  });
});
