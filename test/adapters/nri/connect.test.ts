/** Plugins that connect to NRI's socket: who is let in, what they are told, and what those come to who are no plugins. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { lstat, mkdir, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { before, describe, it } from 'node:test';
import { createFindings, reportTo } from '../../../src/daemon/findings.ts';
import { dial } from '../../../src/platform/linux/dial.ts';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import { requireRoot } from '../../support/netns.ts';
import { eventually } from '../../support/pods.ts';
import { pluginSettings, startTested } from './adaptation.ts';
import { connectDouble, type DoubleHandlers } from './plugin-double.ts';

const PERMISSIONS = 0o777;

before(requireRoot);

describe('plugins that connect', { timeout: 60_000, concurrency: true }, () => {
  it('register, are configured, and are told by name, index, events and version', async (t) => {
    const nri = await startTested(t);
    const double = await connectDouble(t, nri.settings.socketPath, { index: '07', name: 'a.b_c+d-e', events: 0b1001 });
    await double.register();
    const plugin = await nri.registered('a.b_c+d-e');
    assert.match(plugin.id, /^07-a\.b_c\+d-e@[0-9a-f]{12}$/);
    const { id: _, ...rest } = plugin;
    assert.deepEqual(rest, {
      index: '07',
      name: 'a.b_c+d-e',
      launched: false,
      pid: process.pid,
      events: ['RunPodSandbox', 'CreateContainer'],
      nriVersion: 'v0.12.5',
      requestTimeoutMs: 10_000,
      failurePolicy: 'continue',
    });
    assert.deepEqual(await double.configured, {
      config: '',
      runtimeName: 'scribe',
      runtimeVersion: '1.2.3',
      registrationTimeout: '5000',
      requestTimeout: '10000',
      NRIVersion: 'v0.12.5',
    });
    assert.equal(nri.status()[0]?.state, 'registered');
  });

  it('hear of everything when they subscribe to nothing in particular', async (t) => {
    const nri = await startTested(t);
    await (await connectDouble(t, nri.settings.socketPath)).register();
    assert.equal((await nri.registered('double')).events.length, 14);
  });

  it('get the directory to themselves, and the place of a socket that a dead daemon left', async (t) => {
    const nri = await startTested(t, {
      prepare: async ({ socketPath }) => {
        await mkdir(dirname(socketPath), { mode: 0o700 });
        const dead = createServer().listen(socketPath);
        await once(dead, 'listening');
        // As kill -9 leaves it: the file is there, and nobody listens.
        (dead as unknown as { readonly _handle: { readonly close: () => void } })._handle.close();
      },
    });
    assert.ok((await lstat(nri.settings.socketPath)).isSocket());
    assert.equal((await stat(nri.settings.socketPath)).mode & PERMISSIONS, 0o600);
    await (await connectDouble(t, nri.settings.socketPath)).register();
    await nri.registered('double');
  });

  it('find the socket of another runtime left alone, and that is a finding', async (t) => {
    const other = await startTested(t);
    const { socketPath } = other.settings;
    const nri = await startTested(t, { settings: { socketPath } });
    assert.deepEqual(nri.reports, [
      `NRI plugins can not connect: there can be no socket at ${socketPath} (another runtime is listening there). Only plugins that are launched are asked: name another path in nri.socket or --nri-socket and restart scribe, or set nri.disable_connections.`,
    ]);
    await (await connectDouble(t, socketPath)).register();
    await other.registered('double');
  });

  it('make a directory that is closed to others', async (t) => {
    const nri = await startTested(t);
    assert.equal((await stat(dirname(nri.settings.socketPath))).mode & PERMISSIONS, 0o700);
  });

  it('are refused with a name, an index or events that there are not, and others are not', async (t) => {
    const nri = await startTested(t);
    const { socketPath } = nri.settings;
    for (const bad of [
      { name: '' },
      { name: 'a/b' },
      { name: 'ä' },
      { name: 'x'.repeat(4096) },
      { index: '1' },
      { index: '100' },
      { index: 'aa' },
    ]) {
      const double = await connectDouble(t, socketPath, bad);
      // In words that its author reads, and not by a lost connection alone.
      await assert.rejects(double.register(), /is no (name|index) of a plugin: /, JSON.stringify(bad));
      await double.mux.closed;
    }
    const greedy = await connectDouble(t, socketPath, { events: 1 << 14 });
    await greedy.register();
    await greedy.mux.closed;
    assert.match(nri.reports.at(-1) ?? '', /it subscribes to events that there are not \(0x4000\)/);
    await (await connectDouble(t, socketPath, { name: 'good' })).register();
    await nri.registered('good');
    assert.deepEqual(
      nri.status().map(({ name }) => name),
      ['good'],
    );
  });

  it('have a bounded time to register in', async (t) => {
    const nri = await startTested(t, { settings: { registrationTimeoutMs: 50 } });
    const slow = await connectDouble(t, nri.settings.socketPath);
    await slow.mux.closed;
    assert.match(nri.warnings.join(), /it did not register within 50 ms/);
  });

  it('are disconnected for garbage, before and after they have registered', async (t) => {
    const nri = await startTested(t);
    const { socketPath } = nri.settings;
    const stranger = await dial({ path: socketPath }, 5_000);
    stranger.resume();
    stranger.write('GET / HTTP/1.1\r\nHost: nri\r\n\r\n'.repeat(10));
    await once(stranger, 'close');
    const double = await connectDouble(t, socketPath);
    await double.register();
    const { id } = await nri.registered('double');
    double.socket.write(Buffer.alloc(64, 0xff));
    assert.match(await nri.gone(id), /what came from it is no NRI: a frame of 4294967295 bytes/);
    assert.equal((await nri.ask(id, 'RunPodSandbox', { pod: undefined })).ok, false);
    assert.deepEqual(nri.status(), []);
  });

  it('cannot register twice on one connection, and may connect twice under one name', async (t) => {
    const nri = await startTested(t);
    const double = await connectDouble(t, nri.settings.socketPath);
    await double.register();
    await assert.rejects(double.register(), { code: GrpcCode.FAILED_PRECONDITION });
    await (await connectDouble(t, nri.settings.socketPath)).register();
    const [first, second] = [await nri.registered('double'), await nri.registered('double', 1)];
    assert.notEqual(first.id, second.id);
    assert.equal(nri.status().length, 2);
  });

  it("stay by the configuration's word for them, then by their own, then by what holds for all", async (t) => {
    const nri = await startTested(t, {
      settings: {
        plugins: {
          named: pluginSettings({ requestTimeoutMs: 1_000, failurePolicy: 'continue' }),
          '20-named': pluginSettings({ requestTimeoutMs: 2_000 }),
        },
      },
    });
    const policy = { failRequest: true, keepConnected: true };
    const policyOf = async (index: string, name: string, at: number): Promise<unknown> => {
      const double = await connectDouble(t, nri.settings.socketPath, { index, name, policy });
      await double.register();
      const { requestTimeoutMs, failurePolicy } = await nri.registered(name, at);
      assert.equal((await double.configured).requestTimeout, String(requestTimeoutMs));
      return [requestTimeoutMs, failurePolicy];
    };
    assert.deepEqual(await policyOf('10', 'named', 0), [1_000, 'continue']);
    assert.deepEqual(await policyOf('20', 'named', 1), [2_000, 'fail']);
    assert.deepEqual(await policyOf('30', 'unnamed', 0), [10_000, 'fail']);
  });

  it('are named where they register and can not be configured, and so is the process of what does not even register', async (t) => {
    const nri = await startTested(t, { settings: { registrationTimeoutMs: 200 } });
    const { socketPath } = nri.settings;
    const handlers = { Configure: async () => new Uint8Array([0xff, 0xff]) };
    for (const [name, options] of [
      ['greedy', { events: 0x7fffffff }],
      ['garbled', { handlers }],
    ] as const)
      await (await connectDouble(t, socketPath, { name, ...options })).register();
    await connectDouble(t, socketPath);
    const told = await eventually(
      'all are told',
      async () => nri.warnings.length === 1 && nri.reports.length === 2 && nri.reports,
    );
    const words = (name: string) => `The NRI plugin 10-${name} (process ${process.pid}) connected, and can not be used`;
    assert.deepEqual(told.toSorted(), [
      `${words('garbled')}: the answer to nri.pkg.api.v1alpha1.Plugin/Configure cannot be decoded: premature EOF.`,
      `${words('greedy')}: it subscribes to events that there are not (0x7fffffff).`,
    ]);
    assert.deepEqual(nri.warnings, [
      `What connected to NRI (process ${process.pid}) is no plugin that can be used: it did not register within 200 ms.`,
    ]);
  });

  it('are a finding once they were disconnected for what they did, until one of the name has stayed for a while', async (t) => {
    const findings = createFindings();
    const nri = await startTested(t, {
      settings: { requestTimeoutMs: 100, missesMax: 1 },
      report: reportTo(findings, { warn: () => undefined }),
      settle: findings.settle,
    });
    const { socketPath } = nri.settings;
    const connect = async (at: number, handlers: DoubleHandlers) => {
      const double = await connectDouble(t, socketPath, { name: 'late', handlers });
      await double.register();
      const { id } = await nri.registered('late', at);
      await nri.synchronize(id, [], []);
      return { double, id };
    };
    const leaving = await connect(0, {});
    leaving.double.socket.destroy();
    await nri.gone(leaving.id);
    assert.deepEqual(findings.list(), []);
    const late = await connect(1, { StopPodSandbox: () => new Promise(() => undefined) });
    await nri.ask(late.id, 'StopPodSandbox', { pod: undefined });
    await nri.gone(late.id);
    assert.deepEqual(findings.list(), [
      'The NRI plugin 10-late was disconnected: it missed 1 deadlines in a row. It is asked nothing until it connects again.',
    ]);
    await connect(2, {});
    assert.equal(findings.list().length, 1);
    await eventually('it has stayed', async () => findings.list().length === 0);
  });

  it('have no socket where connections are switched off', async (t) => {
    const nri = await startTested(t, { settings: { disableConnections: true } });
    await assert.rejects(lstat(nri.settings.socketPath), { code: 'ENOENT' });
  });

  it('are told that we end', async (t) => {
    const nri = await startTested(t);
    const double = await connectDouble(t, nri.settings.socketPath);
    await double.register();
    const { id } = await nri.registered('double');
    await nri.close();
    assert.equal(await nri.gone(id), 'scribe ended');
    assert.deepEqual(double.calls, ['Configure', 'Shutdown']);
    await assert.rejects(lstat(nri.settings.socketPath), { code: 'ENOENT' });
  });
});
