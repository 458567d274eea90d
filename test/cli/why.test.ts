/** `scribe why`: the first line names the true cause of twelve staged failures, and of what goes on or is gone. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { failureWords } from '../../src/cli/why/exit-words.ts';
import { stepName } from '../../src/cli/why/steps.ts';
import type { Intent } from '../../src/domain/model/records.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import { pluginName } from '../../src/domain/nri/plugins.ts';
import { nodeFold } from '../../src/engine/node-fold.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import { idOf, runContainer, task } from '../engine/rig.ts';
import { type Story, tell } from './story.ts';
import { recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';
import { type Explained, explainAll, page, pageOf } from './why-page.ts';

const FIRST_LINES: Readonly<Record<string, RegExp>> = {
  'Out of memory':
    /^Container app of pod ns\/web \(\w+\) was killed by the kernel, out of memory: its limit is 64\.0 MiB, at most 64\.0 MiB used \(exit code 137, SIGKILL\)\.$/,
  'A command that is not there':
    /could not be started: .*exec: "no-such-command": executable file not found in \$PATH\.$/,
  'An image that nobody pulled':
    /CreateContainer of container app .* failed .*"registry\.test\/app:1" is not on this node/,
  'CNI fails': /^Pod ns\/web \(\w+\) was never made: its network could not be made by CNI: .*no IP addresses available/,
  "A plugin's veto": /was never made: NRI plugin "10-policy" .*: images of registry\.test are not signed\.$/,
  'A liveness probe':
    /was stopped by kubelet \(pid 812, uid 0\) after its probe "cat \/tmp\/healthy" failed 3 times in a row; it did not heed SIGTERM, and SIGKILL ended it after 30\.0 s/,
  'A reboot': /^Container app of pod ns\/web \(\w+\) ended when the node was rebooted\.$/,
  'A shim that is killed': /was lost: its shim \(pid 10\) was killed or died, so nobody knows its exit code\.$/,
  'A disk that is full': /^The disk has been full for 1 min 0 s \(record \d+, 3\.9 MiB free\)/,
  'A daemon that is killed while it makes a pod':
    /was never made: the daemon was killed in the middle of attaching its network \(CNI ADD\), and its next start undid/,
  'A registry that refuses':
    /^PullImage of image registry\.test\/app:1 .*: the registry refused it: .*wants credentials for app and was given none\.$/,
  'A command that takes too long': /ran longer than its timeout of 2 s, and "sleep 60" was killed\.$/,
};

test('a step of a kind that a newer scribe made is called what it is', () => {
  const ofTomorrow = { kind: 'FreezeTask' } as unknown as Intent;
  assert.equal(stepName(ofTomorrow), 'FreezeTask');
});

test('a quota that is used up is a disk that is full, by whichever name the runtime gives it', () => {
  for (const said of [
    'mkdir /run/c: disk quota exceeded',
    'EDQUOT: disk quota exceeded, write',
    'no space left on device',
  ])
    assert.equal(failureWords({ reason: 'RuntimeFailed', message: `${said}.` }), `the disk is full: ${said}`);
});

describe('why', () => {
  const owner: Owner = cleanupAfterAll();
  let explained: readonly Explained[] = [];
  let story: Story;
  let root: Root;

  before(async () => {
    explained = await explainAll();
    story = await tell();
    root = await rootWith(owner, story.records);
  });

  const why = async (...words: readonly string[]): Promise<string> => {
    const { exitStatus, stdout, stderr } = await scribe(['why', ...words, '--root', root.dir]);
    assert.equal(exitStatus, 0, stderr);
    return stdout;
  };
  const firstLine = async (...words: readonly string[]): Promise<string> => (await why(...words)).split('\n')[0] ?? '';

  for (const [title, expected] of Object.entries(FIRST_LINES)) {
    test(`the first line names the cause: ${title}`, () => {
      const found = explained.find((one) => one.title === title);
      assert.match(found?.stdout.split('\n')[0] ?? '', expected);
    });
  }

  test('docs/why.md has what it says', async () => {
    assert.deepEqual(
      Object.keys(FIRST_LINES),
      explained.map(({ title }) => title),
    );
    assert.equal(await page(), pageOf(explained), 'run node test/cli/why-page.ts');
  });

  test('what is gone is explained as well, by its name and by the beginning of its id', async () => {
    const gone = /^Container nginx of pod default\/web \(\w+\) was ended by SIGKILL .*; it was removed by kubelet/;
    assert.match(await firstLine('default/web/nginx'), gone);
    assert.match(await firstLine(`container:${story.nginx}`), gone);
    assert.match(await firstLine('pod:default/web'), /was removed by kubelet/);
  });

  test('of a call: how long it took, and which step; of one under way, that it is', async () => {
    const last = story.records.findLast(({ type }) => type === 'call.received')?.seq;
    assert.match(await firstLine(String(last)), /^StopPodSandbox of pod test\/web .* is under way since /);
    const create = story.records.find(({ type }) => type === 'call.received')?.seq;
    assert.match(
      await firstLine(String(create)),
      /^PullImage of image registry\.test\/app:1 by kubelet .* succeeded in 0 µs\.$/,
    );
  });

  test('a pod that is ready and of which a container cannot be created: which one, why, and how often', async () => {
    const node = await startNode();
    const { podSandboxId } = await runContainer(node);
    const create = async (image: string): Promise<unknown> => {
      await node.advance(1_000);
      const config = { metadata: { name: 'sidecar' }, image: { image } };
      return node.ask({ method: 'CreateContainer', podSandboxId, config });
    };
    const firstLineNow = async (): Promise<readonly [string, string]> => {
      const { dir } = await rootWith(owner, recordsOf(node));
      const { stdout } = await scribe(['why', podSandboxId, '--root', dir]);
      return [stdout.split('\n')[0] ?? '', stdout];
    };
    await create('registry.test/missing:1');
    await create('registry.test/missing:1');
    const [line, whole] = await firstLineNow();
    assert.match(line, /is ready since .*; its container sidecar cannot be created: .*missing:1.* is not on this node/);
    assert.match(whole, /\n {2}refused +sidecar, 2 times, last .* ago \(record \d+\): .*missing:1/);
    await create('registry.test/app:1');
    assert.match((await firstLineNow())[0], /is ready since [^;]*\.$/);
  });

  test('of a command that its shim said nothing of, what is known, and not that it ran and was killed', async () => {
    const message = 'Could not run a command in container c: the shim did not answer Exec within 4000 ms.';
    const node = await startNode({
      perform: {
        RunExec: async () => {
          throw new FailureError('TimedOut', message);
        },
      },
    });
    const { containerId } = await runContainer(node);
    await node.ask({ method: 'ExecSync', containerId, cmd: ['true'], timeoutSeconds: '1' }, null);
    const records = recordsOf(node);
    const silent = await rootWith(owner, records);
    const { seq } = records.findLast(({ type }) => type === 'call.received') ?? assert.fail();
    const { stdout } = await scribe(['why', String(seq), '--root', silent.dir]);
    const [line = ''] = stdout.split('\n');
    assert.match(line, /the shim did not answer Exec within 4000 ms/);
    assert.doesNotMatch(line, /ran longer|was killed/);
  });

  test('as of an earlier moment it was something else', async () => {
    const started = story.records.find(
      ({ type, stream }) => type === 'container.started' && stream.endsWith(story.nginx),
    );
    assert.match(await firstLine('default/web/nginx', '--at', String(started?.seq)), / runs since it was started /);
  });

  test('of what came later that is said, by its name or its id, and not that it is being made', async () => {
    const first = story.records.find(({ stream }) => stream.endsWith(story.nginx))?.seq;
    for (const name of ['default/web/nginx', `container:${story.nginx}`]) {
      const { exitStatus, stdout, stderr } = await scribe(['why', name, '--at', '1', '--root', root.dir]);
      assert.deepEqual([exitStatus, stdout], [1, '']);
      assert.equal(
        stderr,
        `scribe: The journal knows nothing of "${name}" up to record 1: the first record of it is ${first}. --at ${first} or later has it.\n`,
      );
    }
    const pulled = await scribe(['why', 'registry.test/app:1', '--at', '1', '--root', root.dir]);
    assert.match(pulled.stderr, /nothing of "registry\.test\/app:1" up to record 1: .*--at \d+ /);
    const short = await scribe(['why', 'ab', '--root', root.dir]);
    assert.match(short.stderr, /Of an id at least 4 digits are needed\. A thing is/);
    const zero = await scribe(['why', '0', '--root', root.dir]);
    assert.deepEqual([zero.exitStatus, zero.stderr], [1, 'scribe: There is no record 0: the first is 1.\n']);
  });

  test('--last-change names the record that gave a field its value, with what led to it', async () => {
    const exited = story.records.find(
      ({ type, stream }) => type === 'container.exited' && stream.endsWith(story.nginx),
    );
    const text = await why('--last-change', `container/${story.nginx}.exit`);
    assert.match(
      text,
      new RegExp(`^Record ${exited?.seq} \\(container\\.exited\\) last changed exit of container nginx`),
    );
    assert.match(text, /after +\{"exitStatus":137/);
  });

  test('--last-change of an image that came again: what brought it, whether or not a snapshot was taken while it was gone', async () => {
    const node = await startNode();
    const gone = 'registry.test/app:1';
    await node.ask({ method: 'PullImage', image: gone, credentials: null });
    await node.ask({ method: 'RemoveImage', image: gone });
    await node.ask({ method: 'PullImage', image: gone, credentials: null });
    const records = recordsOf(node);
    const again = records.findLast(({ type }) => type === 'image.pulled') ?? assert.fail();
    const removed = records.find(({ type }) => type === 'image.removed') ?? assert.fail();
    const field = `${again.stream}.content.sizeBytes`;
    const snapshot = async (journal: SqliteJournal): Promise<void> => {
      const state = nodeFold.initial();
      for (const record of records.slice(0, removed.seq)) nodeFold.evolve(state, record);
      const { evolverVersion, write } = nodeFold;
      await journal.writeSnapshot({ seq: removed.seq, evolverVersion, state: write(state) });
    };
    for (const more of [async () => {}, snapshot]) {
      const { dir } = await rootWith(owner, records, more);
      const { stdout } = await scribe(['why', '--last-change', field, '--root', dir]);
      assert.match(stdout, new RegExp(`^Record ${again.seq} \\(image\\.pulled\\) last changed`));
    }
  });

  test('--json has the answer, the facts and the chain', async () => {
    const answer = JSON.parse(await why('default/web/nginx', '--json')) as {
      readonly about: { readonly kind: string; readonly id: string };
      readonly answer: string;
      readonly chain: readonly { readonly seq: number }[];
    };
    assert.deepEqual([answer.about.kind, answer.about.id], ['container', story.nginx]);
    assert.match(answer.answer, /was ended by SIGKILL/);
    assert.ok(
      answer.chain.length > 3 && answer.chain.every(({ seq }, index, all) => seq >= (all[index - 1]?.seq ?? 0)),
    );
  });

  test('an image that is gone: who removed it, and not who once used it; one that never came: who asked for it, by its name', async () => {
    const node = await startNode();
    const gone = 'registry.test/app:1';
    const metadata = { name: 'web', namespace: 'default', uid: '1' };
    await node.ask({ method: 'PullImage', image: gone, credentials: null });
    const podSandboxId = idOf(await node.ask({ method: 'RunPodSandbox', config: { metadata }, runtimeHandler: '' }));
    const container = (name: string, image: { image: string; userSpecifiedImage?: string }) =>
      node.ask({ method: 'CreateContainer', podSandboxId, config: { metadata: { name }, image } });
    const containerId = idOf(await container('app', { image: gone }));
    await node.ask({ method: 'RemoveContainer', containerId });
    await node.ask({ method: 'RemoveImage', image: gone });
    const id = `sha256:${'f'.repeat(64)}`;
    await container('late', { image: id, userSpecifiedImage: 'registry.test/never:2' });
    const { dir } = await rootWith(owner, recordsOf(node));
    const first = async (image: string): Promise<string> => (await scribe(['why', image, '--root', dir])).stdout;
    assert.match(await first(gone), /^Image registry\.test\/app:1 was removed by kubelet/);
    for (const name of ['registry.test/never:2', id])
      assert.match(
        await first(name),
        /^CreateContainer of container late in pod default\/web by kubelet .* failed /,
        name,
      );
  });

  test('a container that an NRI plugin evicted before it was started: by whom and why', async () => {
    const node = await startNode();
    const image = 'registry.test/app:1';
    await node.ask({ method: 'PullImage', image, credentials: null });
    const metadata = { name: 'web', namespace: 'default', uid: '1' };
    const podSandboxId = idOf(await node.ask({ method: 'RunPodSandbox', config: { metadata }, runtimeHandler: '' }));
    const config = { metadata: { name: 'app' }, image: { image } };
    const containerId = idOf(await node.ask({ method: 'CreateContainer', podSandboxId, config }));
    const evicted = { plugin: '50-mover', reason: 'its cores are wanted' };
    await node.ask({ method: 'StopContainer', containerId, timeoutSeconds: '0', evicted }, null);
    await node.ask({ method: 'StartContainer', containerId });
    const { dir } = await rootWith(owner, recordsOf(node));
    const { stdout } = await scribe(['why', 'default/web/app', '--root', dir]);
    assert.match(
      stdout,
      /^Container app of pod default\/web \(\w+\) was evicted .* by NRI plugin 50-mover \(its cores are wanted\) before it was started, and can not be started any more\./,
    );
  });

  test('what each NRI plugin said where one of them gave no answer, and by their names', async () => {
    const node = await startNode({
      perform: {
        CallPlugins: async ({ plugins }) => ({
          answers: plugins.map((plugin) => ({
            ...{ plugin: pluginName(plugin), durationNs: '1' },
            ...(plugin.name === 'late' ? { failure: { kind: 'unanswered', message: 'no word in 2 s.' } } : {}),
          })),
        }),
      },
    });
    for (const [index, name] of [
      ['10', 'quick'],
      ['20', 'late'],
    ] as const) {
      const body = { id: `${index}-${name}@0123`, index, name, hooks: ['RunPodSandbox'] as const };
      await node.engine.observe({ kind: 'NriNoted', note: { type: 'nri.plugin.registered', body } });
    }
    const metadata = { name: 'web', namespace: 'default', uid: '1' };
    await node.ask({ method: 'RunPodSandbox', config: { metadata }, runtimeHandler: '' });
    const { dir } = await rootWith(owner, recordsOf(node));
    const { stdout } = await scribe(['why', 'default/web', '--root', dir]);
    assert.match(
      stdout,
      / Asking NRI plugins 10-quick, 20-late \(RunPodSandbox\) \[CallPlugins\] was done: 10-quick agreed, 20-late unanswered: no word in 2 s\.\n/,
    );
  });

  test('a container that fails for what NRI plugins changed: which of them set and took away what', async () => {
    const adjusts: Readonly<Record<string, object>> = {
      setter: { env: ['A=1', '-B'], mounts: [{ destination: '/x', type: 'bind', source: '/nowhere', options: [] }] },
      hooker: { hooks: { prestart: [{ path: '/bin/first' }] } },
      another: { hooks: { prestart: [{ path: '/bin/second' }] } },
    };
    const node = await startNode({
      perform: {
        CallPlugins: async ({ hook, plugins }) => ({
          answers: plugins.map((plugin) => ({
            ...{ plugin: pluginName(plugin), durationNs: '1' },
            ...(hook === 'CreateContainer' ? { answer: { hook, adjust: adjusts[plugin.name] ?? {} } } : {}),
          })),
        }),
        CreateTask: async ({ containerId, podSandboxId }) => {
          if (containerId === podSandboxId) return task(10);
          throw new FailureError('RuntimeFailed', 'error mounting "/nowhere" to rootfs at "/x".');
        },
      },
    });
    for (const [index, name] of ['setter', 'hooker', 'another'].entries()) {
      const body = { id: `${index}0-${name}@1`, index: `${index}0`, name, hooks: ['CreateContainer'] as const };
      await node.engine.observe({ kind: 'NriNoted', note: { type: 'nri.plugin.registered', body } });
    }
    const { containerId } = await runContainer(node);
    const { dir } = await rootWith(owner, recordsOf(node));
    const { stdout } = await scribe(['why', containerId, '--root', dir]);
    const changed =
      '10-hooker set OciHooks; 20-another set OciHooks; 00-setter set Mounts /x, Env A and took away Env B';
    assert.ok(stdout.includes(`\n  plugins     ${changed}\n`), stdout);
    assert.ok(stdout.includes(` NRI plugins changed it: ${changed}.\n`), stdout);
    const history = await scribe(['history', '--plugin', 'another', '--root', dir]);
    assert.match(history.stdout, / container adjusted .* OciHooks by 10-hooker, OciHooks by 20-another, /);
    // As the runtime ends its sentence, and not once more.
    assert.match(stdout, / It exited with exit code 128 \(StartError\): error mounting .* at "\/x"\.\n/);
  });

  test('a container whose shim does not answer: that nobody knows whether it still runs', async () => {
    const node = await startNode({
      perform: {
        UpdateContainer: async () => {
          throw new FailureError('TimedOut', 'no word of the shim');
        },
        ReconnectShim: async () => {
          throw new FailureError('TimedOut', 'no word of the shim');
        },
      },
    });
    const { containerId, podSandboxId } = await runContainer(node);
    await node.ask({ method: 'UpdateContainerResources', containerId, resources: { cpuShares: '7' } });
    await node.advance(1);
    const { dir } = await rootWith(owner, recordsOf(node));
    const firstOf = async (id: string): Promise<string> => (await scribe(['why', id, '--root', dir])).stdout;
    for (const told of [await firstOf(containerId), await firstOf(podSandboxId)]) {
      assert.match(told, /^.* since .*, as far as is known: its shim does not answer\.\n/);
      assert.match(told, /\n {2}shim +process \d+ gave no answer, 1 time in a row; it is asked again by itself\n/);
    }
  });

  test('a container that is given up because its shim does not answer: that, and not that the daemon was down', async () => {
    const silent = async (): Promise<never> => {
      throw new FailureError('TimedOut', 'no word of the shim');
    };
    const node = await startNode({
      perform: { KillTask: silent, ReconnectShim: silent, DeleteTask: () => new Promise(() => undefined) },
    });
    const { containerId } = await runContainer(node);
    const stopped = node.ask({ method: 'StopContainer', containerId, timeoutSeconds: '0' });
    for (let second = 0; second < 30; second += 1) await node.advance(1000);
    await stopped;
    const { dir } = await rootWith(owner, recordsOf(node));
    const [line = ''] = (await scribe(['why', containerId, '--root', dir])).stdout.split('\n');
    assert.match(line, / is given up: its shim does not answer, so what may still run of it is killed\.$/);
  });

  test('who changed the limits of a container: a client, and an NRI plugin', async () => {
    const node = await startNode();
    const { containerId } = await runContainer(node);
    const change = (cpuShares: string, plugin?: string) =>
      node.ask({
        ...{ method: 'UpdateContainerResources', containerId, resources: { cpuShares } },
        ...(plugin === undefined ? {} : { plugin }),
      });
    await change('7');
    await change('8', '10-limits');
    const { dir } = await rootWith(owner, recordsOf(node));
    const { stdout } = await scribe(['why', containerId, '--root', dir]);
    assert.match(
      stdout,
      / kubelet \(.*\) called UpdateContainerResources \(record \d+\): its limits changed: cpuShares 7\.\n/,
    );
    assert.match(
      stdout,
      / NRI plugin 10-limits called UpdateContainerResources \(record \d+\): its limits changed: cpuShares 8\.\n/,
    );
  });

  test('what nobody knows, and a name that several bear, is said', async () => {
    const unknown = await scribe(['why', 'pod:nobody', '--root', root.dir]);
    assert.equal(unknown.exitStatus, 1);
    assert.match(unknown.stderr, /The journal knows nothing of "pod:nobody" up to record \d+\./);
    const both = await scribe(['why', 'web', '--at', '60', '--root', root.dir]);
    assert.match(both.stderr, /"web" could be any of these: pod:test\/web .*, pod:default\/web/);
    for (const nameless of [[], ['']]) {
      const none = await scribe(['why', '--root', root.dir, ...nameless]);
      assert.equal(none.exitStatus, 2);
      assert.match(none.stderr, /THING is missing: name a pod, .*\nscribe why --help describes the command/);
    }
  });
});
