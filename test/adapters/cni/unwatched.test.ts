/** The configuration directory on a node whose inotify instances are used up, in a user namespace with limits of its own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { it } from 'node:test';
import { tempDir } from '../../support/temp-dir.ts';

const EVERY_MS = 50;
const LIMIT = '/proc/sys/user/max_inotify_instances';
/** At the end of its stdin it is given instances. */
const script = (child: string): string =>
  `exec 3<&0; echo 0 > ${LIMIT}; { cat <&3; echo 8 > ${LIMIT}; } & exec ${process.execPath} ${child} "$@" < /dev/null 3<&-`;

it('C20: is read from time to time where it cannot be watched, and watched as soon as it can', {
  timeout: 60_000,
}, async (t) => {
  const dir = await tempDir(t);
  const child = join(import.meta.dirname, 'unwatched-child.ts');
  const args = [
    '--user',
    '--map-root-user',
    '--kill-child',
    'bash',
    '-c',
    script(child),
    'bash',
    dir,
    String(EVERY_MS),
  ];
  const watch = spawn('unshare', args, { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => watch.kill('SIGKILL'));
  const lines = createInterface(watch.stdout)[Symbol.asyncIterator]();
  const seen: string[] = [];
  const until = async (wanted: RegExp): Promise<void> => {
    for (let line = ''; !wanted.test(line); seen.push(line)) {
      const next = await lines.next();
      assert.ok(next.done !== true, `${String(wanted)} did not come after ${seen.join('; ')}`);
      line = next.value;
      assert.doesNotMatch(line, /^ended/);
    }
  };
  const writeConf = (name: string): Promise<void> =>
    writeFile(join(dir, '10-net.conflist'), JSON.stringify({ name, plugins: [{ type: 'bridge' }] }));

  await until(/^started/);
  assert.ok(seen.some((line) => /^log .*cannot be watched .*EMFILE.*max_user_instances/.test(line)));
  await writeConf('first');
  await until(/^network first/);
  watch.stdin.end();
  await until(/^log .*is watched again/);
  await writeConf('second');
  await until(/^network second/);
});
