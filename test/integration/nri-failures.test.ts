/**
 * NRI plugins that fail, on real pods: in each hook, with what is no NRI, with more than anybody asked for. Whatever they do,
 * pods live, calls about others are answered meanwhile, and the daemon stays.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { type Act, type Script, startScripted, toldIn } from '../adapters/nri/scripted-plugin.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { recordsOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, podConfig, removePod, runPod } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

/** All that the life of a pod has; ValidateContainerAdjustment is asked of validators, and fails closed. */
const HOOKS = [
  'RunPodSandbox',
  'UpdatePodSandbox',
  'PostUpdatePodSandbox',
  'CreateContainer',
  'PostCreateContainer',
  'StartContainer',
  'PostStartContainer',
  'UpdateContainer',
  'PostUpdateContainer',
  'StopContainer',
  'RemoveContainer',
  'StopPodSandbox',
  'RemovePodSandbox',
] as const;

const MS = 1_000_000n;
/** Of a plugin that hangs; and of one that hangs while others are served. */
const SHORT_MS = 200;
const LONG_MS = 3_000;

describe('NRI plugins that fail', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let dir: string;
  let socket: string;

  before(async () => {
    dir = await tempDir(owner);
    socket = join(dir, 'nri.sock');
    const timeouts = `[nri.plugins.hangs]\nrequest_timeout = "${SHORT_MS}ms"\n[nri.plugins.sleeps]\nrequest_timeout = "${LONG_MS}ms"\n`;
    node = await startNode(owner, {
      config: `[nri]\nenable = true\nregistration_timeout = "2s"\nsocket = "${socket}"\nplugin_dir = "${dir}/plugins"\n${timeouts}`,
    });
  });

  const connect = async (ends: Owner, index: string, name: string, script: Script): Promise<string> => {
    const log = join(dir, `${index}-${name}`);
    await startScripted(ends, socket, { ...script, log }, { index, name });
    await toldIn(ends, log, (told) => told.some(({ hook }) => hook === 'Synchronize'));
    return log;
  };
  /** One plugin for each hook, which fails in it. */
  const inEachHook = (ends: Owner, name: string, act: Omit<Act, 'hook'>): Promise<unknown> =>
    Promise.all(
      HOOKS.map((hook, at) => connect(ends, String(10 + at), name, { events: [hook], acts: [{ hook, ...act }] })),
    );

  /** From its making to its removal, with all that a client can ask of it. */
  const wholeLife = async (name: string): Promise<void> => {
    const { runtime } = node.daemon.cri;
    const { podSandboxId, containerId } = await runPod(node.daemon, name, busyboxName, ['sleep', '1000']);
    await runtime.updatePodSandboxResources({ podSandboxId, resources: { cpuShares: '512' } });
    await runtime.updateContainerResources({ containerId, linux: { cpuShares: '256' } });
    await runtime.stopContainer({ containerId, timeout: '0' });
    await runtime.removeContainer({ containerId });
    await removePod(node.daemon, podSandboxId);
  };

  interface Plugin {
    readonly name: string;
    readonly state: string;
    readonly deadlinesMissed: string;
    readonly failures: string;
  }
  const plugins = async (name: string): Promise<readonly Plugin[]> => {
    const { stdout } = await node.daemon.scribe('nri', '--socket', node.daemon.socket, '--json');
    const all = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Plugin]));
    return all.filter((plugin) => plugin.name === name);
  };
  /** What became of each hook, as it was recorded. */
  const failuresOf = async (name: string): Promise<readonly (readonly [hook: string, kind: string])[]> => {
    const records = await recordsOf(node.daemon);
    return records.flatMap(({ type, body }) => {
      if (type !== 'effect.ended') return [];
      const { result } = body as { result?: { answers?: { plugin: string; failure?: { kind: string } }[] } };
      return (result?.answers ?? []).flatMap(({ plugin, failure }) => {
        const [index = '', named] = plugin.split('-');
        return named === name && failure !== undefined
          ? [[HOOKS[Number(index) - 10] ?? '', failure.kind] as const]
          : [];
      });
    });
  };
  const inOrder = (failures: readonly (readonly [string, string])[]): readonly string[] =>
    failures.map(([hook, kind]) => `${hook} ${kind}`).toSorted();

  test('a crash in each hook is one plugin less, and the pod lives its whole life', async (t) => {
    await inEachHook(t, 'crashes', { crash: true });
    await wholeLife('crashes');
    assert.deepEqual(inOrder(await failuresOf('crashes')), HOOKS.map((hook) => `${hook} closed`).toSorted());
    assert.deepEqual(await plugins('crashes'), []);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });

  test('a plugin that hangs in each hook is left out there, and stays', async (t) => {
    await inEachHook(t, 'hangs', { hang: true, times: 1 });
    await wholeLife('hangs');
    assert.deepEqual(inOrder(await failuresOf('hangs')), HOOKS.map((hook) => `${hook} unanswered`).toSorted());
    const left = await plugins('hangs');
    assert.deepEqual(
      left.map(({ state, deadlinesMissed }) => [state, deadlinesMissed]),
      HOOKS.map(() => ['active', '1']),
    );
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });

  test('while one hangs, calls that are not about its pod are answered', async (t) => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const { containerId } = await runPod(daemon, 'other', busyboxName, ['sleep', '1000'], {}, t);
    const log = await connect(t, '30', 'sleeps', {
      events: ['CreateContainer'],
      acts: [{ hook: 'CreateContainer', hang: true, times: 1 }],
    });
    const sandboxConfig = podConfig(daemon, 'held');
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    const sinceNs = process.hrtime.bigint();
    const config = containerConfig('main', busyboxName, ['true']);
    const held = runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await toldIn(t, log, (told) => told.some(({ hook }) => hook === 'CreateContainer'));
    await runtime.listContainers();
    await runtime.containerStatus({ containerId });
    await runtime.execSync({ containerId, cmd: ['true'], timeout: '10' });
    await runtime.updateContainerResources({ containerId, linux: { cpuShares: '200' } });
    await runtime.stopContainer({ containerId, timeout: '0' });
    const othersNs = process.hrtime.bigint() - sinceNs;
    await held;
    const heldNs = process.hrtime.bigint() - sinceNs;
    t.diagnostic(`calls about another pod: ${othersNs / MS} ms; the creation: ${heldNs / MS} ms`);
    assert.ok(heldNs >= BigInt(LONG_MS) * MS, 'the creation was not held');
    assert.ok(othersNs < heldNs, 'the others had to wait for it');
    await removePod(daemon, podSandboxId);
  });

  test('what is no NRI, or far too large, ends the connection that it comes over', async (t) => {
    const log = await connect(t, '40', 'beside', {});
    const header = (connId: number, bytes: number): Buffer => {
      const frame = Buffer.alloc(8);
      frame.writeUInt32BE(connId, 0);
      frame.writeUInt32BE(bytes, 4);
      return frame;
    };
    const sent: readonly Buffer[] = [
      randomBytes(100_000),
      header(1, 0xffff_ffff),
      Buffer.concat([header(2, 1_000_000), randomBytes(1_000_000)]),
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      Buffer.alloc(0),
    ];
    await Promise.all(
      sent.map(
        (bytes) =>
          new Promise<void>((closed) => {
            const stranger = connectSocket(socket);
            stranger.once('error', () => undefined).once('close', () => closed());
            stranger.resume().write(bytes, () => bytes.length === 0 && stranger.destroy());
          }),
      ),
    );
    await wholeLife('garbage');
    await toldIn(t, log, (told) => told.some(({ hook }) => hook === 'RemovePodSandbox'));
  });

  test('a plugin that floods updates, and one with an answer of 3.5 MB, hold nobody up', async (t) => {
    const { daemon } = node;
    const { containerId } = await runPod(daemon, 'flooded', busyboxName, ['sleep', '1000'], {}, t);
    const update = [{ containerId: 'nobody-knows-it', linux: { resources: { cpu: { shares: { value: '300' } } } } }];
    const log = await connect(t, '50', 'floods', {
      acts: [
        // Once: a second flood would have the large answer come too late on a busy machine, and nobody would see it.
        { hook: 'RunPodSandbox', times: 1, ask: { update, times: 1_000 } },
        { hook: 'CreateContainer', padBytes: 3_500_000 },
      ],
    });
    const { podSandboxId } = await daemon.cri.runtime.runPodSandbox({ config: podConfig(daemon, 'beside') });
    await daemon.cri.runtime.execSync({ containerId, cmd: ['true'], timeout: '10' });
    await daemon.cri.runtime.stopPodSandbox({ podSandboxId });
    // Some are taken, the others refused: each is answered.
    const told = await toldIn(t, log, (all) => all.filter(({ hook }) => hook === 'UpdateContainers').length === 1_000);
    const taken = told.filter(({ hook, error }) => hook === 'UpdateContainers' && error === undefined);
    assert.ok(taken.length > 0);
    t.diagnostic(`${taken.length} of 1000 updates were taken`);
    await daemon.cri.runtime.removePodSandbox({ podSandboxId });
    await assert.rejects(
      runPod(daemon, 'large', busyboxName, ['sleep', '1000'], {}, t),
      /"50-floods" sent an answer to CreateContainer with adjust\.annotations.*3500000 characters/,
    );
    assert.equal((await plugins('floods'))[0]?.state, 'active');
  });
});
