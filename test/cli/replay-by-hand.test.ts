/** `scribe replay` at single decisions: --break-on, --step over a pipe, --inspect with a real debugger, reports of crashes. */
import assert from 'node:assert/strict';
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Input } from '../../src/domain/model/records.ts';
import { writeCrashReport } from '../../src/daemon/crash-report.ts';
import { decide } from '../../src/domain/turn/decide.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { openReader } from '../../src/journal/open.ts';
import { runPod } from '../engine/rig.ts';
import type { Owner } from '../support/cleanup.ts';
import { startProcess } from '../support/process.ts';
import { tell } from './story.ts';
import { jsonLines, recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';

/** The story, in which one exit was recorded with another status than is decided. */
const differing = async (owner: Owner): Promise<Root & { readonly seq: number; readonly nginx: string }> => {
  const { records, nginx } = await tell();
  const exit = records.find(({ type, body }) => type === 'container.exited' && body.includes('137')) ?? assert.fail();
  const root = await rootWith(
    owner,
    records.map((record) => (record === exit ? { ...record, body: record.body.replace('137', '138') } : record)),
  );
  return { ...root, seq: exit.seq, nginx };
};

describe('replay by hand', () => {
  test('--until: nothing later is decided', async (t) => {
    const { journalPath, seq } = await differing(t);
    const { exitStatus, stdout } = await scribe(['replay', '--until', String(seq - 2), journalPath]);
    assert.equal(exitStatus, 0);
    assert.match(stdout, new RegExp(`records 1 to ${seq - 2}\\): all as recorded`));
    for (const how of [[], ['--break-on', 'container.exited'], ['--step']]) {
      const before = await scribe(['replay', ...how, '--until', '1999-01-01', journalPath]);
      assert.match(before.stderr, /Nothing was recorded by then: the journal begins at \d{4}-/);
      assert.deepEqual([before.exitStatus, before.stdout], [1, '']);
    }
  });

  test('--break-on: a type, a method, an effect, a field of a thing; what is none of them is refused', async (t) => {
    const { journalPath, seq } = await differing(t);
    const first = async (what: string): Promise<string> => {
      const { stdout, exitStatus, stderr } = await scribe(['replay', '--break-on', what, journalPath]);
      assert.equal(exitStatus, 0, stderr);
      return stdout;
    };
    assert.match(await first('container.exited'), /^\d+ {2}task\.exited .*\n {2}\d+ {2}container\.exited /);
    assert.match(await first('RemovePodSandbox'), /^\d+ {2}call\.received .*RemovePodSandbox/);
    assert.match(await first('DeleteTask'), /"kind":"DeleteTask"/);
    assert.match(await first('container/nginx.phase.kind'), /^\d+ {2}call\.received .*CreateContainer/);
    const none = await scribe(['replay', '--break-on', 'container.restarted', journalPath]);
    assert.deepEqual([none.exitStatus, /no decision is like that/.test(none.stderr)], [1, true]);
    const wrong = await scribe(['replay', '--break-on', 'nginx?', journalPath]);
    assert.equal(wrong.exitStatus, 2);
    const words = ['--break-on', 'container/nginx.phase.exit', journalPath];
    const { exitStatus, stdout } = await scribe(['replay', '--json', ...words]);
    // What is shown differs.
    assert.deepEqual([exitStatus, (await scribe(['replay', ...words])).exitStatus], [1, 1]);
    const [found] = jsonLines<{ input: Input; differences: unknown[]; recorded: { seq: number }[] }>(stdout);
    assert.deepEqual([found?.input.type, found?.recorded[0]?.seq, found?.differences.length], ['task.exited', seq, 1]);
  });

  test('--step: lines on standard input lead through the journal, and back', async (t) => {
    const { journalPath, seq, nginx } = await differing(t);
    const ask = async (...lines: readonly string[]): Promise<string[]> => {
      const said = await scribe(['replay', '--step', journalPath], { stdin: `${lines.join('\n')}\nquit\nnext\n` });
      // Whether a decision differed that was gone through.
      const status = /^(continue|go 1000)/.test(lines[0] ?? '') ? 1 : 0;
      assert.equal(said.exitStatus, status, said.stderr);
      return said.stdout.trimEnd().split('\n');
    };
    const [start, second, again] = await ask('next', 'next', 'back');
    assert.match(start ?? '', /^1 {2}daemon\.started/);
    assert.equal(again, start);
    assert.notEqual(second, start);
    const differs = await ask('continue', 'diff', 'state container/nginx.phase.exit.exitStatus', 'why', 'records');
    assert.match(
      differs.join('\n'),
      new RegExp(`DIFFERS: ${seq} container.exited body.exitStatus: recorded 138, today 137`),
    );
    assert.ok(differs.some((line) => /^changed: .* phase\.kind: running -> exited$/.test(line)));
    assert.ok(differs.includes('138'));
    assert.ok(differs.some((line) => line.includes(`"stream":"container/${nginx}"`)));
    const why = await ask('go 40', 'why');
    assert.ok(why.some((line) => line.startsWith('because of ')));
    assert.ok(why.some((line) => line.startsWith('on behalf of ') || line.includes('(a call of ')));
    assert.deepEqual(await ask('state', 'nonsense'), [
      'No decision was made yet. Try next.',
      'There is no "nonsense". Try help.',
    ]);
    assert.deepEqual(await ask('next 0', 'back x', 'n -1'), [
      'next takes a number of decisions, from 1 on.',
      'back takes a number of decisions, from 1 on.',
      'next takes a number of decisions, from 1 on.',
    ]);
    assert.deepEqual((await ask('go 100000')).at(-1), 'The journal ends here.');
  });

  test('--step: where a field changes is found again from wherever one went back to', async (t) => {
    const { journalPath } = await differing(t);
    const decisions = async (...lines: readonly string[]): Promise<string[]> => {
      const words = ['replay', '--step', '--break-on', 'container/nginx.phase.kind', journalPath];
      const { stdout } = await scribe(words, { stdin: lines.join('\n') });
      return stdout.split('\n').filter((line) => /^\d+ {2}/.test(line));
    };
    const onward = Array<string>(9).fill('continue');
    const changes = await decisions(...onward);
    assert.ok(changes.length > 3);
    const [, , ...again] = await decisions('continue', 'back 999', ...onward);
    assert.deepEqual(again.slice(1), changes);
    // Over a change, which is no reason to stop behind it.
    const [, second = '', ...rest] = changes;
    const passed = await decisions(`go ${second.split(' ')[0]}`, 'next', ...onward);
    assert.deepEqual(passed.slice(3), rest);
  });

  test('--inspect: the debugger stops in front of the decision that differs', { timeout: 60_000 }, async (t) => {
    const { journalPath, seq } = await differing(t);
    const replaying = await startProcess(t, [process.execPath, 'src/cli/main.ts', 'replay', '--inspect', journalPath]);
    const [, url = ''] = await replaying.until(/waits for a debugger at (ws:\S+)/);
    const socket = new WebSocket(url);
    t.after(() => socket.close());
    const stopped = Promise.withResolvers<string>();
    const answered = Promise.withResolvers<number>();
    socket.onopen = () => {
      for (const [id, method] of ['Runtime.enable', 'Debugger.enable', 'Runtime.runIfWaitingForDebugger'].entries())
        socket.send(JSON.stringify({ id, method }));
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data)) as {
        readonly id?: number;
        readonly method?: string;
        readonly params?: { readonly callFrames?: readonly { readonly callFrameId: string }[] };
        readonly result?: { readonly result?: { readonly value?: number } };
      };
      if (message.method === 'Debugger.paused') stopped.resolve(message.params?.callFrames?.[0]?.callFrameId ?? '');
      if (message.id === 10) answered.resolve(message.result?.result?.value ?? 0);
    };
    const params = { callFrameId: await stopped.promise, expression: 'input.seq' };
    socket.send(JSON.stringify({ id: 10, method: 'Debugger.evaluateOnCallFrame', params }));
    assert.equal(await answered.promise, seq - 1);
    socket.send(JSON.stringify({ id: 11, method: 'Debugger.resume' }));
    await replaying.ended;
  });

  test('--step: what a client chose steers no terminal', async (t) => {
    const node = await startNode();
    const metadata = { name: 'web', namespace: 'default', uid: 'u' };
    const config = { metadata, annotations: { note: 'to the \u202eleft, \u009b31m red' } };
    await node.ask({ method: 'RunPodSandbox', config, runtimeHandler: '' });
    const { journalPath } = await rootWith(t, recordsOf(node));
    const { stdout } = await scribe(['replay', '--step', journalPath], { stdin: 'next 99\nstate pod/web\nquit\n' });
    assert.match(stdout, /"note": "to the \\u\{202e\}left, \\u\{9b\}31m red"/);
  });

  test('the report of a daemon that was killed: its last decision differs, or does not', async (t) => {
    const { dir, journalPath, seq } = await differing(t);
    const reader = openReader(journalPath);
    const inputs = reader.page({}, 1, seq).records.flatMap((record) => fromJournalRecord(record) ?? []);
    reader.close();
    const statusOf = async (at: number): Promise<number> => {
      const input = inputs.find((record) => record.seq === at) ?? assert.fail();
      const report = join(dir, `crash-${at}.json`);
      const written = { ...input, atNs: String(input.atNs), monoNs: String(input.monoNs) };
      const about = { scribeCrashReport: 1, version: '1.2.3', atNs: '0', what: 'it was killed', stack: '' };
      await writeFile(
        report,
        JSON.stringify({ ...about, journal: journalPath, records: [], input: written, isDecided: true }),
      );
      const { exitStatus, stdout } = await scribe(['replay', report]);
      assert.match(stdout, new RegExp(`The last decision was on record ${at}:`));
      return exitStatus;
    };
    assert.deepEqual([await statusOf(seq - 1), await statusOf(1)], [1, 0]);
  });

  test('the report of a crash: what could not be decided is decided again, behind what was not on disk', async (t) => {
    let throws = false;
    const node = await startNode({
      decide: (state, input) => {
        // Neither the call nor what is written down in its place can be decided: the daemon has to end.
        if (throws) throw new RangeError('this was planted');
        return decide(state, input);
      },
    });
    await node.ask(runPod());
    throws = true;
    void node.ask(runPod('last'));
    const [first = assert.fail()] = recordsOf(node);
    const root = await rootWith(t, recordsOf(node));
    const [error] = node.errors;
    writeCrashReport(
      { rootDir: root.dir, version: '1.2.3', unfinished: node.engine.unfinished },
      'the journal cannot be written',
      error,
    );
    const name = (await readdir(root.dir)).find((file) => file.startsWith('crash-')) ?? assert.fail();
    const { exitStatus, stdout, stderr } = await scribe(['replay', join(root.dir, name)]);
    assert.equal(exitStatus, 0, stderr);
    assert.match(stdout, /^scribe 1\.2\.3 ended at .*: the journal cannot be written\n/);
    assert.match(stdout, /RangeError: \[message left out\]\n +at /);
    assert.match(stdout, new RegExp(`It could not decide on record ${recordsOf(node).length + 1}:\n`));
    assert.match(stdout, /Today it is decided:\n +\d+ {2}sandbox\.requested/);
    // The next start takes the numbers of what never came to the disk, and the service manager is quick.
    const gone = await rootWith(t, [...recordsOf(node), { ...first, seq: recordsOf(node).length + 1 }]);
    await copyFile(join(root.dir, name), join(gone.dir, name));
    const later = await scribe(['replay', join(gone.dir, name)]);
    assert.equal(later.stdout, stdout);
    // Whoever sends a report chose what is in it, and steers no terminal of who looks at it.
    const sent = join(root.dir, 'sent.json');
    const report = JSON.parse(await readFile(join(root.dir, name), 'utf8')) as object;
    await writeFile(sent, JSON.stringify({ ...report, what: 'it \u001b]0;burns\u0007' }));
    const shown = await scribe(['replay', sent]);
    assert.match(shown.stdout, /: it \\u\{1b\}\]0;burns\\u\{7\}\n {2}\w/);
    // The journal may be kept elsewhere; one that is nowhere is asked for.
    const lost = join(root.dir, 'sub.json');
    await writeFile(lost, JSON.stringify({ scribeCrashReport: 1, journal: '/nowhere/journal.db' }));
    assert.equal((await scribe(['replay', lost])).exitStatus, 1);
  });
});
