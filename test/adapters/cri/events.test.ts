/** GetContainerEvents: what is told, to whom, from when on, and what is passed over. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createContainerEvents, type EventCursor } from '../../../src/adapters/cri/events.ts';
import {
  ContainerEventType,
  type ContainerEventResponse,
  ContainerState,
  PodSandboxState,
} from '../../../src/wire/cri/api.ts';
import type { DomainRecord, Sequenced } from '../../../src/domain/model/records.ts';
import { criEventsOf } from '../../../src/projections/cri-events.ts';
import { openEventCursor } from '../../../src/daemon/event-cursor.ts';
import { eventually } from '../../support/pods.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { container, idOf, podSandbox, startServer, testModel } from './support.ts';
import { CREATED, CREATING, DEAD, exited } from '../../support/phases.ts';

const minutesNs = (minutes: number): bigint => BigInt(minutes) * 60_000_000_000n;
const pod = idOf('a');
const first = idOf('c1');

/** A model, its events and a clock that the test moves. */
const setUp = (options: { backlog?: readonly Sequenced[]; deliveredSeq?: number } = {}) => {
  const view = testModel();
  const clock = { nowNs: minutesNs(1_000) };
  let seq = 0;
  let delivered = options.deliveredSeq ?? 0;
  const cursor: EventCursor = {
    deliveredSeq: () => delivered,
    deliver: (to) => {
      delivered = Math.max(delivered, to);
    },
  };
  const told: number[] = [];
  const backlog = Promise.resolve(options.backlog ?? []);
  const events = createContainerEvents({
    view,
    eventsOf: criEventsOf,
    nowNs: () => clock.nowNs,
    backlog,
    cursor,
    onPassedOver: (count) => void told.push(count),
  });
  const record = (event: DomainRecord, stream: string): Sequenced => {
    seq += 1;
    return { ...event, seq, atNs: clock.nowNs, monoNs: 0n, stream, cause: null, call: null };
  };
  /** A container starts, of the pod or another: one event. */
  const start = (id: string, ofPod = pod): void =>
    view.put({ containers: [container(id, ofPod)] }, [
      record({ type: 'container.started', body: { pid: 1, startTicks: '1' } }, `container/${id}`),
    ]);
  return { view, clock, events, record, start, cursor, told };
};

const started = (seq: number, id: string, atNs: bigint): Sequenced => ({
  type: 'container.started',
  body: { pid: 1, startTicks: '1' },
  seq,
  atNs,
  monoNs: 0n,
  stream: `container/${id}`,
  cause: null,
  call: null,
});

/** Lets promises that are due settle. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Collects what a subscriber is sent; `stalled` ones take the first and then nothing. */
const listen = (events: ReturnType<typeof createContainerEvents>, stalled = false) => {
  const abort = new AbortController();
  const heard: ContainerEventResponse[] = [];
  let resume: () => void = () => undefined;
  const ended = events.subscribe(async (event) => {
    heard.push(event);
    if (stalled) {
      await new Promise<void>((resolve) => {
        resume = resolve;
      });
    }
  }, abort.signal);
  return {
    heard,
    ids: () => heard.map(({ containerId }) => containerId),
    resume: () => resume(),
    async end() {
      abort.abort();
      resume();
      await ended;
    },
  };
};

describe('GetContainerEvents', { timeout: 20_000 }, () => {
  it("tells of a pod's whole life, with the pod's full status each time", async () => {
    const { view, events, record } = setUp();
    const { heard, end } = listen(events);
    await settle();
    const ready = podSandbox(pod);
    view.put({ sandboxes: [ready] }, [record({ type: 'sandbox.ready', body: { claimed: true } }, `sandbox/${pod}`)]);
    const creating = container(first, pod, { phase: CREATED });
    view.put({ containers: [creating] }, [
      record({ type: 'container.created', body: { claimed: true } }, `container/${first}`),
    ]);
    const running = container(first, pod);
    view.put({ containers: [running] }, [
      record({ type: 'container.started', body: { pid: 1, startTicks: '1' } }, `container/${first}`),
    ]);
    const exit = { exitStatus: 3, finishedAtNs: '9000', reason: 'Error', message: '' } as const;
    view.put({ containers: [{ ...running, phase: exited(exit) }] }, [
      record(
        { type: 'container.exited', body: { exitStatus: 3, exitedAtNs: '9000', reason: 'Error', message: '' } },
        `container/${first}`,
      ),
    ]);
    view.remove([first], [record({ type: 'container.removed', body: {} }, `container/${first}`)]);
    view.put({ sandboxes: [{ ...ready, phase: 'notReady', stopped: true }] }, [
      record({ type: 'sandbox.stopped', body: {} }, `sandbox/${pod}`),
    ]);
    view.remove([pod], [record({ type: 'sandbox.removed', body: {} }, `sandbox/${pod}`)]);
    await settle();
    const { CONTAINER_CREATED, CONTAINER_RUNNING, CONTAINER_EXITED } = ContainerState;
    const { SANDBOX_READY, SANDBOX_NOTREADY } = PodSandboxState;
    assert.deepEqual(
      heard.map(({ containerId, containerEventType, podSandboxStatus, containersStatuses }) => [
        containerId === pod ? 'pod' : 'container',
        containerEventType,
        podSandboxStatus?.id === pod ? podSandboxStatus.state : 'no pod',
        containersStatuses.map(({ state }) => state),
      ]),
      [
        ['pod', ContainerEventType.CONTAINER_CREATED_EVENT, SANDBOX_READY, []],
        ['pod', ContainerEventType.CONTAINER_STARTED_EVENT, SANDBOX_READY, []],
        ['container', ContainerEventType.CONTAINER_CREATED_EVENT, SANDBOX_READY, [CONTAINER_CREATED]],
        ['container', ContainerEventType.CONTAINER_STARTED_EVENT, SANDBOX_READY, [CONTAINER_RUNNING]],
        ['container', ContainerEventType.CONTAINER_STOPPED_EVENT, SANDBOX_READY, [CONTAINER_EXITED]],
        ['container', ContainerEventType.CONTAINER_DELETED_EVENT, SANDBOX_READY, []],
        ['pod', ContainerEventType.CONTAINER_STOPPED_EVENT, SANDBOX_NOTREADY, []],
        ['pod', ContainerEventType.CONTAINER_DELETED_EVENT, SANDBOX_NOTREADY, []],
      ],
    );
    assert.equal(heard[4]?.containersStatuses[0]?.exitCode, 3);
    assert.ok(heard.every(({ createdAt }) => createdAt === String(minutesNs(1_000))));
    await end();
  });

  it('does not tell of a container whose creation was undone', async () => {
    const { view, events, record, start } = setUp();
    view.put({ sandboxes: [podSandbox(pod)], containers: [] });
    const undone = container(first, pod, { phase: CREATING });
    const { ids, end } = listen(events);
    view.put({ containers: [undone] }, [record({ type: 'container.starting', body: {} }, `container/${first}`)]);
    view.remove([first], [record({ type: 'container.removed', body: {} }, `container/${first}`)]);
    start(idOf('c2'));
    await settle();
    assert.deepEqual(ids(), [idOf('c2')]);
    await end();
  });

  it('a stalled subscriber blocks nobody, loses its oldest events, and they are counted and told of at once', async () => {
    const { events, start, told } = setUp();
    const stalled = listen(events, true);
    const quick = listen(events);
    for (let n = 0; n < 2_500; n += 1) {
      start(idOf(`c${n}`), idOf(`${n}`));
      if (n % 100 === 0) await settle();
    }
    await settle();
    assert.equal(quick.heard.length, 2_500);
    assert.equal(events.passedOver(), 1_499, 'before it reads again');
    assert.equal(told.length, 1);
    assert.deepEqual(stalled.ids(), [idOf('c0')]);
    stalled.resume();
    await settle();
    assert.deepEqual(stalled.ids(), [idOf('c0'), idOf('c1500')]);
    assert.equal(events.passedOver(), 1_499);
    await Promise.all([stalled.end(), quick.end()]);
  });

  it('a new subscriber begins after what was last delivered to anybody', async () => {
    const { events, start, cursor } = setUp();
    const before = listen(events);
    start(first);
    await settle();
    await before.end();
    start(idOf('c2'));
    start(idOf('c3'));
    const after = listen(events);
    await settle();
    assert.deepEqual(after.ids(), [idOf('c2'), idOf('c3')]);
    assert.equal(cursor.deliveredSeq(), 3);
    await after.end();
  });

  it('a record that tells of two events is delivered when both are', async () => {
    const { view, events, record, cursor } = setUp();
    const abort = new AbortController();
    const { promise: going, resolve: go } = Promise.withResolvers<void>();
    let sent = 0;
    const ended = events.subscribe(async () => {
      sent += 1;
      if (sent === 2) await going;
    }, abort.signal);
    view.put({ sandboxes: [podSandbox(pod)] }, [
      record({ type: 'sandbox.ready', body: { claimed: true } }, `sandbox/${pod}`),
    ]);
    await settle();
    assert.deepEqual([sent, cursor.deliveredSeq()], [2, 0]);
    go();
    await settle();
    assert.equal(cursor.deliveredSeq(), 1);
    abort.abort();
    await ended;
  });

  it('what happened while nobody listened waits five minutes, and is then passed over', async () => {
    const { events, start, clock, told } = setUp();
    start(first);
    clock.nowNs += minutesNs(3);
    start(idOf('c2'));
    clock.nowNs += minutesNs(3);
    start(idOf('c3'));
    const { ids, end } = listen(events);
    await settle();
    assert.deepEqual(ids(), [idOf('c2'), idOf('c3')]);
    assert.equal(events.passedOver(), 1);
    assert.deepEqual(told, [1]);
    await end();
  });

  it('lets go of events after five minutes though nothing happens and nobody asks', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { events, start, clock } = setUp();
    const stalled = listen(events, true);
    for (const id of ['c1', 'c2', 'c3']) start(idOf(id));
    await settle();
    clock.nowNs += minutesNs(5) + 1n;
    assert.equal(events.passedOver(), 0);
    t.mock.timers.tick(300_000);
    assert.equal(events.passedOver(), 2, 'all but the one that it was sent');
    await stalled.end();
  });

  it('after a restart goes on behind what an earlier life delivered, in order', async () => {
    const atNs = minutesNs(999);
    const backlog = [started(1, first, atNs), started(2, idOf('c2'), atNs), started(3, idOf('c3'), atNs)];
    const { events, start, view } = setUp({ backlog, deliveredSeq: 1 });
    view.put({ sandboxes: [podSandbox(pod)] });
    // While the backlog is still being read.
    start(idOf('c4'));
    const { ids, end } = listen(events);
    await settle();
    assert.deepEqual(ids(), [idOf('c2'), idOf('c3'), idOf('c4')]);
    await end();
  });

  it('C18: an event of a pod waits until the exit codes of its containers are known', async () => {
    const { view, events, record, start, cursor } = setUp();
    const unsure = container(first, pod, { phase: DEAD });
    view.put({ sandboxes: [podSandbox(pod)], containers: [unsure] });
    const { heard, end } = listen(events);
    view.put({ sandboxes: [podSandbox(pod, { phase: 'notReady' })] }, [
      record({ type: 'sandbox.lost', body: { message: '' } }, `sandbox/${pod}`),
    ]);
    const other = idOf('b');
    view.put({ containers: [container(idOf('d1'), other)] }, [
      record({ type: 'container.started', body: { pid: 1, startTicks: '1' } }, `container/${idOf('d1')}`),
    ]);
    await settle();
    assert.deepEqual(
      heard.map(({ containerId }) => containerId),
      [idOf('d1')],
    );
    assert.equal(cursor.deliveredSeq(), 0, 'after a restart now, what waits would never be told');
    const exit = { exitStatus: 7, finishedAtNs: '9', reason: 'Error', message: '' } as const;
    view.put({ containers: [{ ...unsure, phase: exited(exit) }] }, [
      record(
        { type: 'container.exited', body: { exitStatus: 7, exitedAtNs: '9', reason: 'Error', message: '' } },
        `container/${first}`,
      ),
    ]);
    await settle();
    assert.deepEqual(
      heard.map(({ containerId, containersStatuses }) => [containerId, containersStatuses[0]?.exitCode]),
      [
        [idOf('d1'), 0],
        [pod, 7],
        [first, 7],
      ],
    );
    start(idOf('c9'));
    await settle();
    assert.equal(heard.length, 4);
    assert.equal(cursor.deliveredSeq(), 4);
    await end();
  });

  it('streams over the socket until the client goes, and is noted like any read', async (t) => {
    const view = testModel();
    const server = await startServer(t, { view });
    const abort = new AbortController();
    const stream = server.cri.runtime.getContainerEvents({}, { signal: abort.signal })[Symbol.asyncIterator]();
    const next = stream.next();
    view.put({ containers: [container(first, pod)] }, [started(1, first, BigInt(Date.now()) * 1_000_000n)]);
    const told = (await next) as IteratorYieldResult<ContainerEventResponse>;
    assert.equal(told.value.containerId, first);
    abort.abort();
    await assert.rejects(async () => stream.next());
    await eventually('the read is noted', async () => Promise.resolve(server.reads.length > 0));
    assert.deepEqual(
      server.reads.map(({ method, code, callerPid }) => [method, code, callerPid]),
      [['GetContainerEvents', 0, process.pid]],
    );
  });
});

describe('where events were delivered to', { timeout: 20_000 }, () => {
  it('is kept over restarts, unless the journal is another one', async (t) => {
    const dir = await tempDir(t);
    const fails = (message: string): never => assert.fail(message);
    const one = openEventCursor(dir, 100, fails);
    assert.equal(one.deliveredSeq(), 0);
    one.deliver(42);
    one.deliver(41);
    await one.close();
    const two = openEventCursor(dir, 42, fails);
    assert.equal(two.deliveredSeq(), 42);
    await two.close();
    assert.equal(openEventCursor(dir, 41, fails).deliveredSeq(), 0);
  });

  it('a directory that cannot be written to is reported, once', async (t) => {
    const reports: string[] = [];
    const cursor = openEventCursor(`${await tempDir(t)}/none`, 9, (message) => void reports.push(message));
    cursor.deliver(1);
    await cursor.close();
    assert.equal(reports.length, 1);
    assert.match(reports[0] ?? '', /^Where container events were delivered to/);
  });
});
