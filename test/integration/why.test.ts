/** `scribe why` on failures of real parts, in one daemon: a command, a network, an image, a probe, a timeout, a shim, a kill -9. */
import assert from 'node:assert/strict';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { stateOf } from '../support/journal.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { jsonLines } from '../cli/support.ts';
import { containerConfig, eventually, podConfig, runPod } from '../support/pods.ts';

const timeout = 60_000;
const absent = busyboxName.replace('busybox', 'absent');

describe('why', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;

  before(async () => {
    node = await startNode(owner);
  });

  /** The first line of the answer. */
  const whyIs = async (thing: string): Promise<string> => {
    const { stdout, stderr } = await node.daemon.scribe('why', thing, '--root', node.daemon.dirs.root);
    return (stdout === '' ? stderr : stdout).split('\n')[0] ?? '';
  };

  test('a command that is not there, and a network that cannot be made', { timeout }, async () => {
    const { daemon } = node;
    await assert.rejects(runPod(daemon, 'misspelt', busyboxName, ['no-such-command']));
    const noCommand =
      /^Container main of pod default\/misspelt .* could not be started: .*"no-such-command": executable file not/;
    assert.match(await whyIs('default/misspelt/main'), noCommand);

    const [name = ''] = await readdir(daemon.cniConfDir);
    const path = join(daemon.cniConfDir, name);
    const whole = await readFile(path, 'utf8');
    await writeFile(path, whole.replace(/"type":\s*"bridge"/, '"type":"no-such-plugin"'));
    const networkHas = (plugin: string): Promise<boolean> =>
      eventually(`${plugin} is in force`, async () =>
        JSON.stringify(stateOf(daemon).network.confList?.plugins ?? []).includes(`"type":"${plugin}"`),
      );
    await networkHas('no-such-plugin');
    await assert.rejects(daemon.cri.runtime.runPodSandbox({ config: podConfig(daemon, 'unconnected') }));
    const noNetwork =
      /^Pod default\/unconnected .* was never made: its network could not be made by CNI: .*no-such-plugin/;
    assert.match(await whyIs('pod:default/unconnected'), noNetwork);
    await writeFile(path, whole);
    await networkHas('bridge');
  });

  test('an image that its registry does not have, and a container that needs it', { timeout }, async () => {
    const { runtime, image } = node.daemon.cri;
    await assert.rejects(image.pullImage({ image: { image: absent } }));
    assert.match(await whyIs(absent), /^PullImage of image \S*absent\S* .* failed .*: the registry does not have it: /);
    const sandboxConfig = podConfig(node.daemon, 'imageless');
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    const config = containerConfig('lacking', absent, ['true']);
    await assert.rejects(runtime.createContainer({ podSandboxId, config, sandboxConfig }));
    assert.match(
      await whyIs('lacking'),
      /^CreateContainer of container lacking in pod default\/imageless .*absent.* is not on this node/,
    );
  });

  test('a probe that fails, a command that takes too long, and a shim that is killed', { timeout }, async () => {
    const { runtime } = node.daemon.cri;
    const { containerId, podSandboxId } = await runPod(node.daemon, 'probed', busyboxName, ['sleep', '1000']);
    const cmd = ['cat', '/healthy'];
    for (let probe = 0; probe < 3; probe += 1) await runtime.execSync({ containerId, cmd, timeout: '5' });
    await runtime.stopContainer({ containerId, timeout: '0' });
    assert.match(
      await whyIs(`container:${containerId}`),
      /was stopped by .* after its probe "cat \/healthy" failed 3 times in a row; SIGKILL ended it/,
    );

    const config = containerConfig('slow', busyboxName, ['sleep', '1000']);
    const sandboxConfig = podConfig(node.daemon, 'probed');
    const { containerId: slow } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await runtime.startContainer({ containerId: slow });
    await assert.rejects(runtime.execSync({ containerId: slow, cmd: ['sleep', '50'], timeout: '1' }));
    const words = ['--method', 'ExecSync', '--failed', '--json', '--root', node.daemon.dirs.root];
    const { stdout } = await node.daemon.scribe('history', ...words);
    const records = jsonLines<{ readonly seq: number; readonly type: string }>(stdout);
    const call = records.findLast(({ type }) => type === 'call.received');
    assert.match(await whyIs(String(call?.seq)), /ran longer than its timeout of 1 s, and "sleep 50" was killed\.$/);

    process.kill(stateOf(node.daemon).sandboxes.get(podSandboxId)?.shim?.pid ?? 0, 'SIGKILL');
    const lost = /was lost: its shim \(pid \d+\) was killed or died, so nobody knows its exit code\.$/;
    await eventually('why names the shim', async () => lost.test(await whyIs(`container:${slow}`)));
  });

  test('a daemon that is killed while it makes a pod', { timeout }, async () => {
    const { daemon } = node;
    // One that was ready already when the signal came tells nothing: another one is made.
    for (let tries = 0; tries < 5; tries += 1) {
      const name = `caught-${tries}`;
      const running = daemon.cri.runtime.runPodSandbox({ config: podConfig(daemon, name) }).catch(() => null);
      const isBegun = async (): Promise<boolean> =>
        [...stateOf(daemon).sandboxes.values()].some(({ config }) => config.metadata?.name === name);
      await eventually('the pod is begun', isBegun);
      await daemon.kill();
      const made = await running;
      await daemon.start();
      if (made !== null) continue;
      const undone =
        /was never made: the daemon was killed in the middle of .*, and its next start undid what was begun\.$/;
      await eventually('why names the daemon', async () => undone.test(await whyIs(`pod:default/${name}`)));
      return;
    }
    assert.fail('the daemon was always too quick');
  });
});
