/** What `scribe report` says of words that it cannot take, and where nothing fits what was asked for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tell } from './story.ts';
import { rootWith, type Said, scribe } from './support.ts';

test('what is mistyped is said, and that nothing fits', async (t) => {
  const { dir } = await rootWith(t, (await tell()).records);
  const said = (...words: readonly string[]): Promise<Said> => scribe(['report', '--root', dir, ...words]);
  assert.match((await said('exec')).stderr, /did you mean execs\?/);
  assert.match((await said('--per', 'week')).stderr, /--per week: there are day and hour/);
  assert.equal((await said('--limit', '0')).exitStatus, 2);
  const nothing = await said('pulls', '--image', 'nowhere.test/none:1');
  assert.deepEqual(
    [nothing.exitStatus, nothing.stdout, nothing.stderr],
    [0, '', 'scribe: Nothing was recorded that fits.\n'],
  );
  const behind = await said('--since', '9000');
  assert.match(behind.stdout, /^Commands and sessions in containers: none\n/);
  assert.match(behind.stderr, /^scribe: Nothing was recorded that fits: the journal ends with record \d+\.\n$/);
  assert.deepEqual(await said('--json', '--since', '9000'), { ...nothing, stderr: '' });
});
