/** Asking a plugin: in order, in time, and what becomes of it when it is slow, gone, wrong or does not read. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { before, describe, it, type TestContext } from 'node:test';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import type { NriPlugin } from '../../../src/adapters/nri/plugins.ts';
import { TtrpcStatusError } from '../../../src/platform/ttrpc/status.ts';
import {
  CreateContainerRequest,
  CreateContainerResponse,
  Event,
  RunPodSandboxRequest,
  StateChangeEvent,
} from '../../../src/wire/nri/api.ts';
import { requireRoot } from '../../support/netns.ts';
import { startTested, type TestedOptions, type TestedPlugins } from './adaptation.ts';
import { connectDouble, type DoubleOptions, type PluginDouble } from './plugin-double.ts';

const never = (): Promise<Uint8Array> => new Promise(() => undefined);
const podRequest = (id: string): RunPodSandboxRequest => RunPodSandboxRequest.fromPartial({ pod: { id } });
const containerRequest = (id: string): CreateContainerRequest =>
  CreateContainerRequest.fromPartial({ container: { id } });
const answerWith = (bytes: number): Uint8Array =>
  CreateContainerResponse.encode(
    CreateContainerResponse.fromPartial({ adjust: { annotations: { padding: 'x'.repeat(bytes) } } }),
  ).finish();

interface Active {
  readonly nri: TestedPlugins;
  readonly double: PluginDouble;
  readonly plugin: NriPlugin;
}

/** A plugin that is synchronized. */
const active = async (t: TestContext, options: DoubleOptions = {}, tested: TestedOptions = {}): Promise<Active> => {
  const nri = await startTested(t, tested);
  const double = await connectDouble(t, nri.settings.socketPath, options);
  await double.register();
  const plugin = await nri.registered(options.name ?? 'double');
  const synchronized = await nri.synchronize(plugin.id, [], []);
  assert.ok(synchronized.ok);
  return { nri, double, plugin };
};

before(requireRoot);

describe('asking a plugin', { timeout: 60_000 }, () => {
  it('gives its answer, of any size, and how long it took', async (t) => {
    for (const size of [0, 4_000, 60_000, 3_500_000]) {
      const { nri, plugin } = await active(t, { handlers: { CreateContainer: async () => answerWith(size) } });
      const request = CreateContainerRequest.fromPartial({ container: { id: 'c', env: ['x'.repeat(size)] } });
      const answered = await nri.ask(plugin.id, 'CreateContainer', request);
      assert.ok(answered.ok);
      assert.equal(answered.answer.adjust?.annotations['padding']?.length, size);
      assert.ok(answered.durationNs > 0n);
    }
  });

  it('records of what it says when it refuses as much as anybody reads', async (t) => {
    const refuse = async (): Promise<never> => {
      throw new TtrpcStatusError(GrpcCode.UNKNOWN, `no: ${'x'.repeat(3_500_000)}`);
    };
    const { nri, plugin } = await active(t, { handlers: { CreateContainer: refuse } });
    const refused = await nri.ask(plugin.id, 'CreateContainer', containerRequest('c'));
    assert.ok(!refused.ok && refused.why === 'refused');
    assert.match(refused.message, /^no: x{900,1000}$/);
    for (const told of [...nri.warnings, nri.status()[0]?.lastFailure ?? '']) assert.ok(told.length < 1_200);
  });

  it('is not done before it is synchronized, nor for what it has not subscribed to', async (t) => {
    const nri = await startTested(t);
    const double = await connectDouble(t, nri.settings.socketPath, { events: 1 });
    await double.register();
    const { id } = await nri.registered('double');
    const early = await nri.ask(id, 'RunPodSandbox', podRequest('p'));
    assert.ok(!early.ok);
    assert.deepEqual([early.why, early.durationNs], ['closed', 0n]);
    await nri.synchronize(id, [], []);
    const other = await nri.ask(id, 'StopPodSandbox', podRequest('p'));
    assert.equal(!other.ok && other.why, 'unsubscribed');
    const nobody = await nri.ask('10-nobody@0', 'RunPodSandbox', podRequest('p'));
    assert.equal(!nobody.ok && nobody.why, 'closed');
    const left = await nri.ask('10-left@0123', 'RunPodSandbox', podRequest('p'));
    assert.ok(!left.ok);
    assert.equal(left.message, 'The NRI plugin 10-left was not asked: it is not connected any more.');
    assert.deepEqual(double.calls, ['Configure', 'Synchronize']);
  });

  it('comes after its Synchronize and its earlier requests, one at a time', async (t) => {
    const order: string[] = [];
    let underWay = 0;
    const one = async (what: string): Promise<Uint8Array> => {
      underWay += 1;
      assert.equal(underWay, 1, what);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(what);
      underWay -= 1;
      return new Uint8Array();
    };
    const nri = await startTested(t);
    const double = await connectDouble(t, nri.settings.socketPath, {
      handlers: {
        Synchronize: () => one('Synchronize'),
        RunPodSandbox: (payload) => one(RunPodSandboxRequest.decode(payload).pod?.id ?? ''),
      },
    });
    await double.register();
    const { id } = await nri.registered('double');
    const ids = Array.from({ length: 50 }, (_, n) => `pod-${n}`);
    const synchronized = nri.synchronize(id, [], []);
    const answers = await Promise.all(ids.map((pod) => nri.ask(id, 'RunPodSandbox', podRequest(pod))));
    assert.ok((await synchronized).ok);
    assert.ok(answers.every(({ ok }) => ok));
    assert.deepEqual(order, ['Synchronize', ...ids]);
  });

  it('is not held up by another plugin that hangs', async (t) => {
    const { nri, plugin } = await active(
      t,
      { name: 'hangs', handlers: { RunPodSandbox: never } },
      { settings: { requestTimeoutMs: 3_000 } },
    );
    const quick = await connectDouble(t, nri.settings.socketPath, { name: 'quick' });
    await quick.register();
    const { id } = await nri.registered('quick');
    await nri.synchronize(id, [], []);
    let hung = true;
    const hangs = nri.ask(plugin.id, 'RunPodSandbox', podRequest('p')).finally(() => {
      hung = false;
    });
    for (let n = 0; n < 100; n += 1) assert.ok((await nri.ask(id, 'RunPodSandbox', podRequest(`p${n}`))).ok);
    assert.ok(hung);
    await nri.close();
    const answer = await hangs;
    assert.equal(!answer.ok && answer.why, 'closed');
  });

  it('ends at its deadline; the plugin is warned of and asked again, and disconnected at the third in a row', async (t) => {
    let slow = true;
    const { nri, double, plugin } = await active(
      t,
      { handlers: { RunPodSandbox: () => (slow ? never() : Promise.resolve(new Uint8Array())) } },
      { settings: { requestTimeoutMs: 300 } },
    );
    const ask = (): ReturnType<typeof nri.ask<'RunPodSandbox'>> => nri.ask(plugin.id, 'RunPodSandbox', podRequest('p'));
    const miss = async (): Promise<void> => {
      const answer = await ask();
      assert.ok(!answer.ok);
      assert.equal(answer.why, 'timedOut');
      assert.equal(answer.message, 'The NRI plugin 10-double did not answer RunPodSandbox within 300 ms.');
      assert.ok(answer.durationNs >= 290_000_000n);
    };
    await miss();
    await miss();
    assert.equal(nri.warnings.length, 2);
    assert.equal(nri.status()[0]?.missesInARow, 2);
    slow = false;
    assert.ok((await ask()).ok);
    assert.equal(nri.status()[0]?.missesInARow, 0);
    assert.equal(nri.status()[0]?.deadlinesMissed, 2);
    slow = true;
    await miss();
    await miss();
    const waits = [miss(), ask()];
    assert.equal(await nri.gone(plugin.id), 'it missed 3 deadlines in a row');
    await waits[0];
    const last = await waits[1];
    assert.equal(last !== undefined && !last.ok && last.why, 'closed');
    await double.mux.closed;
  });

  it('does not disconnect a plugin that wants to be kept, however often it is late', async (t) => {
    const policy = { failRequest: false, keepConnected: true };
    const { nri, plugin } = await active(
      t,
      { policy, handlers: { RunPodSandbox: never } },
      { settings: { requestTimeoutMs: 200 } },
    );
    for (let n = 0; n < 5; n += 1) await nri.ask(plugin.id, 'RunPodSandbox', podRequest('p'));
    assert.ok((await nri.ask(plugin.id, 'StopPodSandbox', podRequest('p'))).ok);
  });

  it('of many at once does not wait for each deadline of a plugin that is silent and stays', async (t) => {
    let silent = true;
    const { nri, double, plugin } = await active(
      t,
      { handlers: { RunPodSandbox: () => (silent ? never() : Promise.resolve(new Uint8Array())) } },
      { settings: { requestTimeoutMs: 200, missesMax: 0 } },
    );
    const ask = async (id: string) => await nri.ask(plugin.id, 'RunPodSandbox', podRequest(id));
    const sinceMs = performance.now();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => ask(`p${n}`)));
    // Three deadlines, where each of twenty had its own.
    assert.ok(performance.now() - sinceMs < 2_000);
    assert.ok(answers.every((answer) => !answer.ok && answer.why === 'timedOut'));
    assert.equal(double.calls.filter((call) => call === 'RunPodSandbox').length, 3);
    const [, , , fourth] = answers;
    assert.equal(
      fourth !== undefined && !fourth.ok && fourth.message,
      'The NRI plugin 10-double was not asked: it gave no answer to the last 3 requests within 200 ms.',
    );
    silent = false;
    assert.ok((await Promise.all([ask('q'), ask('r'), ask('s')])).every(({ ok }) => ok));
  });

  it('takes no answer for another that came too late', async (t) => {
    let first = true;
    const { nri, plugin } = await active(
      t,
      {
        handlers: {
          CreateContainer: async () => {
            if (!first) return answerWith(2);
            first = false;
            await sleep(400);
            return answerWith(1);
          },
        },
      },
      { settings: { requestTimeoutMs: 200 } },
    );
    const late = await nri.ask(plugin.id, 'CreateContainer', containerRequest('a'));
    assert.equal(!late.ok && late.why, 'timedOut');
    await sleep(300);
    const next = await nri.ask(plugin.id, 'CreateContainer', containerRequest('b'));
    assert.equal(next.ok && next.answer.adjust?.annotations['padding'], 'xx');
  });

  it('tells a refusal, and keeps the plugin', async (t) => {
    const { nri, plugin } = await active(t, {
      handlers: { RunPodSandbox: () => Promise.reject(new Error('not on my node')) },
    });
    const answer = await nri.ask(plugin.id, 'RunPodSandbox', podRequest('p'));
    assert.ok(!answer.ok);
    assert.equal(answer.why, 'refused');
    assert.equal(answer.message, 'not on my node');
    assert.ok((await nri.ask(plugin.id, 'StopPodSandbox', podRequest('p'))).ok);
    const [status] = nri.status();
    assert.deepEqual([status?.state, status?.requests, status?.failures], ['active', 3, 1]);
    assert.match(status?.lastFailure ?? '', /not on my node/);
    assert.deepEqual(
      status?.latencies.map(({ asked, answers, maxNs }) => [asked, answers, maxNs > 0n]),
      [
        ['Synchronize', 1, true],
        ['StopPodSandbox', 1, true],
      ],
    );
  });

  it('tells that a plugin went away, and what it was asked meanwhile', async (t) => {
    const { nri, double, plugin } = await active(
      t,
      { handlers: { RunPodSandbox: never } },
      { settings: { requestTimeoutMs: 3_000 } },
    );
    const asked = [1, 2, 3].map((n) => nri.ask(plugin.id, 'RunPodSandbox', podRequest(`p${n}`)));
    while (!double.calls.includes('RunPodSandbox')) await sleep(5);
    double.socket.destroy();
    for (const answer of await Promise.all(asked)) {
      assert.ok(!answer.ok);
      assert.equal(answer.why, 'closed');
      assert.match(answer.message, /^The NRI plugin 10-double went away before it answered RunPodSandbox\.$/);
    }
    assert.equal(await nri.gone(plugin.id), 'it disconnected');
  });

  it('ends with a plugin whose answer is none', async (t) => {
    const { nri, plugin } = await active(t, {
      handlers: { CreateContainer: async () => Buffer.from('\x0a\x7fgarbage') },
    });
    const answer = await nri.ask(plugin.id, 'CreateContainer', containerRequest('c'));
    assert.equal(!answer.ok && answer.why, 'closed');
    assert.equal(await nri.gone(plugin.id), 'what it answered to CreateContainer is no answer');
  });

  it('refuses what no message can hold, and keeps the plugin', async (t) => {
    const { nri, plugin } = await active(t);
    const huge = CreateContainerRequest.fromPartial({ container: { env: ['x'.repeat(4_200_000)] } });
    const answer = await nri.ask(plugin.id, 'CreateContainer', huge);
    assert.ok(!answer.ok);
    assert.equal(answer.why, 'refused');
    assert.match(answer.message, /above the limit of 4194304/);
    assert.ok((await nri.ask(plugin.id, 'CreateContainer', containerRequest('c'))).ok);
  });

  it('holds a bounded backlog for a plugin that does not read, and drops it', async (t) => {
    const { nri, double, plugin } = await active(t, {}, { settings: { requestTimeoutMs: 200, missesMax: 4 } });
    double.socket.pause();
    const big = CreateContainerRequest.fromPartial({ container: { env: ['x'.repeat(3_500_000)] } });
    const answers = await Promise.all([1, 2, 3, 4].map(() => nri.ask(plugin.id, 'CreateContainer', big)));
    assert.ok(answers.every((answer) => !answer.ok && answer.why === 'timedOut'));
    const [first, , , last] = answers;
    assert.ok((first?.durationNs ?? 0n) >= 190_000_000n);
    // It was not even sent.
    assert.ok((last?.durationNs ?? 0n) < 100_000_000n);
    assert.equal(await nri.gone(plugin.id), 'it missed 4 deadlines in a row');
  });

  it('reaches older plugins as StateChange, where there was that', async (t) => {
    const events: StateChangeEvent[] = [];
    const { nri, double, plugin } = await active(t, {
      events: 0x3fff & ~(1 << (Event.VALIDATE_CONTAINER_ADJUSTMENT - 1)),
      lacks: ['PostStartContainer', 'UpdatePodSandbox', 'CreateContainer'],
      handlers: {
        RunPodSandbox: () => Promise.reject(new TtrpcStatusError(GrpcCode.UNIMPLEMENTED, 'there is no such method')),
        StateChange: async (payload) => {
          events.push(StateChangeEvent.decode(payload));
          return new Uint8Array();
        },
      },
    });
    const run = await nri.ask(plugin.id, 'RunPodSandbox', podRequest('p'));
    assert.deepEqual(run.ok && run.answer, {});
    await nri.ask(plugin.id, 'PostStartContainer', { pod: undefined, container: containerRequest('c').container });
    // Once it is known, it is told so at once.
    await nri.ask(plugin.id, 'RunPodSandbox', podRequest('q'));
    assert.deepEqual(
      events.map(({ event, pod, container }) => [event, pod?.id, container?.id]),
      [
        [Event.RUN_POD_SANDBOX, 'p', undefined],
        [Event.POST_START_CONTAINER, undefined, 'c'],
        [Event.RUN_POD_SANDBOX, 'q', undefined],
      ],
    );
    const create = await nri.ask(plugin.id, 'CreateContainer', containerRequest('c'));
    assert.equal(!create.ok && create.why, 'refused');
    assert.equal(double.calls.filter((call) => call === 'StateChange').length, 3);
    assert.equal(double.calls.filter((call) => call === 'RunPodSandbox').length, 1);
  });

  it('leaves out what a plugin does not know that has subscribed to all there is', async (t) => {
    const { nri, double, plugin } = await active(t, { events: 0, lacks: ['ValidateContainerAdjustment'] });
    const request = {
      pod: undefined,
      container: undefined,
      adjust: undefined,
      update: [],
      owners: undefined,
      plugins: [],
    };
    for (let n = 0; n < 2; n += 1) {
      const answer = await nri.ask(plugin.id, 'ValidateContainerAdjustment', request);
      assert.equal(!answer.ok && answer.why, 'unsubscribed');
    }
    assert.equal(nri.status()[0]?.failures, 0);
    assert.equal(double.calls.length, 2);
  });

  it('passes a deadline on that a plugin answers itself', async (t) => {
    const late = new TtrpcStatusError(GrpcCode.DEADLINE_EXCEEDED, 'context deadline exceeded');
    const { nri, plugin } = await active(t, { handlers: { RunPodSandbox: () => Promise.reject(late) } });
    const answer = await nri.ask(plugin.id, 'RunPodSandbox', podRequest('p'));
    assert.equal(!answer.ok && answer.why, 'timedOut');
  });
});
