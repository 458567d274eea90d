/** The log keeper beside a daemon: its death is on record and in the logs, a log without room is told, and one that can never be fails the start. */
import assert from 'node:assert/strict';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { ContainerState } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { recordsOf } from '../support/journal.ts';
import { processes } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, podConfig, removePod, statusOf } from '../support/pods.ts';
import { mountSmallDisk } from '../support/small-disk.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('the log keeper', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let podSandboxId: string;
  let logDirectory: string;
  let sandboxConfig: ReturnType<typeof podConfig>;

  before(async () => {
    node = await startNode(owner);
    logDirectory = await tempDir(owner);
    sandboxConfig = podConfig(node.daemon, 'logging', { logDirectory });
    ({ podSandboxId } = await node.daemon.cri.runtime.runPodSandbox({ config: sandboxConfig }));
  });

  const create = async (name: string, logPath: string): Promise<string> => {
    const script = ['sh', '-c', 'while :; do echo tick; sleep 0.1; done'];
    const config = containerConfig(name, busyboxName, script, { logPath });
    const reply = await node.daemon.cri.runtime.createContainer({ podSandboxId, config, sandboxConfig });
    return reply.containerId;
  };

  const keepers = async (): Promise<number[]> =>
    (await processes())
      .filter(({ commandLine }) => commandLine.includes(join(node.daemon.dirs.state, 'log-keeper')))
      .map(({ pid }) => pid);

  test('that is killed is on record, with the containers whose logs may lack lines, and so do these say', async () => {
    const { daemon } = node;
    const containerId = await create('ticking', 'ticking.log');
    await daemon.cri.runtime.startContainer({ containerId });
    const { logPath } = await statusOf(daemon, containerId);
    const log = () => readFile(logPath, 'utf8').catch(() => '');
    await eventually('the first line', async () => (await log()).includes('tick'), 30_000);
    const [keeper = 0, ...others] = await keepers();
    assert.deepEqual(others, []);
    process.kill(keeper, 'SIGKILL');
    await eventually('the note', async () => (await log()).includes('scribe: the log keeper was killed'), 30_000);
    const told = await eventually(
      'the records',
      async () => {
        const found = (await recordsOf(daemon)).filter(({ type }) => type.startsWith('logkeeper.'));
        return found.length === 3 && found;
      },
      30_000,
    );
    assert.deepEqual(
      told.map(({ type }) => type),
      ['logkeeper.started', 'logkeeper.ended', 'logkeeper.started'],
    );
    const [first, ended, second] = told.map(({ body }) => body as Record<string, unknown>);
    assert.deepEqual([first?.['pid'], first?.['doubtful']], [keeper, []]);
    assert.deepEqual([ended?.['pid'], ended?.['reason']], [keeper, 'it was killed, or ended by an error']);
    assert.deepEqual(second?.['doubtful'], [containerId]);
    const lengthBefore = (await log()).length;
    await eventually('more lines', async () => (await log()).length > lengthBefore, 30_000);
  });

  test('has no room for a log: doctor says so as long as it is so', async (t) => {
    const { daemon } = node;
    const disk = join(logDirectory, 'small');
    await mkdir(disk);
    await mountSmallDisk(t, disk, 1);
    await writeFile(join(disk, 'others'), Buffer.alloc(4 * 1024 * 1024)).catch(() => undefined);
    const containerId = await create('crowded', 'small/crowded.log');
    await daemon.cri.runtime.startContainer({ containerId });
    const told = async (): Promise<string> => {
      const { root, state } = daemon.dirs;
      return (await daemon.scribe('doctor', '--root', root, '--state', state)).stdout;
    };
    const full = new RegExp(
      `problem +daemon +The log of container ${containerId}, ${disk}/crowded\\.log, can not be written \\(ENOSPC: .*\\): [1-9]\\d* lines are lost`,
    );
    await eventually('doctor says so', async () => full.test(await told()), 30_000);
    await rm(join(disk, 'others'));
    await eventually('doctor says so no more', async () => !full.test(await told()), 30_000);
    await daemon.cri.runtime.removeContainer({ containerId });
  });

  test('cannot write a log of 300 characters, so that the start fails and says why', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await create('nameless', `${'x'.repeat(300)}.log`);
    await assert.rejects(
      runtime.startContainer({ containerId }),
      withCode(GrpcCode.UNKNOWN, /log of container .* cannot be written: .*ENAMETOOLONG/),
    );
    const { state, reason } = await statusOf(node.daemon, containerId);
    assert.deepEqual([state, reason], [ContainerState.CONTAINER_EXITED, 'StartError']);
    await removePod(node.daemon, podSandboxId);
  });
});
