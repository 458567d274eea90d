/**
 * The audit policy on the real parts: what the rules of the configuration keep out of the journal is in nothing that is
 * read from it, and runs all the same.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { searcherFor, searchFiles } from '../support/canaries.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { criTool } from '../support/cri-tools.ts';
import { journalPath } from '../support/journal.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, runPod } from '../support/pods.ts';
import { run, startProcess } from '../support/process.ts';
import { scribe } from '../cli/support.ts';
import { serveJournal } from '../cli/ui/served.ts';

const planted = ['exec argument', 'session argument', 'option', 'annotation', 'container annotation', 'label'].map(
  (name, index) => ({
    name,
    secret: `canary-${index}-${'5b2f8a'.repeat(3)}`,
  }),
);
const [execArgument = '', sessionArgument = '', option = '', annotation = '', ofContainer = '', label = ''] =
  planted.map(({ secret }) => secret);
const search = searcherFor(planted);

const config = `
[[audit.rules]]
level = "metadata"
methods = ["Exec*"]
namespaces = ["default"]
[[audit.rules]]
level = "request"
methods = ["ContainerStatus"]
[[audit.rules]]
level = "none"
methods = ["Version"]
[audit.seal]
exec_options = ["--password"]
annotations = ["kubectl.kubernetes.io/*"]
labels = ["team/*"]
`;

describe('the audit policy', { timeout: 120_000 }, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let containerId: string;

  before(async () => {
    node = await startNode(owner, { config });
    const annotated = 'kubectl.kubernetes.io/last-applied-configuration';
    const pod = { annotations: { [annotated]: annotation, plain: 'kept' }, labels: { 'team/secret': label } };
    const container = { annotations: { [annotated]: ofContainer }, labels: { 'team/secret': label } };
    ({ containerId } = await runPod(node.daemon, 'audited', busyboxName, ['sleep', '1000'], { pod, container }));
    const { daemon } = node;
    const elsewhere = { pod: { metadata: { name: 'elsewhere', namespace: 'other', uid: 'u', attempt: 0 } } };
    const { containerId: otherId } = await runPod(daemon, 'elsewhere', busyboxName, ['sleep', '1000'], elsewhere);
    const cmd = ['echo', '--password', option, 'seen'];
    const { stdout } = await daemon.cri.runtime.execSync({ containerId: otherId, cmd, timeout: '10' });
    assert.equal(stdout.toString(), `--password ${option} seen\n`);
  });

  const scribeOf = async (words: readonly string[]): Promise<string> => {
    const { stdout, stderr, exitStatus } = await scribe([...words, '--root', node.daemon.dirs.root]);
    assert.equal(exitStatus, 0, stderr);
    return stdout;
  };

  test('C12: a command whose arguments are sealed runs with them, and nobody reads them later', async () => {
    const { runtime } = node.daemon.cri;
    const { stdout } = await runtime.execSync({ containerId, cmd: ['echo', execArgument], timeout: '10' });
    assert.equal(stdout.toString(), `${execArgument}\n`);
    const crictl = [
      criTool('crictl'),
      '-r',
      `unix://${node.daemon.socket}`,
      'exec',
      containerId,
      'echo',
      sessionArgument,
    ];
    const session = await run(node.daemon.netns.inside(crictl));
    assert.equal(session.stdout, `${sessionArgument}\n`);
    await runtime.containerStatus({ containerId, verbose: true });
    await runtime.version({});

    const told = await eventually('both commands are over', async () => {
      const history = await scribeOf(['history', '--reads']);
      return /ExecSession .*exit 0/.test(history) && /ContainerStatus .*audit level request/.test(history) && history;
    });
    assert.match(told, /ExecSync .*echo \(sealed\); audit level metadata/);
    assert.match(told, /ExecSession .*echo \(sealed\); audit level metadata/);
    assert.match(told, /ContainerStatus +default\/audited main .*"verbose":true/);
    assert.match(told, /echo --password \(sealed\) seen/);
    assert.doesNotMatch(told, / Version /);
    assert.doesNotMatch(await scribeOf(['history']), /ContainerStatus/);

    const reads = [
      ...[['history', '--events', '--json'], ['report'], ['report', 'execs', '--json'], ['why', containerId]],
      ...['metadata', 'request', 'request-response'].map((level) => ['export', '--level', level]),
      ['sql', 'SELECT * FROM calls'],
      ['sql', 'SELECT * FROM exec_sessions'],
    ];
    for (const words of reads) assert.deepEqual(search(await scribeOf(words)), [], words.join(' '));
    const { get } = await serveJournal(owner, journalPath(node.daemon), 'request-response');
    for (let seq = 1; seq <= 200; seq += 1)
      assert.deepEqual(search(JSON.stringify(await get(`record?seq=${seq}`))), [], String(seq));
    assert.deepEqual(await searchFiles(search, [node.daemon.dirs.root, node.daemon.dirs.state]), []);
    assert.deepEqual(search(node.daemon.log()), []);
  });

  test('C12: labels and annotations that are sealed are answered so, before and after a restart, and found by their value', async () => {
    const answered = async (): Promise<unknown> => {
      const { items } = await node.daemon.cri.runtime.listPodSandbox({
        filter: { labelSelector: { 'team/secret': label } },
      });
      const { containers } = await node.daemon.cri.runtime.listContainers({
        filter: { labelSelector: { 'team/secret': label } },
      });
      assert.deepEqual([items.length, containers.length], [1, 1]);
      return [items[0]?.annotations, items[0]?.labels, containers[0]?.annotations, containers[0]?.labels];
    };
    const before = await answered();
    assert.deepEqual(search(JSON.stringify(before)), []);
    assert.match(JSON.stringify(before), /"plain":"kept"/);
    assert.match(JSON.stringify(before), /"kubectl.kubernetes.io\/last-applied-configuration":"secret:/);
    await node.daemon.stop();
    await node.daemon.start();
    assert.deepEqual(await answered(), before);
    assert.deepEqual(search(await scribeOf(['at', '0s', 'get', 'pods', '--json'])), []);
  });

  test('a policy that is reloaded is recorded with who wanted it, holds for what comes next, and a wrong file changes nothing', async () => {
    const { daemon } = node;
    const path = join(dirname(daemon.dirs.root), 'config.toml');
    const before = await readFile(path, 'utf8');
    const reload = (): ReturnType<typeof daemon.scribe> => daemon.scribe('reload', '--socket', daemon.socket);
    const reads = async (): Promise<number> =>
      (await scribeOf(['history', '--reads', '--method', 'Version', '--method', 'Status']))
        .split('\n')
        .filter((line) => /audit level request/.test(line)).length;
    const ask = async (): Promise<void> => {
      await daemon.cri.runtime.version({});
      await daemon.cri.runtime.status({});
    };
    await ask();
    await writeFile(
      path,
      before.replace('methods = ["Version"]', 'methods = ["ListImages"]').replace('"ContainerStatus"', '"Status"'),
    );
    const applied = await reload();
    assert.equal(applied.stdout, 'audit.rules: applied\n', applied.stderr);
    await ask();
    await eventually('the read is a record', async () => (await reads()) === 1);
    await writeFile(path, before.replace('level = "none"', 'level = "nought"'));
    const wrong = await reload();
    assert.equal(wrong.exitCode, 1);
    assert.match(wrong.stderr, /config\.toml: audit\.rules.*level.*none.*metadata/);
    await ask();
    await eventually('the policy is as it was', async () => (await reads()) === 2);

    const history = await scribeOf(['history', '--method', 'ReloadConfig']);
    assert.match(history, / scribe pid \d+ uid 0 .*audit\.rules is \[/);
    assert.match(history, /ReloadConfig .*InvalidField|ReloadConfig .*can't be used/);
    assert.match(await scribeOf(['history', '--events']), /daemon started .*with 3 audit rules and 3 sealed patterns/);
    const [first = ''] = (await scribeOf(['export', '--level', 'request']))
      .split('\n')
      .filter((line) => line.includes('"ReloadConfig"'));
    assert.match(first, /"was":\[.*"Version".*"is":\[.*"ListImages"/);
    await writeFile(path, before);
    assert.equal((await reload()).exitCode, 0);
  });

  test('who reads the journal is recorded while the daemon runs: by what command, what of it, and once for whoever follows', async () => {
    const readers = async (): Promise<readonly string[]> => {
      const history = await scribeOf(['history', '--method', 'ReadJournal']);
      return history.split('\n').filter((line) => line.includes('ReadJournal'));
    };
    const before = (await readers()).length;
    const bin = join(import.meta.dirname, '../../bin/scribe');
    const follow = ['history', '--root', node.daemon.dirs.root, '--follow', '--container', 'main'];
    const follower = await startProcess(owner, [bin, ...follow]);
    await eventually('the follower is recorded', async () =>
      (await readers()).some((line) => line.includes('--follow --container main')),
    );
    await node.daemon.cri.runtime.reopenContainerLog({ containerId });
    await follower.stop();
    const after = await readers();
    assert.equal(after.filter((line) => line.includes('--follow')).length, 1, after.join('\n'));
    assert.match(after.find((line) => line.includes('--follow')) ?? '', / scribe pid \d+ uid 0 .*scribe history /);
    assert.match(after[before] ?? '', /scribe history --method ReadJournal --root .*: \d+ shown of records 1 to \d+/);
    assert.match(await scribeOf(['report', 'callers']), /ReadJournal|scribe/);
    await node.daemon.stop();
    const down = await readers();
    assert.deepEqual(await readers(), down);
  });
});
