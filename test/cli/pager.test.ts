/** Long results on a terminal: by which pager they are shown, and what becomes of the command when that is left. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { CliError, type ExitStatus } from '../../src/cli/command.ts';
import { history as historyCommand } from '../../src/cli/history.ts';
import { type Output, write } from '../../src/cli/io.ts';
import { paged } from '../../src/cli/pager.ts';
import { tempDir } from '../support/temp-dir.ts';
import { recordsOf, rootWith, sink, startNode } from './support.ts';

const terminal = { columns: 100, rows: 24 };
const PATH = process.env['PATH'] ?? '';

const three = async (output: Output): Promise<ExitStatus> => {
  for (const line of ['one', 'two', 'three']) await write(output, `${line} of ${output.columns ?? 0}\n`);
  return 1;
};

describe('long results', () => {
  test('are shown by the pager that the environment names, as wide as the terminal, and the status stays', async (t) => {
    const shown = join(await tempDir(t), 'shown');
    const env = { PATH, PAGER: 'false', SCRIBE_PAGER: `{ echo "$LESS"; cat; } > ${shown}` };
    const { output, text } = sink(terminal);
    assert.equal(await paged(output, env, three), 1);
    assert.equal(await readFile(shown, 'utf8'), 'FRX\none of 100\ntwo of 100\nthree of 100\n');
    assert.equal(text(), '');
    assert.equal(await paged(output, { ...env, LESS: 'S' }, three), 1);
    assert.match(await readFile(shown, 'utf8'), /^S\n/);
  });

  test('end the command when the pager is left, however much is to come', { timeout: 20_000 }, async (t) => {
    const shown = join(await tempDir(t), 'shown');
    const endless = async (output: Output): Promise<ExitStatus> => {
      for (;;) await write(output, 'more\n'.repeat(1_000));
    };
    assert.equal(await paged(sink(terminal).output, { PATH, PAGER: `head -n 1 > ${shown}` }, endless), 0);
    assert.equal(await readFile(shown, 'utf8'), 'more\n');
  });

  for (const [why, env] of [
    ['where cat is named', { PATH, PAGER: 'cat' }],
    ['where none is named', { PATH, SCRIBE_PAGER: '', PAGER: 'less' }],
    ['where there is no less', { PATH: '/nowhere' }],
  ] as const)
    test(`are written as they are ${why}`, async () => {
      const { output, text } = sink(terminal);
      assert.equal(await paged(output, env, three), 1);
      assert.equal(text(), 'one of 100\ntwo of 100\nthree of 100\n');
    });

  test('are told to need another pager where the one that is named is none', async () => {
    const running = paged(sink(terminal).output, { PATH, PAGER: '/nowhere/pager' }, three);
    await assert.rejects(running, (error) => error instanceof CliError && error.message.includes('set SCRIBE_PAGER'));
  });

  test('keep a failure of the command, which is told when the pager has ended', async (t) => {
    const shown = join(await tempDir(t), 'shown');
    const failing = async (output: Output): Promise<ExitStatus> => {
      await write(output, 'some\n');
      throw new Error('the disk is gone');
    };
    await assert.rejects(paged(sink(terminal).output, { PATH, PAGER: `cat > ${shown}` }, failing), /the disk is gone/);
    assert.equal(await readFile(shown, 'utf8'), 'some\n');
  });
});

test('on a real terminal history goes through the pager, and into a pipe and in a help it does not', async (t) => {
  const root = await rootWith(t, recordsOf(await startNode()));
  const scribe = join(import.meta.dirname, '../../bin/scribe');
  const env = { ...process.env, SCRIBE_PAGER: 'read first; cut -d " " -f 19 /proc/$PPID/stat; sed "s/^/paged: /"' };
  const said = async (line: string): Promise<string> =>
    (await promisify(execFile)('script', ['-qec', line, '/dev/null'], { env })).stdout;
  const history = `${scribe} history --root ${root.dir}`;
  const shown = await said(history);
  assert.match(shown, /^paged: .*daemon started/m);
  assert.match(shown, /^10\r?$/m, 'who reads gives way to the daemon');
  for (const line of [`${history} | cat`, `${scribe} history --help`]) {
    const shown = await said(line);
    assert.match(shown, /daemon started|SYNOPSIS/);
    assert.doesNotMatch(shown, /^paged: /m);
  }
});

test('what never ends is shown as it comes', () => {
  const { isPaged } = historyCommand;
  assert.deepEqual([isPaged?.({ follow: true }), isPaged?.({})], [false, true]);
});
