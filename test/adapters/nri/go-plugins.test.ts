/** Real plugins in Go, on containerd/nri's own stub: messages of any size, each hook, each way to fail in each hook. */
import assert from 'node:assert/strict';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { before, describe, it, type TestContext } from 'node:test';
import type { AnswerOf, NriAnswer, NriHook, NriPlugin, RequestOf } from '../../../src/adapters/nri/plugins.ts';
import {
  Container,
  CreateContainerRequest,
  PodSandbox,
  type RunPodSandboxRequest,
  UpdateContainerRequest,
  ValidateContainerAdjustmentRequest,
} from '../../../src/wire/nri/api.ts';
import { goProgram } from '../../support/go-program.ts';
import { requireRoot } from '../../support/netns.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { startTested, type TestedOptions, type TestedPlugins } from './adaptation.ts';
import { type Act, type Script, startScripted, toldIn } from './scripted-plugin.ts';

const pod = PodSandbox.fromPartial({ id: 'p', name: 'pod', annotations: { a: 'b' } });
const container = Container.fromPartial({ id: 'c', podSandboxId: 'p', name: 'container' });
const ofPod: RunPodSandboxRequest = { pod };
const ofContainer: CreateContainerRequest = { pod, container };

const requests: { readonly [H in NriHook]: RequestOf<H> } = {
  RunPodSandbox: ofPod,
  UpdatePodSandbox: { pod, overheadLinuxResources: undefined, linuxResources: undefined },
  PostUpdatePodSandbox: ofPod,
  StopPodSandbox: ofPod,
  RemovePodSandbox: ofPod,
  CreateContainer: ofContainer,
  PostCreateContainer: ofContainer,
  StartContainer: ofContainer,
  PostStartContainer: ofContainer,
  UpdateContainer: UpdateContainerRequest.fromPartial(ofContainer),
  PostUpdateContainer: ofContainer,
  StopContainer: ofContainer,
  RemoveContainer: ofContainer,
  ValidateContainerAdjustment: ValidateContainerAdjustmentRequest.fromPartial(ofContainer),
};
const hooks = Object.keys(requests) as NriHook[];

interface Scripted {
  readonly nri: TestedPlugins;
  readonly plugin: NriPlugin;
  readonly ask: <H extends NriHook>(hook: H) => Promise<NriAnswer<H>>;
}

const scripted = async (t: TestContext, script: Script, tested: TestedOptions = {}): Promise<Scripted> => {
  const nri = await startTested(t, tested);
  await startScripted(t, nri.settings.socketPath, script);
  const plugin = await nri.registered('scripted');
  assert.ok((await nri.synchronize(plugin.id, [], [])).ok);
  return { nri, plugin, ask: (hook) => nri.ask(plugin.id, hook, requests[hook]) };
};

const inEachHook = (act: Omit<Act, 'hook'>): readonly Act[] => hooks.map((hook) => ({ hook, ...act }));

const answerOf = <H extends NriHook>(answer: NriAnswer<H>): AnswerOf<H> => {
  assert.ok(
    answer.ok,
    JSON.stringify(answer, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
  );
  return answer.answer;
};

before(requireRoot);

describe('plugins in Go', { timeout: 120_000 }, () => {
  it('hear of each hook what it is about, in order', async (t) => {
    const log = join(await tempDir(t), 'log');
    const { ask, nri } = await scripted(t, { log });
    for (const hook of hooks) answerOf(await ask(hook));
    const told = await toldIn(t, log, (lines) => lines.length === hooks.length + 2);
    assert.deepEqual(
      told.map(({ hook }) => hook),
      ['Configure', 'Synchronize', ...hooks],
    );
    assert.deepEqual(told[2]?.['pod'], { id: 'p', name: 'pod', annotations: { a: 'b' } });
    assert.deepEqual(told.find(({ hook }) => hook === 'StartContainer')?.['container'], {
      id: 'c',
      podSandboxId: 'p',
      name: 'container',
    });
    for (let n = 0; n < 200; n += 1) await ask('CreateContainer');
    const latency = nri.status()[0]?.latencies.find(({ asked }) => asked === 'CreateContainer');
    assert.equal(latency?.answers, 201);
    t.diagnostic(`CreateContainer: p50 ${Number(latency.p50Ns) / 1e6} ms, p99 ${Number(latency.p99Ns) / 1e6} ms`);
  });

  it('adjust, update and evict', async (t) => {
    const { ask } = await scripted(t, {
      acts: [
        {
          hook: 'CreateContainer',
          container: 'container',
          adjust: { env: [{ key: 'A', value: 'b' }], linux: { oomScoreAdj: { value: '7' } } },
          update: [{ containerId: 'other', ignoreFailure: true }],
          evict: [{ containerId: 'third', reason: 'in the way' }],
        },
        { hook: 'UpdateContainer', update: [{ containerId: 'c', linux: { resources: { cpu: { cpus: '0' } } } }] },
        { hook: 'ValidateContainerAdjustment', veto: 'not this one' },
      ],
    });
    const { adjust, update, evict } = answerOf(await ask('CreateContainer'));
    assert.deepEqual(adjust?.env, [{ key: 'A', value: 'b' }]);
    assert.deepEqual(adjust.linux?.oomScoreAdj, { value: '7' });
    assert.deepEqual([update[0]?.containerId, update[0]?.ignoreFailure], ['other', true]);
    assert.deepEqual(evict, [{ containerId: 'third', reason: 'in the way' }]);
    assert.equal(answerOf(await ask('UpdateContainer')).update[0]?.linux?.resources?.cpu?.cpus, '0');
    const validated = answerOf(await ask('ValidateContainerAdjustment'));
    assert.deepEqual(validated, { reject: true, reason: 'not this one' });
  });

  it('take and give messages of any size', async (t) => {
    for (const bytes of [4_000, 4_096, 60_000, 3_500_000]) {
      const { nri, plugin } = await scripted(t, { acts: [{ hook: 'CreateContainer', padBytes: bytes }] });
      const request = CreateContainerRequest.fromPartial({
        container: { ...container, env: [`A=${'x'.repeat(bytes)}`] },
      });
      for (let n = 0; n < 3; n += 1) {
        const { adjust } = answerOf(await nri.ask(plugin.id, 'CreateContainer', request));
        assert.equal(adjust?.annotations['padding']?.length, bytes);
      }
    }
  });

  it('are told of 2,000 pods and containers without holding the loop up', async (t) => {
    const nri = await startTested(t);
    await startScripted(t, nri.settings.socketPath, {
      acts: [{ hook: 'Synchronize', update: [{ containerId: 'container-1' }] }],
    });
    const { id } = await nri.registered('scripted');
    const pods = Array.from({ length: 2_000 }, (_, n) => PodSandbox.fromPartial({ ...pod, id: `pod-${n}` }));
    const env = Array.from({ length: 40 }, (_, n) => `VARIABLE_${n}=${'x'.repeat(85)}`);
    const containers = pods.map((_, n) => Container.fromPartial({ ...container, id: `container-${n}`, env }));
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const synchronized = await nri.synchronize(id, pods, containers);
    delay.disable();
    assert.equal(synchronized.ok && synchronized.update[0]?.containerId, 'container-1');
    const ms = (ns: number | bigint): string => (Number(ns) / 1e6).toFixed(1);
    t.diagnostic(
      `8 MB in ${ms(synchronized.durationNs)} ms; loop delay p99 ${ms(delay.percentile(99))}, max ${ms(delay.max)} ms`,
    );
  });

  it('may refuse in each hook, and stay', async (t) => {
    const { ask, nri } = await scripted(t, { acts: inEachHook({ veto: 'no' }) });
    for (const hook of hooks.filter((one) => one !== 'ValidateContainerAdjustment')) {
      const answer = await ask(hook);
      assert.ok(!answer.ok, hook);
      assert.deepEqual([answer.why, answer.message], ['refused', 'no']);
    }
    assert.equal(nri.status()[0]?.state, 'active');
  });

  it('may hang in each hook, once, and stay', async (t) => {
    const { ask, nri } = await scripted(
      t,
      { acts: inEachHook({ hang: true, times: 1 }) },
      { settings: { requestTimeoutMs: 400 } },
    );
    for (const hook of hooks) {
      const late = await ask(hook);
      assert.equal(!late.ok && late.why, 'timedOut', hook);
      answerOf(await ask(hook));
    }
    assert.equal(nri.warnings.length, hooks.length);
  });

  it('may crash in each hook, and are gone', async (t) => {
    const nri = await startTested(t);
    for (const [at, hook] of hooks.entries()) {
      await startScripted(t, nri.settings.socketPath, { acts: [{ hook, crash: true }] });
      const { id } = await nri.registered('scripted', at);
      await nri.synchronize(id, [], []);
      const answer = await nri.ask(id, hook, requests[hook]);
      assert.equal(!answer.ok && answer.why, 'closed', hook);
      assert.equal(await nri.gone(id), 'it disconnected');
    }
    assert.deepEqual(nri.status(), []);
  });

  it('may ask for updates by themselves, and hear what failed', async (t) => {
    const log = join(await tempDir(t), 'log');
    const ask = { update: [{ containerId: 'a' }, { containerId: 'b' }], evict: [{ containerId: 'e', reason: 'why' }] };
    const { nri, plugin } = await scripted(
      t,
      { log, acts: [{ hook: 'Synchronize', ask }] },
      { takeUpdates: async ({ update }) => update.slice(1) },
    );
    const told = await toldIn(t, log, (lines) => lines.some(({ hook }) => hook === 'UpdateContainers'));
    assert.deepEqual(told.at(-1)?.['failed'], [{ containerId: 'b' }]);
    assert.equal(nri.asked[0]?.pluginId, plugin.id);
    assert.deepEqual(nri.asked[0].evict, ask.evict);
  });

  it('may flood with updates, and are refused without being lost', async (t) => {
    const { ask, nri } = await scripted(
      t,
      { acts: [{ hook: 'RunPodSandbox', ask: { update: [{ containerId: 'a' }], times: 2_000 } }] },
      { takeUpdates: async () => [] },
    );
    for (let n = 0; n < 5; n += 1) answerOf(await ask('RunPodSandbox'));
    answerOf(await ask('StopPodSandbox'));
    assert.equal(nri.status()[0]?.failures, 0);
  });

  it('are the samples of containerd/nri, unchanged', async (t) => {
    const samples = ['logger', 'device-injector', 'hook-injector', 'ulimit-adjuster', 'network-logger', 'template'];
    const nri = await startTested(t, {
      prepare: async ({ pluginDir }) => {
        await mkdir(pluginDir);
        for (const [at, name] of samples.entries())
          await symlink(await goProgram(`nri-plugins/${name}`), join(pluginDir, `1${at}-${name}`));
      },
    });
    assert.deepEqual(nri.reports, []);
    const annotations = {
      'devices.nri.io/container.container': '- path: /dev/injected\n  type: c\n  major: 1\n  minor: 3\n',
      'ulimits.nri.containerd.io/container.container': '- type: memlock\n  hard: 987654\n  soft: 645321\n',
    };
    const annotated = CreateContainerRequest.fromPartial({ pod: { ...pod, annotations }, container });
    const adjusted = new Map<string, AnswerOf<'CreateContainer'>>();
    for (const name of samples) {
      const { id, events } = await nri.registered(name);
      assert.ok((await nri.synchronize(id, [pod], [container])).ok, name);
      if (!events.includes('CreateContainer')) continue;
      adjusted.set(name, answerOf(await nri.ask(id, 'CreateContainer', annotated)));
    }
    assert.equal(adjusted.get('device-injector')?.adjust?.linux?.devices[0]?.path, '/dev/injected');
    assert.deepEqual(adjusted.get('ulimit-adjuster')?.adjust?.rlimits, [
      { type: 'RLIMIT_MEMLOCK', hard: '987654', soft: '645321' },
    ]);
    assert.deepEqual(
      nri.status().map(({ state }) => state),
      samples.map(() => 'active'),
    );
  });
});
