/** `scribe why` of containers that ended: what led to a stop, what only came before it, and what the kernel did. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Caller } from '../../src/domain/model/records.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { exitOf, idOf, podConfig, runContainer } from '../engine/rig.ts';
import { kubelet, type Node, recordsOf, rootWith, scribe, startNode } from './support.ts';

const crictl: Caller = { ...kubelet, pid: 900, executable: '/usr/bin/crictl' };
const succeeded = { exitStatus: 0, timedOut: false, stdoutBytes: 0, stderrBytes: 0 };
const failed = { ...succeeded, exitStatus: 1 };

interface Running {
  readonly node: Node;
  readonly podSandboxId: string;
  readonly containerId: string;
  /** As kubelet has commands run: probes within a time, hooks without. */
  readonly probe: (command: string, caller?: Caller) => Promise<unknown>;
  readonly hook: (command: string) => Promise<unknown>;
  readonly stop: (caller?: Caller) => Promise<unknown>;
  readonly exits: (exitStatus: number, oomKills?: number) => Promise<void>;
}

describe('why of a container that ended', () => {
  const owner = cleanupAfterAll();

  /** Commands whose first word is "good" succeed, "slow" ones end when the test says so, and others fail. */
  const running = async (endOfSlow: Promise<typeof failed> = Promise.resolve(failed)): Promise<Running> => {
    const node = await startNode({
      perform: {
        RunExec: async ({ args: [word] }) => (word === 'good' ? succeeded : word === 'slow' ? endOfSlow : failed),
      },
    });
    const { podSandboxId, containerId } = await runContainer(node);
    const run = async (command: string, timeoutSeconds: string, caller = kubelet): Promise<unknown> => {
      await node.advance(1000);
      return node.ask({ method: 'ExecSync', containerId, cmd: command.split(' '), timeoutSeconds }, caller);
    };
    return {
      node,
      podSandboxId,
      containerId,
      probe: (command, caller) => run(command, '1', caller),
      hook: (command) => run(command, '0'),
      stop: (caller = kubelet) => node.ask({ method: 'StopContainer', containerId, timeoutSeconds: '30' }, caller),
      exits: async (exitStatus, oomKills = 0) => {
        const { exit, ...told } = exitOf(podSandboxId, containerId, exitStatus);
        const exitedAtNs = String(node.contents.rows.at(-1)?.record?.atNs ?? 0n);
        await node.engine.observe({ ...told, exit: { ...exit, exitedAtNs, oomKills } });
        await node.advance(10);
      },
    };
  };

  const firstLine = async ({ node, containerId }: Running): Promise<string> => {
    const { dir } = await rootWith(owner, recordsOf(node));
    const { stdout, stderr } = await scribe(['why', containerId, '--root', dir]);
    return stdout.split('\n')[0] || stderr;
  };

  test('a hook that failed is none of its probes', async () => {
    const one = await running();
    await one.hook('bad hook');
    void one.stop();
    await one.node.settle();
    await one.exits(143);
    assert.match(
      await firstLine(one),
      / was stopped by kubelet \(.*\) after its hook "bad hook" failed; SIGTERM ended /,
    );
  });

  test('a probe that failed counts behind a hook that ran before the stop, and behind another that succeeds', async () => {
    const one = await running();
    for (let time = 0; time < 12; time += 1) {
      await one.probe('good readiness');
      await one.probe('bad liveness');
    }
    await one.probe('good readiness');
    await one.hook('bad hook');
    void one.stop();
    await one.node.settle();
    await one.exits(143);
    assert.match(await firstLine(one), / after its probe "bad liveness" failed 12 times in a row; SIGTERM /);
  });

  test('a probe that failed more often than is looked at: that, and no number that is none', async () => {
    const one = await running();
    for (let time = 0; time < 110; time += 1) await one.probe('bad liveness');
    void one.stop();
    await one.node.settle();
    await one.exits(143);
    assert.match(await firstLine(one), / after its probe "bad liveness" failed at least 100 times in a row; SIGTERM /);
  });

  test('what somebody ran by hand and then stopped by hand is no probe', async () => {
    const one = await running();
    await one.probe('bad look', crictl);
    void one.stop({ ...crictl, pid: 901 });
    await one.node.settle();
    await one.exits(143);
    assert.match(await firstLine(one), / was stopped by crictl \(pid 901, uid 0\); SIGTERM ended /);
  });

  test('what ended with the container, and what others ran in it, had not failed before', async () => {
    let end: (how: typeof failed) => void = () => undefined;
    const slow = new Promise<typeof failed>((resolve) => (end = resolve));
    const one = await running(slow);
    await one.probe('bad look', crictl);
    const hook = one.hook('slow hook');
    await one.node.advance(2000);
    void one.stop();
    await one.node.settle();
    end({ ...failed, exitStatus: 137 });
    await hook;
    await one.exits(143);
    assert.match(await firstLine(one), / was stopped by kubelet \(pid 812, uid 0\); SIGTERM ended it/);
  });

  test('its pod was stopped after it, while a probe kept failing', async () => {
    const one = await running();
    for (let time = 0; time < 3; time += 1) await one.probe('bad readiness');
    void one.stop();
    await one.node.advance(500);
    await one.exits(143);
    void one.node.ask({ method: 'StopPodSandbox', podSandboxId: one.podSandboxId });
    await one.node.settle();
    assert.match(
      await firstLine(one),
      / was stopped by kubelet \(pid 812, uid 0\), and then its pod, after its probe "bad readiness" failed 3 times in a row; SIGTERM ended it/,
    );
  });

  test('a signal of others ended it while it was being stopped', async () => {
    const one = await running();
    void one.stop();
    await one.node.advance(500);
    await one.exits(137);
    assert.match(
      await firstLine(one),
      /; it had SIGTERM, and SIGKILL, which scribe did not send, ended it after 500 ms: exit code 137, SIGKILL\.$/,
    );
  });

  test('how the one before it ended, in another sandbox of the pod too', async () => {
    const { node, exits } = await running();
    await exits(7);
    const config = { metadata: { ...podConfig('pod').metadata, attempt: 1 } };
    const podSandboxId = idOf(await node.ask({ method: 'RunPodSandbox', config, runtimeHandler: '' }));
    const again = { metadata: { name: 'c', attempt: 1 }, image: { image: 'registry.test/app:1' } };
    const containerId = idOf(await node.ask({ method: 'CreateContainer', podSandboxId, config: again }));
    const { dir } = await rootWith(owner, recordsOf(node));
    const { stdout } = await scribe(['why', containerId, '--root', dir]);
    assert.match(stdout, /\n {2}restarts +1; the one before, \w+, ended .* ago: exit code 7 \(Error\)\n/);
  });

  test('the kernel killed a process of it, and it went on: how it ended, and that', async () => {
    const itself = await running();
    await itself.node.engine.observe({ kind: 'TaskOomed', containerId: itself.containerId });
    await itself.exits(11, 1);
    const kernel = '; the kernel had killed a process of it, out of memory: it has no limit of its own\\.$';
    assert.match(await firstLine(itself), new RegExp(` failed by itself: exit code 11${kernel}`));

    const stopped = await running();
    await stopped.node.engine.observe({ kind: 'TaskOomed', containerId: stopped.containerId });
    void stopped.stop();
    await stopped.node.settle();
    await stopped.exits(143, 1);
    assert.match(await firstLine(stopped), new RegExp(` was stopped by kubelet .*: exit code 143, SIGTERM${kernel}`));
  });
});
