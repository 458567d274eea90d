/**
 * What may be given away holds nothing that a client chose (C12): secrets are planted in every place of a request where one
 * can be, and looked for in exports, in a bundle, in reports and on the page at the default level.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { writeCrashReport } from '../../src/daemon/crash-report.ts';
import { searcherFor } from '../support/canaries.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { idOf } from '../engine/rig.ts';
import { image } from './story.ts';
import { FORMATS } from './outputs.ts';
import { serveJournal } from './ui/served.ts';
import { recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';

const owner = cleanupAfterAll();

/** A secret in every place where a client writes what it likes. */
const planted = [
  ...['annotation', 'label', 'hostname', 'log directory', 'sysctl', 'container annotation', 'container label'],
  ...['command', 'argument', 'working directory', 'log path', 'image annotation', 'exec command', 'mount', 'variable'],
  ...['failure', 'updated annotation', 'crash', 'option of a shim', 'endpoint'],
].map((name, index) => ({ name, secret: `canary-${index}-${'7c1e9d'.repeat(3)}` }));
const search = searcherFor(planted);
const secretOf = (name: string): string => {
  const found = planted.find((one) => one.name === name);
  assert.ok(found, name);
  return found.secret;
};

let secretive: Root;
let recorded = 0;

before(async () => {
  const node = await startNode();
  await node.ask({ method: 'PullImage', image, credentials: null });
  const pod = {
    metadata: { name: 'secretive', namespace: 'default', uid: 'u' },
    hostname: secretOf('hostname').slice(0, 60),
    logDirectory: `/var/log/${secretOf('log directory')}`,
    annotations: { [secretOf('annotation')]: secretOf('annotation') },
    labels: { label: secretOf('label') },
    linux: { sysctls: { 'net.ipv4.ping_group_range': secretOf('sysctl') } },
  };
  const podSandboxId = idOf(await node.ask({ method: 'RunPodSandbox', runtimeHandler: '', config: pod }));
  const container = {
    metadata: { name: 'main' },
    image: { image, annotations: { of: secretOf('image annotation') } },
    command: ['/bin/sh', secretOf('command')],
    args: [secretOf('argument')],
    workingDir: `/${secretOf('working directory')}`,
    annotations: { of: secretOf('container annotation') },
    labels: { of: secretOf('container label') },
    envs: [{ key: secretOf('variable'), value: 'x' }],
    logPath: secretOf('log path'),
  };
  const containerId = idOf(await node.ask({ method: 'CreateContainer', podSandboxId, config: container }));
  await node.ask({ method: 'StartContainer', containerId });
  await node.ask({ method: 'ExecSync', containerId, cmd: ['login', secretOf('exec command')], timeoutSeconds: '1' });
  // Nobody has looked whether there is such a directory, which the answer says.
  const mounts = [{ hostPath: `/srv/${secretOf('mount')}`, containerPath: '/data' }];
  const mounting = { ...container, metadata: { name: 'mounting' }, mounts };
  await node.ask({ method: 'CreateContainer', podSandboxId, config: mounting });
  // Refused with a sentence that names what was asked for.
  const refused = { ...pod, metadata: { ...pod.metadata, name: 'refused' }, hostname: `${secretOf('failure')}/x` };
  await node.ask({ method: 'RunPodSandbox', runtimeHandler: '', config: refused });
  await node.ask({
    method: 'UpdateContainerResources',
    containerId,
    resources: {},
    annotations: { of: secretOf('updated annotation') },
  });
  const records = recordsOf(node);
  recorded = records.length;
  secretive = await rootWith(owner, records);
  writeCrashReport(
    {
      rootDir: secretive.dir,
      version: '1',
      unfinished: () => ({
        records: [],
        latest: node.contents.rows.length === 0 ? null : inputOf(records),
        isDecided: true,
      }),
    },
    `it fell over ${secretOf('crash')}`,
    new Error(`no such thing as ${secretOf('crash')}`),
  );
});

/** The newest call that was received, as the engine had it. */
const inputOf = (records: ReturnType<typeof recordsOf>): never => {
  const call = records.findLast(({ type }) => type === 'call.received');
  assert.ok(call);
  // As a crash report has it: with its body parsed.
  return { ...call, body: JSON.parse(call.body) as unknown } as never;
};

test('C12: a secret in any place of a request is in no export at the default level, and where it was asked for at the others', async () => {
  for (const format of FORMATS) {
    const { stdout } = await scribe(['export', '--root', secretive.dir, '--format', format]);
    assert.ok(stdout.length > 1000, format);
    assert.deepEqual(search(stdout), [], format);
  }
  const { stdout: whole } = await scribe(['export', '--root', secretive.dir, '--level', 'request']);
  for (const name of ['exec command', 'annotation', 'mount', 'failure', 'updated annotation'])
    assert.ok(search(whole).includes(name), name);
});

test('C12: no report shows one, nor what the journal takes', async () => {
  for (const words of [['report'], ['report', '--json'], ['journal', 'info'], ['journal', 'info', '--json']]) {
    const { stdout, exitStatus, stderr } = await scribe([...words, '--root', secretive.dir]);
    assert.equal(exitStatus, 0, stderr);
    assert.deepEqual(search(stdout), [], words.join(' '));
  }
});

test('C12: no answer that the page gets shows one, and where it was asked for they do', async () => {
  const textAt = async (level: 'metadata' | 'request-response'): Promise<string> => {
    const { get, frames } = await serveJournal(owner, secretive.journalPath, level);
    const answers: unknown[] = [(await frames().next()).value?.head];
    for (let seq = 1; seq <= recorded; seq += 1)
      for (const path of ['record?seq', 'why?seq', 'at?seq', 'entries?seqs']) answers.push(await get(`${path}=${seq}`));
    return JSON.stringify(answers);
  };
  assert.deepEqual(search(await textAt('metadata')), []);
  const whole = search(await textAt('request-response'));
  for (const name of ['exec command', 'annotation', 'mount', 'failure', 'command', 'variable'])
    assert.ok(whole.includes(name), name);
});

test('C12: why somebody acknowledged a journal is in an export from level request on', async (t) => {
  const node = await startNode();
  await node.ask({ method: 'AcknowledgeJournal', reason: 'restored with hunter2' });
  const { dir } = await rootWith(t, recordsOf(node));
  for (const format of ['json', 'ocsf', 'kubernetes-audit', 'cloudevents', 'otlp'])
    for (const level of ['metadata', 'request']) {
      const { stdout } = await scribe(['export', '--root', dir, '--format', format, '--level', level]);
      assert.equal(stdout.includes('hunter2'), level === 'request', `${format} ${level}`);
    }
});

test('C12: a bundle holds none, says what is in it, and is for its owner alone', async () => {
  const dir = await tempDir(owner);
  const config = join(dir, 'config.toml');
  writeFileSync(
    config,
    `[tracing]\nendpoint = "http://me:${secretOf('endpoint')}@127.0.0.1:4318/v1/traces"\n
     [runtime.handlers.other]\nruntime_type = "io.containerd.kata.v2"\n
     [runtime.handlers.other.options]\nSecret = "${secretOf('option of a shim')}"\n
     [journal.retention]\nsize_max = "123MiB"\n`,
  );
  const output = join(dir, 'bundle.tar.gz');
  const words = ['bundle', '--config', config, '--root', secretive.dir, '--since', '1', '--output', output];
  const { stdout, exitStatus, stderr } = await scribe(words);
  assert.equal(exitStatus, 0, stderr);
  assert.equal(statSync(output).mode & 0o777, 0o600);
  assert.equal((await scribe(words)).exitStatus, 1, 'another bundle is not written over it');

  await run(['tar', '-xzf', output, '-C', dir]);
  const [inside = ''] = readdirSync(dir).filter((name) => name.startsWith('scribe-'));
  const names = readdirSync(join(dir, inside));
  for (const name of ['version.json', 'config.json', 'doctor.jsonl', 'host.json', 'journal.jsonl', 'report.jsonl'])
    assert.ok(names.includes(name), `${name}: ${stdout}`);
  assert.ok(names.some((name) => name.startsWith('crash-')));
  assert.ok(!names.some((name) => name.endsWith('.key')));
  const listing = readFileSync(join(dir, inside, 'LISTING.txt'), 'utf8');
  for (const name of names) if (name !== 'LISTING.txt') assert.ok(listing.includes(`${name}: `), name);
  for (const name of names) assert.deepEqual(search(readFileSync(join(dir, inside, name))), [], name);
  const crash = readFileSync(join(dir, inside, names.find((name) => name.startsWith('crash-')) ?? ''), 'utf8');
  assert.match(crash, /"stack":" {4}at /);
  const info = JSON.parse(readFileSync(join(dir, inside, 'journal-info.json'), 'utf8')) as { sizeBytesMax: number };
  assert.equal(info.sizeBytesMax, 123 * 2 ** 20);
  assert.match(readFileSync(join(dir, inside, 'config.json'), 'utf8'), /"endpoint":"http:\/\/127\.0\.0\.1:4318/);
});

test('C12: a crash report in a bundle has what was asked for from level request on, and its words at request-response', async () => {
  for (const [level, shown] of [
    ['request', ['updated annotation']],
    ['request-response', ['updated annotation', 'crash']],
  ] as const) {
    const dir = await tempDir(owner);
    const output = join(dir, 'bundle.tar.gz');
    const words = ['bundle', '--root', secretive.dir, '--since', '1', '--level', level, '--output', output];
    assert.equal((await scribe(words)).exitStatus, 0);
    const { stdout } = await run(['tar', '-xzOf', output, '--wildcards', '*/crash-*']);
    const found = search(stdout);
    assert.deepEqual(
      ['updated annotation', 'crash'].filter((name) => found.includes(name)),
      shown,
      level,
    );
  }
});

test('a bundle of a broken node says what is missing from it, and why', async () => {
  const dir = await tempDir(owner);
  const [config, output] = [join(dir, 'config.toml'), join(dir, 'bundle.tar.gz')];
  writeFileSync(config, '[serve]\nno_such_key = 1\n');
  writeFileSync(join(dir, 'journal.db'), 'this is no database');
  const { stdout, exitStatus, stderr } = await scribe([
    'bundle',
    '--config',
    config,
    '--root',
    dir,
    '--output',
    output,
  ]);
  assert.equal(exitStatus, 0, stderr);
  assert.match(stdout, /^config\.json +- .*no_such_key/m);
  assert.match(stdout, /^journal\.jsonl +- .*SQLite cannot read the journal/m);
  assert.match(stdout, /^host\.json +\d/m);
});
