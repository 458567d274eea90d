/**
 * `scribe why` on failures of real parts, in one daemon: a command, a network, an image, a registry, an NRI plugin, a probe,
 * a timeout, a shim, a kill -9 and a reboot, of which the kernel's boot id and an end of all processes are staged. A full
 * disk is in full-disk.test.ts.
 */
import assert from 'node:assert/strict';
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { startScripted, toldIn } from '../adapters/nri/scripted-plugin.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { sweep } from '../support/daemon.ts';
import { stateOf } from '../support/journal.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { jsonLines } from '../cli/support.ts';
import { containerConfig, eventually, podConfig, runPod } from '../support/pods.ts';
import { startProcess } from '../support/process.ts';
import { type StagedBoot, stageBoot } from '../support/staged-boot.ts';
import { tempDir } from '../support/temp-dir.ts';

const timeout = 60_000;
const absent = busyboxName.replace('busybox', 'absent');

describe('why', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let dir: string;
  let staged: StagedBoot;

  before(async () => {
    dir = await tempDir(owner);
    staged = await stageBoot(owner, dir);
    node = await startNode(owner, {
      mountNamespace: staged.mountNamespace,
      config: `[nri]\nsocket = "${dir}/nri.sock"\nplugin_dir = "${dir}/plugins"\nconfig_dir = "${dir}/conf.d"\n`,
    });
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

  test('a registry that wants credentials, one that forbids, and one that is asked too often', {
    timeout,
  }, async () => {
    const path = join(dir, 'nginx.conf');
    await writeFile(
      path,
      `daemon off; master_process off; pid ${dir}/pid; error_log stderr notice; events {}
       http { access_log off; client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy;
         fastcgi_temp_path ${dir}/f; uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
         server { listen 127.0.0.1:5001; location / { auth_basic test; auth_basic_user_file /dev/null; }
           location /v2/forbidden { return 403; } location /v2/busy { add_header retry-after 3600 always; return 429; } } }`,
    );
    const nginx = await startProcess(owner, node.daemon.netns.inside(['nginx', '-e', 'stderr', '-c', path]));
    await nginx.until(/start worker|using the "/);
    const pulling = async (repository: string): Promise<string> => {
      const name = `127.0.0.1:5001/${repository}:1`;
      await assert.rejects(node.daemon.cri.image.pullImage({ image: { image: name } }));
      return whyIs(name);
    };
    const [locked, forbidden, busy] = await Promise.all(['locked', 'forbidden', 'busy'].map(pulling));
    const refused = /failed .* with PERMISSION_DENIED: the registry refused it: .*127\.0\.0\.1:5001/;
    for (const answer of [locked, forbidden]) assert.match(answer ?? '', refused);
    assert.match(locked ?? '', /wants credentials for locked and was given none\.$/);
    assert.match(forbidden ?? '', /answered 403 Forbidden\.$/);
    assert.match(
      busy ?? '',
      /the registry failed: Could not get 127\.0\.0\.1:5001\/busy:1: .*answered 429 Too Many Requests, and asks to be left alone for 3600 s\.$/,
    );
  });

  test('an NRI plugin that does not allow a container', { timeout }, async (t) => {
    const log = join(dir, 'strict');
    const acts = [
      { hook: 'CreateContainer', container: 'forbidden', veto: 'images of registry.example are not signed' },
    ];
    await startScripted(t, join(dir, 'nri.sock'), { log, acts }, { index: '10', name: 'policy' });
    await toldIn(t, log, (told) => told.some(({ hook }) => hook === 'Synchronize'));
    const container = { metadata: { name: 'forbidden', attempt: 0 } };
    await assert.rejects(runPod(node.daemon, 'vetoed', busyboxName, ['true'], { container }));
    assert.match(
      await whyIs('default/vetoed/forbidden'),
      /^Container forbidden of pod default\/vetoed .* was never made: NRI plugin "10-policy" refused CreateContainer of container [0-9a-f]{64}: images of registry\.example are not signed\.$/,
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

  test('a reboot', { timeout }, async () => {
    const { daemon } = node;
    await runPod(daemon, 'rebooted', busyboxName, ['sleep', '1000']);
    await daemon.kill();
    await sweep(daemon.dirs);
    await staged.reboot();
    await daemon.start();
    const of = { container: 'default/rebooted/main', pod: 'pod:default/rebooted' };
    assert.match(await whyIs(of.container), /^Container main of pod .* ended when the node was rebooted\.$/);
    assert.match(await whyIs(of.pod), /^Pod default\/rebooted .* was ended by a reboot of the node\.$/);
  });
});
