/** scripts/setup.sh installs nothing where nothing is missing, and says what to do where it cannot install. */
import assert from 'node:assert/strict';
import { copyFile, mkdir, readFile, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { requireRoot } from '../support/netns.ts';
import { type CommandResult, run, runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const top = join(import.meta.dirname, '../..');

/** A clone whose npm dependencies look installed, so that only the programs of the machine matter. */
const cloneOf = async (t: TestContext): Promise<string> => {
  const dir = await tempDir(t);
  await mkdir(join(dir, 'scripts'));
  await mkdir(join(dir, 'node_modules'));
  await copyFile(join(top, 'scripts/setup.sh'), join(dir, 'scripts/setup.sh'));
  await writeFile(join(dir, 'package-lock.json'), '{}');
  await writeFile(join(dir, 'node_modules/.package-lock.json'), '{}');
  await mkdir(join(dir, 'node_modules/.bin'));
  await writeFile(join(dir, 'node_modules/.bin/node'), '#!/bin/sh\n', { mode: 0o755 });
  return dir;
};

/** Runs setup where the given shell lines have hidden something, in a mount namespace of its own. */
const setupWith = (dir: string, hide: string): Promise<CommandResult> => {
  requireRoot();
  return run(['unshare', '--mount', '--', 'sh', '-ec', `${hide}\nexec sh ${join(dir, 'scripts/setup.sh')} run`]);
};

const hidePlugins =
  'for d in /opt/cni/bin /usr/lib/cni /usr/libexec/cni; do [ ! -d $d ] || mount -t tmpfs none $d; done';
const hideApt = 'mount --bind /dev/null "$(command -v apt-get)"';

test('where nothing is missing, setup does nothing and says nothing', async (t) => {
  const { exitCode, stdout, stderr } = await setupWith(await cloneOf(t), ':');
  assert.deepEqual({ exitCode, stdout, stderr }, { exitCode: 0, stdout: '', stderr: '' });
});

test('a service, which has no HOME, can set up, and plugins may be where Fedora has them', async (t) => {
  const prepare = `${hidePlugins}\n${hideApt}\nmount -t tmpfs none /usr/libexec\nmkdir /usr/libexec/cni\ntouch /usr/libexec/cni/bridge\nunset HOME XDG_CACHE_HOME`;
  const { exitCode, stdout, stderr } = await setupWith(await cloneOf(t), prepare);
  assert.deepEqual({ exitCode, stdout, stderr }, { exitCode: 0, stdout: '', stderr: '' });
});

test('where there is no apt-get, setup names the missing programs', async (t) => {
  const { exitCode, stderr } = await setupWith(await cloneOf(t), `${hidePlugins}\n${hideApt}`);
  assert.equal(exitCode, 1);
  assert.match(stderr, /these programs are missing: \/opt\/cni\/bin\/bridge$/m);
  assert.match(stderr, /not a Debian system: .*containernetworking-plugins/);
});

/** Shell lines for an apt-get whose lists are older than its mirror until `update` makes <dir>/lists; nothing is written but in tmpfs. */
const aptWith = (dir: string, update: string): string => `${hidePlugins}
mount -t tmpfs none /etc/systemd
mkdir -p /etc/systemd/system/multi-user.target.wants
mount -t tmpfs none /lib/systemd/system
mount -t tmpfs none /usr/sbin
cat >${dir}/apt-get <<'END'
#!/bin/sh
echo "$*" >>${dir}/asked
case $* in
  *--simulate*) ;;
  update*) ${update} ;;
  *)
    [ -e ${dir}/lists ] || exit 100
    touch /lib/systemd/system/containerd.service /etc/systemd/system/multi-user.target.wants/containerd.service
    ;;
esac
END
chmod +x ${dir}/apt-get
PATH=${dir}:$PATH`;

test('where lists are older than the mirror, setup has new ones; a daemon that comes along is not enabled', async (t) => {
  const dir = await cloneOf(t);
  const look = `sh ${dir}/scripts/setup.sh run\nls /etc/systemd/system/multi-user.target.wants /lib/systemd/system /usr/sbin\nexit`;
  const { exitCode, stdout, stderr } = await setupWith(dir, `${aptWith(dir, `touch ${dir}/lists`)}\n${look}`);
  assert.equal(exitCode, 0, stderr);
  const asked = (await readFile(join(dir, 'asked'), 'utf8')).trim().split('\n');
  assert.deepEqual(
    asked.map((line) => /--simulate|^\w+/.exec(line)?.[0]),
    ['install', 'install', 'update', 'install'],
  );
  const listed =
    '/etc/systemd/system/multi-user.target.wants:\n\n/lib/systemd/system:\ncontainerd.service\n\n/usr/sbin:\n';
  assert.equal(stdout, listed);
});

test('where the mirror is out of reach, apt is to call that an error, and setup shows it', async (t) => {
  const dir = await cloneOf(t);
  const { exitCode, stderr } = await setupWith(dir, aptWith(dir, 'echo Could not resolve it; exit 100'));
  assert.equal(exitCode, 1);
  assert.match(
    stderr,
    /Could not resolve it\nsetup: apt-get install failed .*\n.*install by hand:.* containernetworking-plugins/,
  );
  assert.match(await readFile(join(dir, 'asked'), 'utf8'), /^update -o APT::Update::Error-Mode=any$/m);
});

test('who is not root gets the command to run', async (t) => {
  const dir = await cloneOf(t);
  const hide = `${hidePlugins}\nchmod 755 ${dir} ${dir}/scripts\nexec setpriv --reuid 65534 --clear-groups sh ${dir}/scripts/setup.sh run`;
  const { exitCode, stderr } = await setupWith(dir, hide);
  assert.equal(exitCode, 1);
  assert.match(stderr, /sudo apt-get install --no-install-recommends containernetworking-plugins/);
});

test('dependencies of another clone, behind a link, are left alone', async (t) => {
  const dir = await cloneOf(t);
  const { exitCode, stdout, stderr } = await setupWith(
    dir,
    `mv ${dir}/node_modules ${dir}/others\nrm ${dir}/others/.package-lock.json\ntouch ${dir}/others/kept\nln -s others ${dir}/node_modules`,
  );
  assert.deepEqual({ exitCode, stdout, stderr }, { exitCode: 0, stdout: '', stderr: '' });
  assert.deepEqual(await readdir(join(dir, 'others')), ['.bin', 'kept']);
});

test('when npm fails, setup shows its output and says what to do', async (t) => {
  const dir = await cloneOf(t);
  await writeFile(join(dir, 'package.json'), '{"name":"x","version":"1.0.0","dependencies":{"y":"1.0.0"}}');
  const { exitCode, stderr } = await setupWith(
    dir,
    `rm ${dir}/node_modules/.package-lock.json\nexport npm_config_fetch_retries=0`,
  );
  assert.equal(exitCode, 1);
  assert.match(stderr, /setup: installing npm dependencies \.\.\.\n/);
  assert.match(stderr, /npm error/);
  assert.match(stderr, /Then run 'npm ci --ignore-scripts' in /);
});

test('the Node that npm installed is linked where npm 9 has taken the link away, and needed where there is no other', async (t) => {
  const dir = await cloneOf(t);
  await rm(join(dir, 'node_modules/.bin/node'));
  await mkdir(join(dir, 'old'));
  await writeFile(join(dir, 'old/node'), '#!/bin/sh\necho 18\n', { mode: 0o755 });
  const oldNode = `PATH=${dir}/old:$PATH`;
  const none = await setupWith(dir, oldNode);
  assert.equal(none.exitCode, 1);
  assert.match(
    none.stderr,
    /installed no Node 24 for this kind of machine .*npm ci --ignore-scripts --include=optional/s,
  );

  for (const [machine, status] of [
    ['other', 126],
    ['this', 0],
  ] as const) {
    await mkdir(join(dir, `node_modules/node-linux-${machine}/bin`), { recursive: true });
    await writeFile(join(dir, `node_modules/node-linux-${machine}/bin/node`), `#!/bin/sh\nexit ${status}\n`, {
      mode: 0o755,
    });
  }
  const { exitCode, stderr } = await setupWith(dir, oldNode);
  assert.deepEqual({ exitCode, stderr }, { exitCode: 0, stderr: '' });
  assert.equal(await readlink(join(dir, 'node_modules/.bin/node')), '../node-linux-this/bin/node');
});

test('whatever npm is told on this machine, it installs all that a clone needs', async (t) => {
  const dir = await cloneOf(t);
  await copyFile(join(top, '.npmrc'), join(dir, '.npmrc'));
  for (const name of ['needed', 'optional']) {
    await mkdir(join(dir, name));
    await writeFile(join(dir, name, 'package.json'), `{"name":"${name}","version":"1.0.0"}`);
  }
  const kinds = '"devDependencies":{"needed":"file:needed"},"optionalDependencies":{"optional":"file:optional"}';
  await writeFile(join(dir, 'package.json'), `{"name":"x","version":"1.0.0","engines":{"node":">=1000"},${kinds}}`);
  await writeFile(join(dir, 'home-npmrc'), 'engine-strict=true\nomit[]=optional\n');
  const env = { ...process.env, NODE_ENV: 'production', npm_config_userconfig: join(dir, 'home-npmrc') };
  await rm(join(dir, 'package-lock.json'));
  await runOk(['npm', 'install', '--offline', '--silent'], { cwd: dir, env });
  assert.deepEqual(
    (await readdir(join(dir, 'node_modules'))).filter((name) => !name.startsWith('.')),
    ['needed', 'optional'],
  );
});

test('an unknown argument is refused', async () => {
  const { exitCode, stderr } = await run(['sh', join(top, 'scripts/setup.sh'), 'everything']);
  assert.equal(exitCode, 1);
  assert.match(stderr, /unknown argument 'everything'/);
});
