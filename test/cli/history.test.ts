/** `scribe history` on a journal that the real engine wrote: what is shown, by which names, and what filters leave. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openReader } from '../../src/journal/open.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { image, rowsOf, startNs, type Story, tell } from './story.ts';
import { jsonLines, type Root, rootWith, scribe } from './support.ts';

interface Line extends Omit<JournalRecord, 'body' | 'atNs' | 'monoNs'> {
  readonly time: string;
  readonly at: string;
  readonly mono: string;
  readonly body: { readonly [key: string]: unknown };
  readonly object: { readonly kind: string; readonly id: string; readonly name?: string } | null;
}

describe('history', () => {
  const owner: Owner = cleanupAfterAll();
  let story: Story;
  let root: Root;

  before(async () => {
    story = await tell();
    root = await rootWith(owner, story.records, async (journal) => {
      const row = { method: 'ContainerStatus', durationNs: 12_000n, callerPid: 812, callerUid: 0 };
      journal.appendRead({ ...row, atNs: startNs + 3_500_000_000n, code: 0, subject: story.nginx });
      journal.appendRead({ ...row, atNs: startNs + 3_600_000_000n, code: 5, subject: 'feed' });
      journal.appendRead({ ...row, atNs: startNs + 900_000_000_000n, code: 0, subject: '', method: 'Status' });
    });
  });

  const history = async (...words: readonly string[]): Promise<string> => {
    const { exitStatus, stdout, stderr } = await scribe(['history', '--root', root.dir, ...words]);
    assert.equal(exitStatus, 0, stderr);
    return stdout;
  };
  const whats = async (...words: readonly string[]): Promise<string[]> =>
    rowsOf(await history(...words)).map(({ WHAT = '' }) => WHAT);
  const lines = async (...words: readonly string[]): Promise<Line[]> =>
    jsonLines<Line>(await history('--json', ...words));

  test('calls, exits and the life of the daemon, in the order in which they began', async () => {
    assert.deepEqual(await whats(), [
      'daemon started',
      'network configured',
      'PullImage',
      'RunPodSandbox',
      'CreateContainer',
      'StartContainer',
      'ExecSync',
      'RunPodSandbox',
      'CreateContainer',
      'StartContainer',
      'container exited',
      'container exited',
      'RemoveContainer',
      'RemovePodSandbox',
      'sandbox exited',
      'RunPodSandbox',
      'sandbox exited',
      'CreateContainer',
      'PortForward',
      'StopPodSandbox',
    ]);
  });

  test('a row says when, what, whom, who asked and how it ended', async () => {
    const rows = rowsOf(await history());
    const exec = rows.find(({ WHAT }) => WHAT === 'ExecSync');
    assert.match(exec?.['TIME'] ?? '', /^20\d\d-\d\d-\d\d \d\d:\d\d:05\.000[+-]\d\d:\d\d$/);
    assert.equal(exec?.['OBJECT'], `default/web nginx ${story.nginx.slice(0, 13)}`);
    assert.equal(exec['CALLER'], 'crictl pid 4711 uid 1000');
    assert.equal(exec['TOOK'], '0 µs');
    assert.equal(exec['OUTCOME'], 'exit 3 (cat /etc/hostname)');
    const [, exited] = rows.filter(({ WHAT }) => WHAT === 'container exited');
    assert.equal(exited?.['OUTCOME'], 'exit 137, Error');
    assert.equal(rows.at(-1)?.['OUTCOME'], 'no answer yet');
    assert.equal(rows.at(-2)?.['OUTCOME'], 'UNIMPLEMENTED: PortForward is not offered by this version of scribe.');
  });

  test('objects keep their names when they are gone', async () => {
    const rows = rowsOf(await history('--method', 'RemovePodSandbox'));
    assert.deepEqual(
      rows.map(({ OBJECT }) => OBJECT),
      [`default/web ${story.web.slice(0, 13)}`],
    );
  });

  test('what others wrote cannot steer the terminal', async () => {
    const text = await history();
    assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}/u);
    assert.match(text, /UNKNOWN: the bridge \\u\{1b\}\[31mburns/);
  });

  describe('filters', () => {
    const ofWeb = [
      ...['RunPodSandbox', 'CreateContainer', 'StartContainer', 'ExecSync'],
      ...['container exited', 'RemoveContainer', 'RemovePodSandbox', 'sandbox exited'],
    ];

    test('a pod by namespace and name, by its id, and by the beginning of it', async () => {
      assert.deepEqual(await whats('--pod', 'default/web'), ofWeb);
      assert.deepEqual(await whats('--pod', story.web), ofWeb);
      assert.deepEqual(await whats('--pod', story.web.slice(0, 64)), ofWeb);
    });

    test('a name that several pods bear is all of them', async () => {
      const both = await whats('--pod', 'web');
      assert.equal(both.filter((what) => what === 'RunPodSandbox').length, 2);
      assert.ok(both.includes('StopPodSandbox'));
    });

    test('a pod that never came to be is found by its name', async () => {
      const rows = rowsOf(await history('--pod', 'unlucky'));
      assert.deepEqual(
        rows.map(({ WHAT }) => WHAT),
        ['RunPodSandbox', 'sandbox exited'],
      );
      assert.match(rows[0]?.['OUTCOME'] ?? '', /^UNKNOWN: the bridge/);
    });

    test('a container that was refused is found with its pod', async () => {
      const rows = rowsOf(await history('--pod', 'test/web', '--method', 'createcontainer', '--failed'));
      assert.deepEqual(
        rows.map(({ OBJECT }) => OBJECT),
        [`test/web ${story.other.slice(0, 13)} second`],
      );
    });

    test('containers by name, of one pod when it is named too', async () => {
      const inBoth = await whats('--container', 'nginx');
      assert.equal(inBoth.filter((what) => what === 'container exited').length, 2);
      assert.deepEqual(await whats('--container', 'nginx', '--pod', 'test/web'), [
        'CreateContainer',
        'StartContainer',
        'container exited',
      ]);
      assert.deepEqual(await whats('--container', story.nginx), ofWeb.slice(1, -2));
    });

    test('images by reference, short or whole, and by id', async () => {
      const whole = await whats('--image', image);
      assert.deepEqual(whole, [
        'PullImage',
        ...['CreateContainer', 'StartContainer', 'ExecSync'],
        ...['CreateContainer', 'StartContainer', 'container exited'],
        ...['container exited', 'RemoveContainer'],
      ]);
      for (const name of ['a'.repeat(12), `sha256:${'a'.repeat(64)}`])
        assert.deepEqual(await whats('--image', name), whole, name);
    });

    test('methods in any case, and calls that are not offered by their own name', async () => {
      assert.deepEqual(await whats('--method', 'execSYNC'), ['ExecSync']);
      assert.deepEqual(await whats('--method', 'PortForward'), ['PortForward']);
    });

    test('several methods are any of them', async () => {
      const both = await whats('--method', 'PullImage', '--method', 'removePodSandbox');
      assert.deepEqual(both, ['PullImage', 'RemovePodSandbox']);
    });

    test('a method that there is not is an error that says what was meant', async () => {
      const { exitStatus, stdout, stderr } = await scribe(['history', '--root', root.dir, '--method', 'RunPodSandbx']);
      assert.deepEqual([exitStatus, stdout], [2, '']);
      assert.match(stderr, /--method RunPodSandbx: there is no such method; did you mean RunPodSandbox\?/);
    });

    test('a container that was refused is found by the image that it wanted', async () => {
      assert.deepEqual(await whats('--image', 'nowhere.test/none:1'), ['CreateContainer']);
    });

    test('callers, codes, commands and words', async () => {
      assert.deepEqual(await whats('--uid', '1000'), ['ExecSync']);
      assert.deepEqual(await whats('--executable', 'crictl'), ['ExecSync']);
      assert.deepEqual(await whats('--executable', 'kubelet', '--exec'), []);
      assert.deepEqual(await whats('--exec'), ['ExecSync']);
      assert.deepEqual(await whats('--code', 'unimplemented'), ['PortForward']);
      assert.deepEqual(await whats('--code', '12'), ['PortForward']);
      assert.deepEqual(await whats('--text', '/ETC/hostname'), ['ExecSync']);
      // As they are shown, though a record has neither a space nor a bare quotation mark there.
      assert.deepEqual(await whats('--text', 'cat /etc/hostname'), ['ExecSync']);
      assert.deepEqual(await whats('--text', 'image "nowhere.test/none:1" is not'), ['CreateContainer']);
      assert.deepEqual(await whats('--text', 'hostname cat'), []);
      assert.equal((await scribe(['history', '--root', root.dir, '--code', 'BAD'])).exitStatus, 2);
      assert.equal((await scribe(['history', '--root', root.dir, '--uid', 'root'])).exitStatus, 2);
    });

    test('failures: calls, commands, exits', async () => {
      assert.deepEqual(await whats('--failed'), [
        'ExecSync',
        'container exited',
        'RunPodSandbox',
        'CreateContainer',
        'PortForward',
      ]);
    });

    test('times: what began then, however it ended later, with names from before', async () => {
      const since = ['--since', '@1800000005', '--until', '@1800000006'];
      const rows = rowsOf(await history(...since));
      assert.deepEqual(
        rows.map(({ WHAT }) => WHAT),
        ['ExecSync', 'RunPodSandbox'],
      );
      assert.match(rows[0]?.['OBJECT'] ?? '', /^default\/web nginx /);
      assert.deepEqual(await whats(...since, '--pod', 'default/web'), ['ExecSync']);
      assert.deepEqual(await whats('--until', '@1800000001'), ['daemon started', 'network configured', 'PullImage']);
    });

    test('the newest so many', async () => {
      assert.deepEqual(await whats('--limit', '2'), ['PortForward', 'StopPodSandbox']);
      assert.deepEqual(await whats('-n', '1', '--method', 'RunPodSandbox', '--failed'), ['RunPodSandbox']);
      assert.deepEqual(await whats('--limit', '0'), []);
    });

    test('nothing that fits is said, and a name that nobody bears', async () => {
      const nothing = await scribe(['history', '--root', root.dir, '--method', 'RemoveImage']);
      assert.equal(nothing.exitStatus, 0);
      assert.match(nothing.stderr, /Nothing was recorded that fits/);
      const nobody = await scribe(['history', '--root', root.dir, '--container', 'x', '--pod', 'nobody/none']);
      assert.equal(nobody.exitStatus, 0);
      assert.equal(nobody.stderr, 'scribe: The journal knows of no container x in pod nobody/none.\n');
    });
  });

  describe('events', () => {
    test('stand beneath their call', async () => {
      const rows = rowsOf(await history('--events', '--pod', 'default/web', '--method', 'RunPodSandbox'));
      const [call, ...beneath] = rows.map(({ WHAT }) => WHAT ?? '');
      assert.equal(call, 'RunPodSandbox');
      assert.ok(beneath.length > 5);
      assert.ok(beneath.every((what) => what.startsWith('  ')));
      for (const what of ['  pod requested', '  begin', '  done', '  pod ready'])
        assert.ok(beneath.includes(what), what);
      assert.ok(rows.some(({ OUTCOME }) => OUTCOME === 'PreparePodSandbox, CreateNetns'));
    });

    test('every record is shown once', async () => {
      const seqs = (await lines('--events')).map(({ seq }) => seq);
      const all = story.records.map(({ seq }) => seq);
      assert.deepEqual(
        seqs.toSorted((a, b) => a - b).filter((seq) => seq <= all.length),
        all,
      );
    });
  });

  describe('read calls', () => {
    test('stand where they belong in time', async () => {
      const some = await whats('--reads', '--until', '@1800000004');
      assert.deepEqual(some.slice(-4), ['CreateContainer', 'ContainerStatus', 'ContainerStatus', 'StartContainer']);
      assert.equal((await whats('--reads')).at(-1), 'Status');
    });

    test('are about objects too', async () => {
      const rows = rowsOf(await history('--reads', '--pod', 'default/web'));
      const reads = rows.filter(({ WHAT }) => WHAT === 'ContainerStatus');
      assert.deepEqual(
        reads.map(({ OBJECT }) => OBJECT),
        [`default/web nginx ${story.nginx.slice(0, 13)}`],
      );
    });

    test('tell no program, which is said where one is asked for', async () => {
      for (const words of [['--reads'], ['--method', 'containerstatus']]) {
        const asked = ['history', '--root', root.dir, '--executable', 'crictl', ...words];
        const { exitStatus, stdout, stderr } = await scribe(asked);
        assert.equal(exitStatus, 0);
        assert.match(
          stderr,
          /^scribe: Of calls that only read the program is not recorded, .*; --uid chooses among them\.$/m,
        );
        assert.ok(rowsOf(stdout).every(({ WHAT }) => WHAT === 'ExecSync'));
      }
      const changing = await scribe(['history', '--root', root.dir, '--executable', 'crictl']);
      assert.equal(changing.stderr, '');
    });

    test('are shown without --reads when they are asked for by name', async () => {
      const rows = rowsOf(await history('--method', 'containerstatus', '--failed'));
      assert.deepEqual(
        rows.map(({ OUTCOME }) => OUTCOME),
        ['NOT_FOUND'],
      );
    });

    test('may be very many between two records', async (t) => {
      const count = 140_000;
      const { dir } = await rootWith(t, story.records, async (journal) => {
        const row = { durationNs: 1n, callerPid: 1, callerUid: 0, code: 0, subject: '', method: 'Version' };
        for (let index = 0; index < count; index += 1) {
          journal.appendRead({ ...row, atNs: startNs + 900_000_000_000n + BigInt(index) });
          // The writer takes full pages in between.
          if (index % 1500 === 0) await sleep(1);
        }
      });
      const { exitStatus, stdout, stderr } = await scribe(['history', '--root', dir, '--method', 'Version', '--json']);
      assert.equal(exitStatus, 0, stderr);
      assert.equal(stdout.match(/\n/g)?.length, count);
    });

    test('have columns of their own in JSON', async () => {
      const [read] = jsonLines<Record<string, unknown>>(await history('--json', '--method', 'Status'));
      assert.deepEqual(read, {
        read: true,
        time: '2027-01-15T08:15:00.000000000Z',
        at: '1800000900000000000',
        method: 'Status',
        code: 0,
        durationNs: '12000',
        callerPid: 812,
        callerUid: 0,
        subject: '',
      });
    });
  });

  describe('JSON', () => {
    test('has every column of a record as it was written, and its object', async () => {
      const [exited] = (await lines('--container', story.nginx)).filter(({ type }) => type === 'container.exited');
      const record = story.records.find(({ seq }) => seq === exited?.seq);
      assert.ok(record);
      const requested = story.records.find(
        ({ type, stream }) => type === 'container.requested' && stream === record.stream,
      );
      const { imageId } = JSON.parse(requested?.body ?? '{}') as { readonly imageId: string };
      const { atNs, monoNs, body, ...columns } = record;
      const reader = openReader(root.journalPath);
      const { bodyHash, hash } = reader.hashesOf(record.seq) ?? {};
      reader.close();
      const hashes = {
        bodyHash: Buffer.from(bodyHash ?? []).toString('hex'),
        hash: Buffer.from(hash ?? []).toString('hex'),
      };
      assert.match(hashes.hash, /^[0-9a-f]{64}$/);
      assert.match(hashes.bodyHash, /^[0-9a-f]{64}$/);
      assert.deepEqual(exited, {
        ...columns,
        ...hashes,
        time: exited?.time,
        at: String(atNs),
        mono: String(monoNs),
        body: JSON.parse(body) as unknown,
        object: {
          kind: 'container',
          id: story.nginx,
          name: 'nginx',
          attempt: 0,
          podSandboxId: story.web,
          imageId,
          pod: { name: 'web', namespace: 'default', uid: 'default-web', attempt: 0 },
        },
      });
      assert.equal(BigInt(Date.parse(exited.time)) * 1_000_000n, atNs);
    });

    test("has a call's records one after another, and an unfinished call's beginning", async () => {
      const all = await lines();
      const calls = all.filter(({ type }) => type.startsWith('call.'));
      for (const [index, line] of calls.entries()) {
        if (line.type === 'call.completed') assert.equal(calls[index - 1]?.seq, line.call);
      }
      const refused = calls.filter(({ object }) => object?.name === 'second');
      assert.deepEqual(
        refused.map(({ type, object }) => [type, object?.kind]),
        [
          ['call.received', 'container'],
          ['call.completed', 'container'],
        ],
      );
      assert.equal(calls.at(-1)?.type, 'call.received');
      assert.deepEqual(
        all.filter(({ type }) => !type.startsWith('call.')).map(({ type }) => type),
        [
          ...['daemon.started', 'network.configured', 'container.exited', 'container.exited'],
          ...['task.exited', 'task.exited'],
        ],
      );
    });
  });
});
