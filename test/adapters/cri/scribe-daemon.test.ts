/** scribe's own Daemon service over the socket: the state's moment, what is owed, found and under way, log levels. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type DaemonPorts, daemonService } from '../../../src/adapters/cri/services/scribe-daemon.ts';
import { serviceOf } from '../../../src/adapters/cri/service.ts';
import { DaemonDefinition } from '../../../src/wire/scribe/v1/daemon.ts';
import { createFindings } from '../../../src/daemon/findings.ts';
import { createJournalReads } from '../../../src/daemon/journal-reads.ts';
import { daemonPorts } from '../../../src/daemon/daemon-ports.ts';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import { refused, succeeded } from '../../../src/domain/model/result.ts';
import { writeState } from '../../../src/domain/turn/snapshot.ts';
import { hashOfState } from '../../../src/journal/snapshots.ts';
import { foldJournal } from '../../support/fold.ts';
import { codeOf } from '../../../scripts/lib/cri-client.ts';
import type { Owner } from '../../support/cleanup.ts';
import {
  ask,
  idOf,
  podSandbox,
  rawClient,
  type RawClient,
  startEngine,
  startServer,
  type TestEngine,
} from './support.ts';

const { methods, fullName } = DaemonDefinition;

interface Served {
  readonly client: RawClient;
  readonly test: TestEngine;
  readonly log: { level: string };
  readonly findings: ReturnType<typeof createFindings>;
}

const serve = async (owner: Owner, overrides: Partial<DaemonPorts> = {}): Promise<Served> => {
  // A pull that never ends: something to be under way.
  const test = await startEngine(owner, { PullImage: () => new Promise(() => undefined) });
  const log = { level: 'info' };
  const findings = createFindings();
  const clock = { monoNs: process.hrtime.bigint };
  const ports = daemonPorts({
    rootDir: '/root-dir',
    engine: test.engine,
    view: test.view,
    clock,
    findings,
    askLogTroubles: async () => [{ containerId: 'a', logPath: '/log', why: 'ENOSPC', sinceMs: 0, lostRecords: 1 }],
    nri: null,
    journal: { giveBack: async (forMs) => ({ fileBytes: 8192, freeBytes: forMs, givesBack: true }) },
    recordJournalRead: createJournalReads(test.engine.call).record,
    reload: async () => succeeded([{ key: 'audit.rules', applied: true, was: [], is: ['x'] }]),
    log,
  });
  const { socket } = await startServer(owner, {
    view: test.view,
    submit: test.engine.call,
    services: (parts, options) => [
      serviceOf(DaemonDefinition, daemonService(parts, { ...ports, ...overrides }), options),
    ],
  });
  return { client: rawClient(owner, socket), test, log, findings };
};

describe('scribe.v1.Daemon', { timeout: 20_000 }, () => {
  it('compacts the journal for a second at a time, and says what is left and whose it is', async (t) => {
    const { client } = await serve(t);
    assert.deepEqual(await ask(client, fullName, methods.compactJournal, {}), {
      fileBytes: '8192',
      freeBytes: '1000',
      possible: true,
      rootDir: '/root-dir',
    });
  });

  it('State is the hash that a fold of the journal up to its seq arrives at', async (t) => {
    const { client, test } = await serve(t);
    await test.engine.call({ method: 'StartContainer', containerId: 'x' }, { caller: null, deadlineNs: null });
    const { seq, stateHash, decidedFromHash, rootDir } = await ask(client, fullName, methods.state, {});
    assert.equal(rootDir, '/root-dir');
    const state = await foldJournal(test.journal, Number(seq));
    assert.equal(stateHash, hashOfState(writeState(state)));
    assert.equal(decidedFromHash, stateHash);
    assert.equal(Number(seq), test.journal.head().seq);
  });

  it('State tells what is under way, with its object and age', async (t) => {
    const { client, test } = await serve(t);
    const options = { caller: null, deadlineNs: null };
    const pull = test.engine.call({ method: 'PullImage', image: 'r.test/a:1', credentials: null }, options);
    pull.catch(() => undefined);
    await test.journal.append([]);
    const { underWay } = await ask(client, fullName, methods.state, {});
    const [effect] = underWay;
    assert.deepEqual(
      underWay.map(({ kind }) => kind),
      ['PullImage'],
    );
    assert.match(effect?.effect ?? '', /^\d+\.0$/);
    assert.match(effect?.stream ?? '', /^call\//);
    assert.ok(BigInt(effect?.ageNs ?? '0') > 0n);
  });

  it('State tells what is owed and found', async (t) => {
    const { client, test, findings } = await serve(t);
    const id = idOf('ab');
    const steps = { ...podSandbox(id).steps, network: 'owed' as const, netns: 'owed' as const };
    const owedFailure = { reason: 'CniFailed', message: 'DEL failed' } as const;
    test.view.state.sandboxes.set(id, podSandbox(id, { phase: 'notReady', steps, owedFailure, undoFailures: 3 }));
    findings.add('The key was made again.');
    findings.add('The key was made again.');
    const reply = await ask(client, fullName, methods.state, {});
    assert.deepEqual(reply.owed, [
      { stream: `sandbox/${id}`, steps: ['netns', 'network'], reason: 'CniFailed', message: 'DEL failed', attempts: 3 },
    ]);
    const [ofKey, ofLogs = '', ...rest] = reply.findings;
    assert.equal(ofKey, 'The key was made again.');
    assert.match(ofLogs, /^The log of container a, \/log, can not be written \(ENOSPC\): 1 lines are lost/);
    assert.deepEqual(rest, ['no network configuration was read yet']);
  });

  it('ReadJournal is journaled with who reads what, bounded, and refused for another root', async (t) => {
    const { client, test } = await serve(t);
    const read = { rootDir: '/root-dir', subcommand: 'history', fromSeq: '1', toSeq: '9', shown: '3' };
    await ask(client, fullName, methods.readJournal, { ...read, words: ['--text', 'x'.repeat(1000)] });
    const wrong = [
      [{ ...read, rootDir: '/other' }, GrpcCode.FAILED_PRECONDITION, /journal of this daemon is in "\/root-dir"/],
      [{ ...read, subcommand: 'rm -rf' }, GrpcCode.INVALID_ARGUMENT, /subcommand "rm -rf" is none/],
    ] as const;
    for (const [request, code, message] of wrong)
      await assert.rejects(ask(client, fullName, methods.readJournal, { ...request, words: [] }), (error: Error) => {
        assert.equal(codeOf(error), code);
        assert.match(error.message, message);
        return true;
      });
    const [received] = test.recorded('call.received').map(({ request }) => request);
    const words = ['--text', 'x'.repeat(256)];
    assert.deepEqual(received, { method: 'ReadJournal', subcommand: 'history', words, fromSeq: 1, toSeq: 9, shown: 3 });
  });

  it('ClearStrays is journaled with what is cleared, and refused for another root or nothing', async (t) => {
    const { client, test } = await serve(t);
    const stray = `mount ${'x'.repeat(600)}`;
    await ask(client, fullName, methods.clearStrays, { rootDir: '/root-dir', strays: [stray] });
    const wrong = [
      [{ rootDir: '/other', strays: [stray] }, GrpcCode.FAILED_PRECONDITION],
      [{ rootDir: '/root-dir', strays: [] }, GrpcCode.INVALID_ARGUMENT],
    ] as const;
    for (const [{ rootDir, strays }, code] of wrong)
      await assert.rejects(
        ask(client, fullName, methods.clearStrays, { rootDir, strays: [...strays] }),
        (error: Error) => codeOf(error) === code,
      );
    const requests = test.recorded('call.received').map(({ request }) => request);
    assert.deepEqual(requests[0], { method: 'ClearStrays', strays: [stray.slice(0, 512)], count: 1 });
    assert.deepEqual(
      requests.slice(1).map(({ method }) => method),
      ['Refused', 'Refused'],
    );
  });

  it('ListNriPlugins tells that NRI is off', async (t) => {
    const { client } = await serve(t);
    assert.deepEqual(await ask(client, fullName, methods.listNriPlugins, {}), { enabled: false, plugins: [] });
  });

  it('ReloadConfig says what differs, without values, and fails with what is wrong', async (t) => {
    const { client } = await serve(t);
    const { changes } = await ask(client, fullName, methods.reloadConfig, {});
    assert.deepEqual(changes, [{ key: 'audit.rules', applied: true }]);
    const failure = { reason: 'InvalidField', message: 'audit.rules.0.level: must be a level' } as const;
    const { client: other } = await serve(t, { reloadConfig: async () => refused(failure) });
    await assert.rejects(ask(other, fullName, methods.reloadConfig, {}), (error: Error) => {
      assert.equal(codeOf(error), GrpcCode.INVALID_ARGUMENT);
      return error.message === failure.message;
    });
  });

  it('SetLogLevel changes the level, gives the one before, and is journaled', async (t) => {
    const { client, test, log } = await serve(t);
    assert.deepEqual(await ask(client, fullName, methods.setLogLevel, { level: 'debug' }), { previous: 'info' });
    assert.equal(log.level, 'debug');
    const wrong = ask(client, fullName, methods.setLogLevel, { level: 'loud' });
    await assert.rejects(wrong, (error: Error) => {
      assert.equal(codeOf(error), GrpcCode.INVALID_ARGUMENT);
      assert.match(error.message, /^level "loud" is none; give one of trace, debug/);
      return true;
    });
    assert.equal(log.level, 'debug');
    assert.deepEqual(
      test.recorded('call.completed').map(({ method, code }) => [method, code]),
      [
        ['SetLogLevel', GrpcCode.OK],
        ['Refused', GrpcCode.INVALID_ARGUMENT],
      ],
    );
  });
});

describe('findings', () => {
  it('are bounded in number and length, the oldest making room', () => {
    const findings = createFindings();
    for (let n = 0; n < 1_000; n += 1) findings.add(`${n} ${'x'.repeat(10_000)}`);
    assert.equal(findings.list().length, 200);
    assert.equal(findings.list()[0]?.slice(0, 4), '800 ');
    assert.ok(findings.list().every((sentence) => sentence.length === 2_000));
  });
});
