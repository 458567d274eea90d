/**
 * The audit policy on the real parts: what the rules of the configuration keep out of the journal is in nothing that is
 * read from it, and runs all the same.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { writeCrashReport } from '../../src/daemon/crash-report.ts';
import { searcherFor, searchFiles } from '../support/canaries.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { criTool } from '../support/cri-tools.ts';
import { headOf, recordsOf } from '../support/journal.ts';
import { fetchInside } from '../support/netns.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, runPod } from '../support/pods.ts';
import { type BackgroundProcess, run, startProcess } from '../support/process.ts';
import { scribe } from '../cli/support.ts';
import { outputsOf } from '../cli/outputs.ts';

/** A secret in every place of a request where C12 or a rule says that it is one. */
const planted = Object.entries({
  ...{ execArgument: '', sessionArgument: '', option: '', annotation: '', ofContainer: '', ofImage: '', ofUpdate: '' },
  ...{ label: '', ofCommand: 'token=', inCommand: '', env: '', password: '', registryToken: '' },
}).map(([name, before], index) => ({ name, secret: `${before}canary-${index}-${'5b2f8a'.repeat(3)}` }));
const secretOf = (name: string): string => planted.find((one) => one.name === name)?.secret ?? assert.fail(name);
const search = searcherFor(planted);

const ANNOTATED = 'kubectl.kubernetes.io/last-applied-configuration';
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
container_options = ["--secret"]
container_arguments = ["*token=*"]
annotations = ["kubectl.kubernetes.io/*"]
labels = ["team/*"]
[metrics]
address = "127.0.0.1:9325"
[tracing]
endpoint = "http://127.0.0.1:4319/v1/traces"
`;
/** Prints what it is asked to run as, and stays. */
const showWords = ['sh', '-c', 'cat /proc/$$/cmdline > /words; exec sleep 1000', 'sh', '--secret'];

describe('the audit policy', { timeout: 120_000 }, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let collector: BackgroundProcess;
  let podSandboxId: string;
  let containerId: string;
  let waitingId: string;

  before(async () => {
    node = await startNode(owner, { config });
    const { daemon } = node;
    const program = join(import.meta.dirname, '../support/otlp-collector-child.ts');
    collector = await startProcess(owner, daemon.netns.inside([process.execPath, program, '4319']));
    await collector.until(/listening/);
    const labels = { 'team/secret': secretOf('label') };
    const pod = { annotations: { [ANNOTATED]: secretOf('annotation'), plain: 'kept' }, labels };
    const container = {
      args: [secretOf('inCommand'), secretOf('ofCommand')],
      image: { image: busyboxName, annotations: { [ANNOTATED]: secretOf('ofImage') } },
      annotations: { [ANNOTATED]: secretOf('ofContainer') },
      labels,
      envs: [{ key: 'PASSWORD', value: Buffer.from(secretOf('env')) }],
    };
    ({ containerId, podSandboxId } = await runPod(daemon, 'audited', busyboxName, showWords, { pod, container }));
    const waiting = containerConfig('waiting', busyboxName, showWords, container);
    ({ containerId: waitingId } = await daemon.cri.runtime.createContainer({ podSandboxId, config: waiting }));
    const auths = [{ username: 'u', password: secretOf('password') }, { registryToken: secretOf('registryToken') }];
    for (const auth of auths) await daemon.cri.image.pullImage({ image: { image: busyboxName }, auth });
    await daemon.cri.runtime.updateContainerResources({
      containerId,
      linux: { cpuShares: '512' },
      annotations: { [ANNOTATED]: secretOf('ofUpdate') },
    });
    const elsewhere = { pod: { metadata: { name: 'elsewhere', namespace: 'other', uid: 'u', attempt: 0 } } };
    const { containerId: otherId } = await runPod(daemon, 'elsewhere', busyboxName, ['sleep', '1000'], elsewhere);
    const cmd = ['echo', '--password', secretOf('option'), 'seen'];
    const { stdout } = await daemon.cri.runtime.execSync({ containerId: otherId, cmd, timeout: '10' });
    assert.equal(stdout.toString(), `--password ${secretOf('option')} seen\n`);
  });

  const scribeOf = async (words: readonly string[]): Promise<string> => {
    const { stdout, stderr, exitStatus } = await scribe([...words, '--root', node.daemon.dirs.root]);
    assert.equal(exitStatus, 0, stderr);
    return stdout;
  };

  test('C12: a command whose arguments are sealed runs with them, and nobody reads them later', async () => {
    const { runtime } = node.daemon.cri;
    const { stdout } = await runtime.execSync({ containerId, cmd: ['echo', secretOf('execArgument')], timeout: '10' });
    assert.equal(stdout.toString(), `${secretOf('execArgument')}\n`);
    const crictl = [criTool('crictl'), '-r', `unix://${node.daemon.socket}`, 'exec', containerId];
    const session = await run(node.daemon.netns.inside([...crictl, 'echo', secretOf('sessionArgument')]));
    assert.equal(session.stdout, `${secretOf('sessionArgument')}\n`);
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
  });

  test('C12: a container runs with words that are sealed, also one that is started by another daemon than made it', async () => {
    const wordsOf = async (id: string): Promise<string> => {
      const { stdout } = await node.daemon.cri.runtime.execSync({ containerId: id, cmd: ['cat', '/words'] });
      return stdout.toString().split('\0').slice(4, -1).join(' ');
    };
    const words = `--secret ${secretOf('inCommand')} ${secretOf('ofCommand')}`;
    assert.equal(await wordsOf(containerId), words);
    await node.daemon.kill();
    await node.daemon.start();
    await node.daemon.cri.runtime.startContainer({ containerId: waitingId });
    assert.equal(await wordsOf(waitingId), words);
    const recorded = await scribeOf(['sql', "SELECT request FROM calls WHERE method = 'CreateContainer'"]);
    assert.match(recorded, /"--secret"\],"args":\[\{"token":"secret:/);
  });

  test('C12: no output at any level has what is sealed, nor a figure, a span, a line of the log or a file', async () => {
    const { daemon } = node;
    const { root, state } = daemon.dirs;
    const made = (await recordsOf(daemon)).filter(({ type }) =>
      /^(call\.received|container\.requested)$/.test(type),
    ) as never[];
    const crashed = { records: made, latest: null, isDecided: true };
    writeCrashReport({ rootDir: root, version: '1', unfinished: () => crashed }, 'staged', new Error('staged'));
    const asked = { rootDir: root, headSeq: headOf(daemon), things: [containerId, podSandboxId] };
    for await (const { by, text } of outputsOf(owner, asked)) assert.deepEqual(search(text), [], by);
    const { runtime, image } = daemon.cri;
    const replies = await Promise.all([
      ...[
        runtime.status({ verbose: true }),
        runtime.listPodSandbox({}),
        runtime.listContainers({}),
        image.listImages(),
      ],
      ...[containerId, waitingId].map((id) => runtime.containerStatus({ containerId: id, verbose: true })),
      runtime.podSandboxStatus({ podSandboxId, verbose: true }),
    ]);
    assert.deepEqual(search(JSON.stringify(replies)), []);
    assert.deepEqual(search((await fetchInside(daemon.netns, 'http://127.0.0.1:9325/metrics')).text), []);
    const spans = await eventually('spans of an exec', async () => {
      const output = collector.output();
      return output.includes('ExecSync') && output;
    });
    assert.deepEqual(search(spans), []);
    assert.deepEqual(search(daemon.log()), []);
    // In their layers containers write what they like.
    const theirs = [join(state, 'bundles'), join(root, 'containers')];
    assert.deepEqual(await searchFiles(search, [root, state], theirs), []);
  });

  test('C12: labels and annotations that are sealed are answered so, before and after a restart, and found by their value', async () => {
    const answered = async (): Promise<unknown> => {
      const { items } = await node.daemon.cri.runtime.listPodSandbox({
        filter: { labelSelector: { 'team/secret': secretOf('label') } },
      });
      const { containers } = await node.daemon.cri.runtime.listContainers({
        filter: { labelSelector: { 'team/secret': secretOf('label') } },
      });
      assert.deepEqual([items.length, containers.length], [1, 2]);
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
    assert.match(await scribeOf(['history', '--events']), /daemon started .*with 3 audit rules and 5 sealed patterns/);
    const [first = ''] = (await scribeOf(['export', '--level', 'request']))
      .split('\n')
      .filter((line) => line.includes('"ReloadConfig"'));
    assert.match(first, /"was":\[.*"Version".*"is":\[.*"ListImages"/);
    await writeFile(path, before);
    assert.equal((await reload()).exitCode, 0);
  });

  test('who reads the journal is recorded while the daemon runs: by what command, what of it, and of whoever follows from where and how far', async () => {
    const readers = async (): Promise<readonly string[]> => {
      const history = await scribeOf(['history', '--method', 'ReadJournal']);
      return history.split('\n').filter((line) => line.includes('ReadJournal'));
    };
    const before = (await readers()).length;
    const bin = join(import.meta.dirname, '../../bin/scribe');
    const follow = ['history', '--root', node.daemon.dirs.root, '--follow', '--container', 'main'];
    const follower = await startProcess(owner, [bin, ...follow]);
    // Its reader goes away after the first line: the next one that it writes ends it.
    const piped = `${bin} export --root ${node.daemon.dirs.root} --follow | head -n 1`;
    const exporter = await startProcess(owner, ['sh', '-c', piped]);
    await eventually('the follower is recorded', async () =>
      (await readers()).some((line) => line.includes('--follow --container main')),
    );
    await node.daemon.cri.runtime.reopenContainerLog({ containerId });
    // What was only looked for is not brought in by the record of it, nor who is sent an export and how.
    const to = `http://u:${secretOf('password')}@127.0.0.1:1`;
    const refused = await node.daemon.scribe(
      'export',
      '--root',
      node.daemon.dirs.root,
      '--format',
      'otlp',
      '--endpoint',
      to,
    );
    assert.equal(refused.exitCode, 2);
    assert.match(refused.stderr, /--endpoint: an address without user, password and query is wanted, http:\/\/127/);
    await node.daemon.scribe('history', '--root', node.daemon.dirs.root, '--text', secretOf('env'));
    const read = await scribeOf(['sql', "SELECT request FROM calls WHERE method = 'ReadJournal'"]);
    assert.match(read, /"--text","\(left out\)"/);
    assert.match(read, /"--endpoint","http:\/\/127\.0\.0\.1:1"/);
    assert.deepEqual(search(read), []);
    await follower.until(/ReopenContainerLog/);
    const lines = follower.output().trimEnd().split('\n').length - 1;
    await follower.stop();
    const followed = await eventually(
      'the ends of both are recorded',
      async () => {
        const found = (await readers()).filter((line) => line.includes('--follow'));
        return found.length > 3 && found;
      },
      15_000,
    );
    assert.equal(await exporter.ended, 0);
    const [begun = '', ended = '', ...none] = followed.filter((line) => line.includes('scribe history'));
    assert.deepEqual([none, followed.length], [[], 4]);
    assert.match(followed.join('\n'), /scribe export .* --follow: \d+ shown of records 1 to \d+/);
    assert.match(begun, / scribe pid \d+ uid 0 .*scribe history .*--container main: all records from 1 on/);
    const [, shown, toSeq] =
      / scribe pid \d+ uid 0 .*--container main: (\d+) shown of records 1 to (\d+)/.exec(ended) ?? [];
    assert.equal(Number(shown), lines, ended);
    const after = await readers();
    const reopened = await scribeOf(['sql', "SELECT max(seq) FROM calls WHERE method = 'ReopenContainerLog'"]);
    assert.ok(Number(toSeq) >= Number(/\d+/.exec(reopened)?.[0]), `${toSeq}, ${reopened}`);
    assert.match(after[before] ?? '', /scribe history --method ReadJournal --root .*: \d+ shown of records 1 to \d+/);
    assert.match(await scribeOf(['report', 'callers']), /ReadJournal|scribe/);
    const asked = [
      ['why', '1'],
      ['at', '20', 'get', 'pods'],
      ['diff', '5', '20'],
      ['export', '--until', '20', '--level', 'metadata'],
      ['prove', '7'],
      ['sql', 'SELECT seq FROM journal LIMIT 3'],
      ['replay', '--until', '20'],
      ['verify'],
    ];
    for (const words of asked) await scribeOf(words);
    const told = (await readers()).join('\n');
    for (const line of [
      /scribe why 1 .*: \d+ shown of records 1 to \d+/,
      /scribe at 20 get pods .*: \d+ shown of records 1 to 20/,
      /scribe diff 5 20 .*: \d+ shown of records 5 to 20/,
      /scribe export .*: 20 shown of records 1 to 20/,
      /scribe prove 7 .*: 1 shown of records 7 to 7/,
      /scribe sql SELECT seq FROM journal LIMIT 3 .*: 3 shown of records 1 to \d+/,
      /scribe replay .*: \d+ shown of records 1 to 20/,
      /scribe verify .*: 0 shown of records 1 to \d+/,
    ])
      assert.match(told, line);
    await node.daemon.stop();
    const down = await readers();
    assert.deepEqual(await readers(), down);
  });
});
