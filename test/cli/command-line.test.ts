/** The command line: what each command says of itself, and what is said to whoever mistypes it. */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { scribe } from './support.ts';

const top = join(import.meta.dirname, '../..');

const commands = [
  'serve',
  'history',
  'report',
  'why',
  'at',
  'diff',
  'verify',
  'replay',
  'prove',
  'export',
  'bundle',
  'ui',
  'sql',
  'doctor',
  'journal acknowledge',
  'journal backup',
  'journal clear-strays',
  'journal compact',
  'journal info',
  'journal vkey',
  'reload',
  'log-level',
  'nri',
  'image pull',
  'image load',
  'image ls',
  'config default',
  'config check',
  'version',
];

const wordsOf = (command: string): string[] => command.split(' ');

describe('help', () => {
  test('scribe --help lists every command', async () => {
    for (const words of [['--help'], ['-h'], ['help']]) {
      const { exitStatus, stdout, stderr } = await scribe(words);
      assert.equal(exitStatus, 0);
      assert.equal(stderr, '');
      for (const command of commands) assert.match(stdout, new RegExp(`^ {4}${command} `, 'm'));
    }
  });

  for (const command of commands) {
    test(`scribe ${command} --help is a manual page`, async () => {
      const { exitStatus, stdout, stderr } = await scribe([...wordsOf(command), '--help']);
      assert.equal(exitStatus, 0);
      assert.equal(stderr, '');
      // A sentence goes on behind what a command says of its statuses.
      assert.doesNotMatch(stdout, /\., /);
      for (const section of ['NAME', 'SYNOPSIS', 'DESCRIPTION', 'OPTIONS', 'EXIT STATUS']) {
        assert.match(stdout, new RegExp(`^${section}$`, 'm'));
      }
      assert.match(stdout, new RegExp(`^ {4}scribe ${command} - `, 'm'));
      const wide = stdout.split('\n').filter((line) => line.length > 80 && line.includes(' ', 8));
      assert.deepEqual(
        wide.filter((line) => !line.startsWith('    scribe ')),
        [],
      );
    });

    test(`scribe help ${command} shows the same`, async () => {
      const [one, other] = await Promise.all([
        scribe(['help', ...wordsOf(command)]),
        scribe([...wordsOf(command), '-h']),
      ]);
      assert.equal(one.stdout, other.stdout);
    });

    test(`README has the synopsis of scribe ${command}, and describes it`, async () => {
      const [{ stdout }, readme] = await Promise.all([
        scribe([...wordsOf(command), '--help']),
        readFile(join(top, 'README.md'), 'utf8'),
      ]);
      const [, synopsis = ''] = /^SYNOPSIS\n([\s\S]*?)\n\n/m.exec(stdout) ?? [];
      assert.match(synopsis, new RegExp(`^ {4}scribe ${command}`));
      assert.ok(readme.includes(`\n${synopsis}\n`), synopsis);
      assert.ok(readme.includes(`**${command}**`), command);
    });
  }

  test('a group of commands lists them', async () => {
    const { exitStatus, stdout } = await scribe(['image', '--help']);
    assert.equal(exitStatus, 0);
    assert.match(stdout, /image pull/);
    assert.doesNotMatch(stdout, /history/);
  });
});

describe('mistakes', () => {
  const mistakes: readonly (readonly [words: readonly string[], said: RegExp])[] = [
    [[], /^scribe: A command is missing\.\nscribe --help lists the commands\.$/m],
    [['histroy'], /There is no command "histroy"; did you mean "history"\?/],
    [['vers'], /did you mean "version"\?/],
    [['frobnicate'], /There is no command "frobnicate"; there are serve, history, /],
    [['image'], /"image" needs one of pull, load, ls after it/],
    [['image', 'pul'], /There is no command "image pul"; did you mean "image pull"\?/],
    [['config', '--file'], /"config" needs one of default, check after it/],
    [['history', '--flow'], /There is no option --flow; did you mean --follow\?\nscribe history --help describes/],
    [['history', '-x'], /There is no option -x; there are --root, /],
    [['history', '--constructor'], /There is no option --constructor; there are --root, /],
    [['history', '--limit'], /--limit needs a value: --limit NUMBER\./],
    [['history', '--root', '--json'], /--root needs a value/],
    [['history', '--root='], /The value of --root is empty/],
    [['history', '--json=yes'], /--json takes no value/],
    [['history', 'web'], /"web" is one word too many/],
    [['image', 'pull'], /REFERENCE is missing\./],
    [['diff'], /MOMENT MOMENT is missing\./],
    [['diff', '12'], /MOMENT is missing after "12"\./],
    [['history', '-- who'], /There is no option -- who; there are /],
    [['image', 'load', 'a', 'b'], /"b" is one word too many/],
    [['history', '--root', '/nowhere', '--limit', '-3'], /--limit -3: that is no number/],
    [['history', '--root', '/nowhere', '--since', '-5'], /--since -5: that is no time\. A moment is /],
    [['history', '-5m'], /There is no option -5; there are --root, /],
    [['prove', '--root', '/nowhere', '-5h'], /RECORD is a record's number, from 1 on, and not "-5h"/],
    [['history', '--root', '/nowhere', '--limit', 'few'], /--limit few: that is no number/],
    [['history', '--root', '/nowhere', '--since', 'noon'], /--since noon: that is no time\. A moment is /],
    [
      ['history', '--root', '/nowhere', '--pod', 'a', '--image', 'b'],
      /--image goes with none of --pod, --container, --namespace, --label/,
    ],
    [['history', '--root', '/nowhere', '--follow', '--until', '1h'], /--follow goes on, and --until ends/],
    [['replay', '--step', '--inspect', '/nowhere'], /--step and --inspect: give one of them/],
    [['replay', '--step', '--json', '/nowhere'], /--step and --json: give one of them; --break-on WHAT --json/],
    [['replay', '--inspect', '--json', '/nowhere'], /--inspect and --json: give one of them/],
    [['log-level', 'loud'], /There is no level loud; there are trace, debug, info, warn, error, fatal\.$/m],
    [['image', 'pull', '--username', 'me', 'app'], /--username and --password-stdin go together/],
    [['image', 'pull', '--password-stdin', 'app'], /--username and --password-stdin go together/],
  ];
  for (const [words, said] of mistakes) {
    test(`scribe ${words.join(' ')}`, async () => {
      const { exitStatus, stdout, stderr } = await scribe(words);
      assert.equal(exitStatus, 2, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, /^scribe: /);
      assert.match(stderr, said);
    });
  }

  test('what goes wrong is exit status 1 and one sentence', async () => {
    for (const command of ['history', 'verify']) {
      const { exitStatus, stdout, stderr } = await scribe([command, '--root', '/nowhere']);
      assert.equal(exitStatus, 1);
      assert.equal(stdout, '');
      assert.match(stderr, /^scribe: There is no journal at \/nowhere\/journal\.db\.[^\n]*\n$/);
    }
  });

  test('a value may begin with a dash when it is joined by an equals sign, and -- ends the options', async (t) => {
    const dir = await tempDir(t);
    const named = await scribe(['image', 'load', '--socket', join(dir, 'none'), '--', '--odd']);
    assert.match(named.stderr, /There is no archive at --odd/);
    const joined = await scribe(['history', '--root', dir, '--pod=-x']);
    assert.match(joined.stderr, /There is no journal at /);
  });
});

test('version', async () => {
  const { version } = JSON.parse(await readFile(join(top, 'package.json'), 'utf8')) as { version: string };
  for (const word of ['version', '--version']) {
    assert.deepEqual(await scribe([word]), {
      exitStatus: 0,
      stdout: `scribe ${version}, Node ${process.version}\n`,
      stderr: '',
    });
  }
});

describe('config', () => {
  test('config default is a configuration that config check finds nothing wrong with', async (t) => {
    const path = join(await tempDir(t), 'config.toml');
    const { exitStatus, stdout } = await scribe(['config', 'default']);
    assert.equal(exitStatus, 0);
    await writeFile(path, stdout);
    const checked = await scribe(['config', 'check', '--config', path]);
    assert.deepEqual(checked, { exitStatus: 0, stdout: `${path}\nNo problem found.\n`, stderr: '' });
  });

  test('config check lists every problem', async (t) => {
    const dir = await tempDir(t);
    const path = join(dir, 'config.toml');
    await mkdir(join(dir, 'conf.d'));
    await writeFile(path, '[serve]\nsockte = "/s"\n');
    await writeFile(join(dir, 'conf.d/a.toml'), '[cni]\nmax_conf_files = 0\n');
    const { exitStatus, stderr } = await scribe(['config', 'check', '--config', path]);
    assert.equal(exitStatus, 1);
    assert.match(stderr, /"sockte" is not a key of \[serve\]; did you mean "socket"\?/);
    assert.match(stderr, /a\.toml: cni\.max_conf_files must be a whole number/);
  });

  test('a command that is told its root by an option needs no configuration', async (t) => {
    const dir = await tempDir(t);
    const path = join(dir, 'config.toml');
    await writeFile(path, 'broken');
    const told = await scribe(['history', '--config', path, '--root', dir]);
    assert.match(told.stderr, /There is no journal at /);
    const untold = await scribe(['history', '--config', path]);
    assert.match(untold.stderr, /The configuration can't be used/);
  });

  test('the root comes from the configuration', async (t) => {
    const dir = await tempDir(t);
    const path = join(dir, 'config.toml');
    await writeFile(path, `[serve]\nroot = "${dir}/root"\n`);
    const { stderr } = await scribe(['verify', '--config', path]);
    assert.match(stderr, new RegExp(`There is no journal at ${dir}/root/journal.db`));
  });
});

test('serve: a configuration that cannot be used ends it with a sentence', async (t) => {
  const dir = await tempDir(t);
  const words = ['serve', '--root', join(dir, 'same'), '--state', join(dir, 'same')];
  const { exitStatus, stderr } = await scribe(words);
  assert.equal(exitStatus, 1);
  assert.match(stderr, /serve\.root and serve\.state are both /);
});

test('bin/scribe passes exit statuses on, and is quiet when its reader goes away', async () => {
  const program = join(top, 'bin/scribe');
  assert.equal((await run([program, 'version'])).exitCode, 0);
  assert.equal((await run([program, 'history', '--root', '/nowhere'])).exitCode, 1);
  assert.equal((await run([program, 'histroy'])).exitCode, 2);
  const { stderr } = await run(['sh', '-c', `${program} config default | head -n 1 > /dev/null`]);
  assert.equal(stderr, '');
});
