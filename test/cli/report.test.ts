/** `scribe report`: every figure against a count made another way, from the bodies of the records themselves. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { DatabaseSync } from 'node:sqlite';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { openReader } from '../../src/journal/open.ts';
import { prunedRecord } from '../../src/journal/own-records.ts';
import { exitOf, idOf, runContainer } from '../engine/rig.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { image, startNs, tell } from './story.ts';
import { jsonLines, recordsOf, rootWith, type Said, scribe, startNode } from './support.ts';

interface Row {
  readonly [name: string]: string | number | null | undefined;
  readonly count: number;
  readonly failed: number;
}

interface Received {
  readonly seq: number;
  readonly atNs: bigint;
  readonly request: {
    readonly method: string;
    readonly containerId?: string;
    readonly image?: string;
    readonly cmd?: readonly string[];
  };
  readonly caller: { readonly uid: number; readonly executable: string; readonly program?: string } | null;
  readonly completed:
    | { readonly code: number; readonly durationNs: string; readonly response?: { readonly exitCode?: number } }
    | undefined;
}

interface Requested {
  readonly id: string;
  readonly podSandboxId?: string;
  readonly config: {
    readonly metadata: { readonly name: string; readonly namespace: string; readonly attempt?: number };
    readonly labels?: Readonly<Record<string, string>>;
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const counts = (rows: readonly Row[]): number => sum(rows.map(({ count }) => count));
const failures = (rows: readonly Row[]): number => sum(rows.map(({ failed }) => failed));

describe('report of a made journal', () => {
  const owner: Owner = cleanupAfterAll();
  let root = '';
  let calls: Received[] = [];
  const pods = new Map<string, Requested>();
  const containers = new Map<string, Requested>();

  before(async () => {
    root = await tempDir(owner);
    const path = join(root, 'journal.db');
    await makeJournal({ path, records: 8000, seed: 5 });
    const reader = openReader(path);
    const completed = new Map<number, NonNullable<Received['completed']>>();
    const received: Received[] = [];
    for await (const { type, seq, atNs, call, stream, body } of reader.read()) {
      const id = stream.replace(/^.*\//, '');
      const told = JSON.parse(body) as object;
      if (type === 'call.received') received.push({ ...(told as Received), seq, atNs });
      if (type === 'call.completed' && call !== null) completed.set(call, told as NonNullable<Received['completed']>);
      if (type === 'sandbox.requested') pods.set(id, { ...(told as Requested), id });
      if (type === 'container.requested') containers.set(id, { ...(told as Requested), id });
    }
    reader.close();
    calls = received.map((call) => ({ ...call, completed: completed.get(call.seq) }));
  });

  const report = (...words: readonly string[]): Promise<Said> => scribe(['report', '--root', root, ...words]);
  const rowsOf = async (...words: readonly string[]): Promise<Row[]> => {
    const { exitStatus, stdout } = await report('--json', ...words);
    assert.equal(exitStatus, 0);
    return jsonLines<Row>(stdout);
  };
  const hasFailed = ({ completed }: Received): boolean => completed !== undefined && completed.code !== 0;
  const sessions = ['ExecSync', 'ExecSession', 'AttachSession', 'PortForwardSession'];
  const execs = (): Received[] => calls.filter(({ request }) => sessions.includes(request.method));
  const podOf = ({ request }: Received): Requested | undefined =>
    pods.get(containers.get(request.containerId ?? '')?.podSandboxId ?? '');
  const namespaceOf = (call: Received): string | undefined => podOf(call)?.config.metadata.namespace;

  test('execs, by whom into what', async () => {
    const rows = await rowsOf('execs');
    assert.equal(counts(rows), execs().length);
    const bad = execs().filter((call) => hasFailed(call) || (call.completed?.response?.exitCode ?? 0) !== 0);
    assert.ok(bad.length > 0);
    assert.equal(failures(rows), bad.length);
    for (const { count, container, pod, namespace, caller, callerUid, method, program } of rows.slice(0, 20)) {
      const same = execs().filter(
        (call) =>
          containers.get(call.request.containerId ?? '')?.config.metadata.name === container &&
          podOf(call)?.config.metadata.name === pod &&
          namespaceOf(call) === namespace &&
          call.caller?.uid === callerUid &&
          (call.caller?.program ?? call.caller?.executable) === caller &&
          call.request.method === method &&
          (call.request.cmd?.[0] ?? null) === program,
      );
      assert.equal(count, same.length);
    }
    const methods = rows.map(({ method }) => method);
    assert.ok(methods.includes('ExecSession'));
    assert.ok(methods.lastIndexOf('ExecSession') < methods.indexOf('ExecSync'));
  });

  test('pulls, failures, callers', async () => {
    const pulled = calls.filter(({ request }) => request.method === 'PullImage');
    const pulls = await rowsOf('pulls');
    assert.equal(counts(pulls), pulled.length);
    assert.equal(failures(pulls), pulled.filter(hasFailed).length);
    // Of pulls that failed nobody knows what they would have brought.
    for (const row of pulls) assert.equal(row['sizeBytes'] === null, row['failed'] === row.count, JSON.stringify(row));
    for (const row of pulls)
      assert.equal(row.count, pulled.filter(({ request }) => request.image === row['image']).length);

    const failed = await rowsOf('failures');
    assert.ok(failed.length > 0);
    assert.equal(sum(failed.map(({ count }) => count)), calls.filter(hasFailed).length);

    const callers = await rowsOf('callers');
    assert.equal(counts(callers), calls.length);
    assert.equal(failures(callers), calls.filter(hasFailed).length);
    for (const { caller, callerUid, count, maxMs } of callers) {
      const own = calls.filter(
        (call) => call.caller?.uid === callerUid && (call.caller?.program ?? call.caller?.executable) === caller,
      );
      assert.equal(count, own.length);
      assert.equal(maxMs, Math.max(...own.map(({ completed }) => Number(completed?.durationNs ?? 0) / 1e6)));
    }
  });

  test('restarts', async () => {
    const again = [...containers.values()].filter(({ config }) => (config.metadata.attempt ?? 0) > 0);
    assert.ok(again.length > 0);
    assert.equal(counts(await rowsOf('restarts')), again.length);
  });

  test('the slowest calls', async () => {
    const rows = await rowsOf('slowest', '--limit', '7');
    const durations = calls.map(({ completed }) => Number(completed?.durationNs ?? 0) / 1e6);
    assert.deepEqual(
      rows.map(({ durationMs }) => durationMs),
      durations.sort((a, b) => b - a).slice(0, 7),
    );
    for (const { record, method } of rows)
      assert.equal(calls.find(({ seq }) => seq === record)?.request.method, method);
    assert.equal((await rowsOf('slowest')).length, 20);
  });

  test('of a range, a namespace, a label', async () => {
    const [from, to] = [3000, 6000];
    const within = calls.filter(({ seq }) => seq >= from && seq <= to);
    assert.equal(counts(await rowsOf('callers', '--since', String(from), '--until', String(to))), within.length);

    const shop = execs().filter((call) => namespaceOf(call) === 'shop');
    assert.ok(shop.length > 0 && shop.length < execs().length);
    assert.equal(counts(await rowsOf('execs', '--namespace', 'shop')), shop.length);

    const label = [...pods.values()]
      .flatMap(({ config }) => Object.entries(config.labels ?? {}))
      .find(([key]) => key === 'app');
    assert.ok(label);
    const labelled = execs().filter((call) => podOf(call)?.config.labels?.['app'] === label[1]);
    assert.ok(labelled.length > 0);
    assert.equal(counts(await rowsOf('execs', '--label', label.join('='))), labelled.length);

    const [container] = execs().map(({ request }) => request.containerId ?? '');
    const into = execs().filter(({ request }) => request.containerId === container);
    assert.equal(counts(await rowsOf('execs', '--container', container ?? '')), into.length);
  });

  test('hours and days add up to the whole', async () => {
    const hourOf = ({ atNs }: Received): string =>
      `${new Date(Number(atNs / 1_000_000n)).toISOString().slice(0, 13).replace('T', ' ')}:00Z`;
    const rows = await rowsOf('callers', '--per', 'hour', '--utc');
    for (const hour of new Set(calls.map(hourOf)))
      assert.equal(
        counts(rows.filter((row) => row['hour'] === hour)),
        calls.filter((call) => hourOf(call) === hour).length,
      );
    const days = await rowsOf('callers', '--per', 'day', '--utc');
    assert.equal(counts(days), calls.length);
    assert.match(String(days[0]?.['day']), /^\d{4}-\d\d-\d\d$/);
  });

  test('a summary of all, for people and as JSON', async () => {
    const { stdout, stderr } = await report('--utc');
    assert.equal(stderr, '');
    const titles = [
      'Commands and sessions',
      'Image pulls',
      'Calls that failed',
      'Restarts',
      'Slowest calls',
      'Callers',
    ];
    for (const title of titles) assert.match(stdout, new RegExp(`^${title}`, 'm'));
    assert.match(stdout, /^Slowest calls, 5 of 20 rows \(scribe report slowest\)$/m);
    const kinds = new Set((await rowsOf()).map((row) => row['report']));
    assert.deepEqual([...kinds], ['execs', 'pulls', 'failures', 'restarts', 'slowest', 'callers']);
    const some = await report('execs', '-n', '2');
    assert.equal(some.stdout.trimEnd().split('\n').length, 3);
    assert.match(some.stderr, /^scribe: [\d,]+ more rows: a larger --limit shows them\.\n$/);
  });

  test('a journal from before the views is counted all the same', async () => {
    const now = (await report('--json')).stdout;
    const old = new DatabaseSync(join(root, 'journal.db'));
    for (const view of ['nri_decisions', 'image_pulls', 'exec_sessions', 'calls', 'exits', 'containers', 'pods'])
      old.exec(`DROP VIEW ${view}`);
    old.exec(
      "DROP TRIGGER schema_delete; DELETE FROM schema WHERE version >= (SELECT version FROM schema WHERE name LIKE '%views%')",
    );
    old.close();
    assert.equal((await report('--json')).stdout, now);
  });
});

describe('report of a story', () => {
  test('each row, and no word of a command but the first', async (t) => {
    const { records, nginx } = await tell();
    const { dir } = await rootWith(t, records);
    const { stdout } = await scribe(['report', '--root', dir, '--json']);
    assert.doesNotMatch(stdout, /hostname/);
    const rows = jsonLines<Row>(stdout);
    const of = (word: string): Row[] => rows.filter((row) => row['report'] === word);
    assert.deepEqual(
      of('execs').map(({ last: _, ...row }) => row),
      [
        {
          report: 'execs',
          count: 1,
          failed: 1,
          caller: '/opt/bin/crictl (deleted)',
          callerUid: 1000,
          namespace: 'default',
          pod: 'web',
          container: 'nginx',
          method: 'ExecSync',
          program: 'cat',
        },
      ],
    );
    assert.deepEqual(
      of('failures').map(({ outcome, method, reason, count }) => [outcome, method, reason, count]),
      [
        ['failed', 'CreateContainer', 'ImageNotFound', 1],
        ['failed', 'RunPodSandbox', 'CniFailed', 1],
        ['not offered', 'PortForward', 'NotImplemented', 1],
      ],
    );
    assert.deepEqual(
      of('pulls').map((row) => [row['image'], row.count]),
      [[image, 1]],
    );
    assert.deepEqual(of('restarts'), []);
    assert.equal(sum(of('callers').map((row) => Number(row['unanswered']))), 1);
    const byImage = await scribe(['report', 'pulls', '--root', dir, '--json', '--image', image]);
    assert.equal(counts(jsonLines<Row>(byImage.stdout)), 1);
    const ofPod = await scribe(['report', 'callers', '--root', dir, '--json', '--container', nginx]);
    // CreateContainer, StartContainer, ExecSync, RemoveContainer.
    assert.equal(counts(jsonLines<Row>(ofPod.stdout)), 4);
  });

  test('a restart has the end of the container before it as its reason, in another sandbox of the pod too', async (t) => {
    const node = await startNode();
    const sandbox = async (attempt: number): Promise<string> => {
      const metadata = { name: 'web', namespace: 'default', uid: 'u', attempt };
      return idOf(await node.ask({ method: 'RunPodSandbox', config: { metadata }, runtimeHandler: '' }));
    };
    await node.ask({ method: 'PullImage', image, credentials: null });
    const run = async (pod: string, attempt: number, exitStatus: number): Promise<void> => {
      const config = { metadata: { name: 'app', attempt }, image: { image } };
      const id = idOf(await node.ask({ method: 'CreateContainer', podSandboxId: pod, config }));
      await node.ask({ method: 'StartContainer', containerId: id });
      await node.engine.observe(exitOf(pod, id, exitStatus));
      await node.advance(1000);
    };
    const first = await sandbox(0);
    for (const [attempt, exitStatus] of [1, 1, 0].entries()) await run(first, attempt, exitStatus);
    const beforeLast = recordsOf(node).length;
    await run(await sandbox(1), 3, 137);
    const { dir } = await rootWith(t, recordsOf(node));
    const restarts = async (...words: readonly string[]): Promise<unknown> =>
      jsonLines<Row>((await scribe(['report', 'restarts', '--root', dir, '--json', ...words])).stdout).map(
        ({ pod: name, container, reason, exitStatus, count }) => [name, container, reason, exitStatus, count],
      );
    const [failing, done] = [
      ['web', 'app', 'Error', 1, 2],
      ['web', 'app', 'Completed', 0, 1],
    ];
    assert.deepEqual(await restarts(), [failing, done]);
    assert.deepEqual(await restarts('--since', String(beforeLast + 1)), [done]);
    assert.deepEqual(await restarts('--pod', 'default/other'), []);
  });

  test('a shell command in one piece is cut behind its first word', async (t) => {
    const node = await startNode();
    const metadata = { name: 'web', namespace: 'default', uid: 'u' };
    const pod = idOf(await node.ask({ method: 'RunPodSandbox', config: { metadata }, runtimeHandler: '' }));
    await node.ask({ method: 'PullImage', image, credentials: null });
    const config = { metadata: { name: 'app' }, image: { image } };
    const containerId = idOf(await node.ask({ method: 'CreateContainer', podSandboxId: pod, config }));
    await node.ask({ method: 'StartContainer', containerId });
    await node.ask({
      method: 'ExecSync',
      containerId,
      cmd: ['login --password=canary', 'canary'],
      timeoutSeconds: '1',
    });
    const { dir } = await rootWith(t, recordsOf(node));
    for (const words of [['--json'], ['execs']]) {
      const { stdout } = await scribe(['report', '--root', dir, ...words]);
      assert.match(stdout, /login/);
      assert.doesNotMatch(stdout, /canary/);
    }
  });

  test('a call that was refused is told from one that failed', async (t) => {
    const node = await startNode();
    const failure = { reason: 'InvalidField', message: 'config.metadata is missing.' } as const;
    await node.ask({ method: 'Refused', rpc: 'RunPodSandbox', failure });
    await node.ask({ method: 'StartContainer', containerId: 'f'.repeat(64) });
    const { dir } = await rootWith(t, recordsOf(node));
    const rows = jsonLines<Row>((await scribe(['report', 'failures', '--root', dir, '--json'])).stdout);
    assert.deepEqual(
      rows.map(({ outcome, method, code, reason, callerUid, count }) => [
        outcome,
        method,
        code,
        reason,
        callerUid,
        count,
      ]),
      [
        ['failed', 'StartContainer', 'NOT_FOUND', 'ContainerNotFound', 0, 1],
        ['refused', 'RunPodSandbox', 'INVALID_ARGUMENT', 'InvalidField', 0, 1],
      ],
    );
  });

  test('what is pruned is not counted, and that is said', async (t) => {
    const { records, web, nginx } = await tell();
    const gone = new Set([`sandbox/${web}`, `container/${nginx}`]);
    const seqs = records.filter(({ stream }) => gone.has(stream)).map(({ seq }) => seq);
    const { dir } = await rootWith(t, records, async (journal) => {
      const own = prunedRecord({ reason: 'test', seqs: seqs.map((seq) => [seq, seq]), segments: [] });
      const seq = journal.head().seq + 1;
      await journal.append([{ ...own, seq, atNs: startNs, monoNs: 1n, boot: 'boot', cause: null, call: null }]);
    });
    const { exitStatus, stdout, stderr } = await scribe(['report', 'execs', '--root', dir, '--json']);
    assert.equal(exitStatus, 0);
    assert.match(stderr, new RegExp(`^scribe: ${seqs.length} records of this time are pruned: what they told`));
    const [row] = jsonLines<Row>(stdout);
    assert.deepEqual([row?.['pod'], row?.['container'], row?.count], [null, nginx, 1]);
    const byId = await scribe(['report', 'execs', '--root', dir, '--json', '--container', nginx]);
    assert.equal(counts(jsonLines<Row>(byId.stdout)), 1);
  });

  test('what an NRI plugin asked for is called by its name, and not by nobody', async (t) => {
    const node = await startNode({
      perform: {
        KillTask: async ({ podSandboxId, containerId }) => {
          setImmediate(() => void node.engine.observe(exitOf(podSandboxId, containerId, 137)));
          return { alreadyGone: false };
        },
      },
    });
    const { containerId } = await runContainer(node);
    const resources = { cpuShares: '7' };
    for (const id of [containerId, 'f'.repeat(64)])
      await node.ask({ method: 'UpdateContainerResources', containerId: id, resources, plugin: '10-limits' }, null);
    const evicted = { plugin: '20-mover', reason: 'its cores are wanted' };
    await node.ask({ method: 'StopContainer', containerId, timeoutSeconds: '0', evicted }, null);
    const { dir } = await rootWith(t, recordsOf(node));
    const { stdout } = await scribe(['report', '--root', dir, '--json', 'callers']);
    const rows = jsonLines<Row>(stdout).map(({ caller, count, failed }) => `${caller}: ${count}, ${failed} failed`);
    assert.deepEqual(rows.filter((row) => row.startsWith('NRI')).toSorted(), [
      'NRI plugin 10-limits: 2, 1 failed',
      'NRI plugin 20-mover: 1, 0 failed',
    ]);
  });
});
