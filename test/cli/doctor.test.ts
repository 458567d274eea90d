/** `scribe doctor`: what the machine, the journal and the daemon say, as a table, as JSON and as an exit status. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import type { DoctorResult } from '../../src/adapters/doctor/result.ts';
import type { DeepPartial, StateReply } from '../../src/wire/scribe/v1/daemon.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import { idOf, runContainer, runPod } from '../engine/rig.ts';
import { tamper, withoutTriggers } from '../journal/support.ts';
import { CONF_LIST } from '../simulation/facts.ts';
import { fakeDaemon } from './fake-daemon.ts';
import { jsonLines, type Node, recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';

interface Examined {
  readonly exitStatus: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A directory with the network configuration of the node that wrote the journal; its plugins are all there. */
const network = async (root: Root): Promise<string[]> => {
  const [confDir, binDir] = [join(root.dir, 'net.d'), join(root.dir, 'bin')];
  await mkdir(confDir);
  await mkdir(binDir);
  const script = '#!/bin/sh\ncat > /dev/null\necho \'{"supportedVersions":["1.0.0"]}\'\n';
  await writeFile(join(binDir, 'loopback'), script, { mode: 0o755 });
  const conf = { cniVersion: '1.0.0', name: CONF_LIST.name, plugins: [{ type: 'loopback' }] };
  await writeFile(join(confDir, 'test.conflist'), JSON.stringify(conf));
  return ['--cni-conf-dir', confDir, '--cni-bin-dir', binDir];
};

const examine = async (root: Root, ...words: string[]): Promise<Examined> =>
  scribe(['doctor', '--root', root.dir, '--state', join(root.dir, 'state'), ...(await network(root)), ...words]);

const resultsOf = (stdout: string): DoctorResult[] => jsonLines<DoctorResult>(stdout);

const of = (results: readonly DoctorResult[], check: string): DoctorResult[] =>
  results.filter((result) => result.check === check);

/** A pod whose network could not be taken away again. */
const owing = async (): Promise<Node> => {
  const node = await startNode({
    perform: {
      DetachNetwork: async () => {
        throw new FailureError('CniFailed', 'the plugin bridge said no');
      },
      KillTask: async () => ({ alreadyGone: true }),
    },
  });
  const podSandboxId = idOf(await node.ask(runPod('web')));
  void node.ask({ method: 'StopPodSandbox', podSandboxId });
  await node.advance(20_000);
  return node;
};

const whole = async (t: TestContext): Promise<Root> => rootWith(t, recordsOf(await startNode()));

const answering = (root: Root, reply: DeepPartial<StateReply>) => ({
  state: () => ({ seq: '2', stateHash: 'ab', rootDir: root.dir, ...reply }),
});

/** A container that runs, and whose shim does not say how. */
const withSilentShim = async (): Promise<{ node: Node; podSandboxId: string }> => {
  const silent = async (): Promise<never> => {
    throw new FailureError('TimedOut', 'no word of the shim');
  };
  const node = await startNode({ perform: { UpdateContainer: silent, ReconnectShim: silent } });
  const { podSandboxId, containerId } = await runContainer(node);
  await node.ask({ method: 'UpdateContainerResources', containerId, resources: { cpuShares: '7' } });
  await node.advance(1);
  return { node, podSandboxId };
};

describe('doctor', () => {
  test('a shim that does not answer while its container runs is told, with its process', async (t) => {
    const { node, podSandboxId } = await withSilentShim();
    const root = await rootWith(t, recordsOf(node));
    const { stdout } = await examine(root, '--json');
    const [silent] = of(resultsOf(stdout), 'silent shims');
    assert.equal(silent?.status, 'problem');
    const { pid = 0 } = node.engine.state.sandboxes.get(podSandboxId)?.shim ?? {};
    assert.ok(
      silent.detail.includes(`(sandbox/${podSandboxId}): its shim, process ${pid}, gave no answer, 1 time in a row`),
    );
    assert.match(silent.remedy ?? '', new RegExp(`kill -CONT ${pid}\\.`));
  });

  test('a daemon that answers, a whole journal and a network are well', async (t) => {
    const root = await whole(t);
    const { socketPath } = await fakeDaemon(t, answering(root, {}));
    const { stdout, stderr } = await examine(root, '--socket', socketPath, '--json');
    const results = resultsOf(stdout);
    assert.equal(stderr, '');
    for (const check of ['kernel', 'overlayfs', 'CNI configuration', 'CNI plugins', 'journal', 'daemon']) {
      assert.deepEqual(
        of(results, check).map(({ status }) => status),
        ['ok'],
        check,
      );
    }
    assert.match(of(results, 'journal')[0]?.detail ?? '', /journal\.db: 2 records, the newest are whole$/);
  });

  test('a daemon that has another network than what was looked at runs with other options', async (t) => {
    const root = await rootWith(t, recordsOf(await startNode()));
    const { socketPath } = await fakeDaemon(t, answering(root, {}));
    const elsewhere = join(root.dir, 'elsewhere');
    const { stdout } = await examine(root, '--socket', socketPath, '--cni-conf-dir', elsewhere, '--json');
    const [, other] = of(resultsOf(stdout), 'daemon');
    assert.equal(other?.status, 'warning');
    assert.equal(other.detail, `has the network "${CONF_LIST.name}" for its pods, and ${elsewhere} has none`);
    assert.match(other.remedy ?? '', /--cni-conf-dir/);
  });

  test('the table says what to do, and ends with counts', async (t) => {
    const root = await whole(t);
    const { stdout } = await examine(root);
    assert.match(stdout, /^STATUS +CHECK +FOUND$/m);
    assert.match(stdout, /^warning +daemon +there is no daemon at .*state\/scribe\.sock: there is no such socket$/m);
    assert.match(stdout, /^ +-> Start it: it takes up what the journal says/m);
    assert.match(stdout, /\n\n\d+ problems?, \d+ warnings?\n$/);
  });

  test("what is configured of registries and of handlers' networks is read as a pull and a pod would", async (t) => {
    const root = await whole(t);
    const hosts = join(root.dir, 'certs.d');
    const files = {
      'typo.example': 'server = "https://t"\nskip_verfy = true\n[host."https://m"]\ndial_timout = "1s"\n',
      'key.example_5000_': 'ca = "missing.pem"\nserver = "https://k"\n',
      'good.example': '[host."https://m"]\nskip_verify = true\n',
    };
    for (const [name, text] of Object.entries(files)) {
      await mkdir(join(hosts, name), { recursive: true });
      await writeFile(join(hosts, name, 'hosts.toml'), text);
    }
    const config = join(root.dir, 'config.toml');
    await writeFile(config, `[runtime.handlers.other]\ncni_conf_dir = "${root.dir}/none"\n`);
    const { stdout, exitStatus } = await examine(root, '--json', '--registry-config-dir', hosts, '--config', config);
    const results = resultsOf(stdout);
    assert.equal(exitStatus, 1);
    assert.deepEqual(
      of(results, 'registries').map(({ status, detail }) => [status, detail]),
      [
        [
          'problem',
          `The registry configuration ${hosts}/key.example_5000_ can't be used: ENOENT: no such file or directory, stat '${hosts}/key.example_5000_/missing.pem'.`,
        ],
        ['warning', `${hosts}/typo.example/hosts.toml: "skip_verfy" is no key of it and does nothing`],
        ['warning', `${hosts}/typo.example/hosts.toml: "dial_timout" is no key of it and does nothing`],
      ],
    );
    assert.match(of(results, 'CNI configuration of other')[0]?.detail ?? '', /\/none: the directory does not exist$/);
  });

  test('NRI plugins that would not be launched are told', async (t) => {
    const examined = async (...files: readonly string[]): Promise<{ plugins: string; told: unknown }> => {
      const root = await whole(t);
      const plugins = join(root.dir, 'plugins');
      await mkdir(plugins);
      for (const file of files) await writeFile(join(plugins, file), '#!/bin/sh', { mode: 0o755 });
      const { stdout } = await examine(root, '--json', '--nri-plugin-dir', plugins);
      return { plugins, told: of(resultsOf(stdout), 'NRI plugins').map(({ status, detail }) => [status, detail]) };
    };
    const good = await examined('10-good');
    assert.deepEqual(good.told, [['ok', `10-good in ${good.plugins}`]]);
    const bad = await examined('10-good', 'bad');
    const why = 'the name of an NRI plugin has two digits, "-" and a name, like 10-logger';
    assert.deepEqual(bad.told, [
      ['problem', `${bad.plugins}/bad is not launched: ${why}. Rename it, or make it no executable.`],
    ]);
  });

  test('exit status 1 is for problems, not for warnings', async (t) => {
    const root = await whole(t);
    const { exitStatus, stdout } = await examine(root, '--json');
    const problems = resultsOf(stdout).filter(({ status }) => status === 'problem');
    assert.equal(exitStatus, problems.length > 0 ? 1 : 0);
    const broken = await scribe([
      'doctor',
      '--root',
      root.dir,
      '--state',
      join(root.dir, 'state'),
      '--runtime',
      'nowhere',
    ]);
    assert.equal(broken.exitStatus, 1);
    assert.match(broken.stdout, /^problem +OCI runtime of runc +nowhere is no executable in PATH$/m);
  });

  test('work that is owed is told by the name of its object, with why and how often', async (t) => {
    const node = await owing();
    const root = await rootWith(t, recordsOf(node));
    const { exitStatus, stdout } = await examine(root, '--json');
    assert.equal(exitStatus, 1);
    const [owed] = of(resultsOf(stdout), 'work owed');
    assert.equal(owed?.status, 'problem');
    assert.match(
      owed.detail,
      /^ns\/web 0{13} \(sandbox\/0{63}\d\): network could not be undone, tried \d+ times?: .*said no/,
    );
  });

  test('findings of the daemon are problems; effects are told with their age, and slow ones are warnings', async (t) => {
    const root = await whole(t);
    const underWay = [
      { effect: '7.0', kind: 'PullImage', stream: 'call/x', ageNs: '1500000000' },
      { effect: '8.1', kind: 'DetachNetwork', stream: `sandbox/${'b'.repeat(64)}`, ageNs: '300000000000' },
      { effect: '9.0', kind: 'WaitUntil', stream: 'node', ageNs: '900000000000' },
    ];
    const { socketPath } = await fakeDaemon(t, answering(root, { findings: ['A journal was set aside.'], underWay }));
    const { exitStatus, stdout } = await examine(root, '--socket', socketPath, '--json');
    const results = resultsOf(stdout);
    assert.equal(exitStatus, 1);
    assert.deepEqual(
      of(results, 'daemon').map(({ status, detail }) => [status, detail.replace(/ at .*/, '')]),
      [
        ['ok', 'answers'],
        ['problem', 'A journal was set aside.'],
      ],
    );
    assert.deepEqual(
      of(results, 'under way').map(({ status, detail }) => [status, detail]),
      [
        ['ok', 'PullImage (7.0), for 1.50 s'],
        ['warning', 'DetachNetwork (8.1) on pod bbbbbbbbbbbbb, for 5 min 0 s'],
      ],
    );
  });

  test('a damaged end of the journal is a problem', async (t) => {
    const root = await whole(t);
    tamper(root.journalPath, (db) =>
      withoutTriggers(db, () => db.exec('UPDATE checkpoints SET signature = zeroblob(64)')),
    );
    const [journal] = of(resultsOf((await examine(root, '--json')).stdout), 'journal');
    assert.equal(journal?.status, 'problem');
    assert.match(journal.detail, /The checkpoint at record 2 is not signed by /);
  });

  test('a journal that is none, and one that was set aside, are told; the rest is looked at all the same', async (t) => {
    const root = await whole(t);
    await writeFile(`${root.journalPath}.corrupt-1`, 'x');
    await writeFile(`${root.journalPath}-wal`, '');
    await writeFile(root.journalPath, 'this is no database, however long it is '.repeat(200));
    const { exitStatus, stdout } = await examine(root, '--json');
    const results = resultsOf(stdout);
    assert.equal(exitStatus, 1);
    const [broken, aside] = of(results, 'journal');
    assert.equal(broken?.status, 'problem');
    assert.match(aside?.detail ?? '', /^journal\.db\.corrupt-1 could not be read and was set aside$/);
    assert.equal(of(results, 'kernel').length, 1);
  });

  test('reports of crashes are a warning that names the newest, and so is an end by V8 that no start has taken in', async (t) => {
    const root = await whole(t);
    const write = (name: string, report: object): Promise<void> =>
      writeFile(join(root.dir, name), JSON.stringify(report));
    await write('crash-1.json', {});
    await write('crash-2.json', { scribeCrashReport: 1, atNs: '1800000000000000000', what: 'it ended' });
    const header = { event: 'Allocation failed', dumpEventTimeStamp: '1' };
    await write('v8-fatal.json', { header, javascriptHeap: { usedMemory: 1 << 20, memoryLimit: 2 << 20 } });
    const found = of(resultsOf((await examine(root, '--json')).stdout), 'crashes');
    assert.deepEqual(
      found.map(({ status, detail }) => [status, detail]),
      [
        [
          'warning',
          `2 reports of crashes of the daemon, the newest ${root.dir}/crash-2.json, 2027-01-15T08:00:00.000000000Z: it ended`,
        ],
        [
          'warning',
          'V8 ended a daemon, and none has served since: Allocation failed, with 1.0 MiB of 2.0 MiB of heap in use',
        ],
      ],
    );
    await write('crash-3.json', { scribeCrashReport: 2 });
    const again = await scribe(['doctor', '--root', root.dir, '--state', join(root.dir, 'state'), '--json']);
    const [newest] = of(resultsOf(again.stdout), 'crashes');
    assert.match(newest?.detail ?? '', /^3 reports .*crash-3\.json, it cannot be read$/);
  });

  test('the daemon of a root that is named alone is looked for where its journal says', async (t) => {
    const root = await whole(t);
    const { stdout } = await scribe(['doctor', '--json', '--root', root.dir]);
    assert.match(
      of(resultsOf(stdout), 'daemon')[0]?.detail ?? '',
      /^there is no daemon at \/state-dir\/scribe\.sock: /,
    );
  });

  test('before the first start there is nothing wrong with having no journal', async (t) => {
    const root = await whole(t);
    const { stdout } = await scribe([
      'doctor',
      '--json',
      '--root',
      join(root.dir, 'new'),
      '--state',
      join(root.dir, 's'),
    ]);
    const [journal] = of(resultsOf(stdout), 'journal');
    assert.equal(journal?.status, 'ok');
    assert.match(journal.detail, /^none at .*new\/journal\.db: the first start makes one$/);
  });
});
