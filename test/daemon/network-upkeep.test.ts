/** What is asked of CNI plugins beside ADD and DEL, when, and what becomes of the answers. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CniAdapter, CniStatus } from '../../src/adapters/cni/adapter.ts';
import type { PodNetwork } from '../../src/domain/model/cni.ts';
import type { PodSandbox, StepState } from '../../src/domain/model/state.ts';
import { createNetworkUpkeep, pauseMsFor } from '../../src/daemon/network-upkeep.ts';
import { idOf, podSandbox } from '../adapters/cri/support.ts';

const networkOf = (id: string): PodNetwork => ({
  podSandboxId: id,
  netnsPath: '/n',
  ifName: 'eth0',
  confList: { cniVersion: '1.1.0', name: 'n', plugins: [] },
  name: 'p',
  namespace: 'n',
  uid: 'u',
  portMappings: [],
  podAnnotations: {},
});

const podIn = (name: string, network: StepState, over: Partial<PodSandbox> = {}): PodSandbox => {
  const sandbox = podSandbox(idOf(name), { network: networkOf(idOf(name)), ...over });
  const { network: _attached, ...steps } = sandbox.steps;
  return { ...sandbox, steps: network === 'none' ? steps : { ...steps, network } };
};

const setUp = (pods: readonly PodSandbox[], knowsAllPods = true) => {
  const asked: string[] = [];
  const reports: string[] = [];
  const logged: string[] = [];
  let nowMs = 0;
  let status = (): Promise<CniStatus> => Promise.resolve({ networkName: 'n', problem: null });
  let check = (_id: string): Promise<boolean> => Promise.resolve(true);
  let sandboxes = pods;
  const cni: Pick<CniAdapter, 'status' | 'gc' | 'check'> = {
    status: () => {
      asked.push('STATUS');
      return status();
    },
    gc: (valid) => {
      asked.push(
        `GC ${valid()
          .map(({ containerID, ifname }) => `${containerID.slice(0, 1)}/${ifname}`)
          .join()}`,
      );
      return Promise.resolve();
    },
    check: ({ podSandboxId }) => {
      asked.push(`CHECK ${podSandboxId.slice(0, 1)}`);
      return check(podSandboxId);
    },
  };
  const say = (_fields: object, message: string): void => void logged.push(message);
  const upkeep = createNetworkUpkeep({
    cni,
    sandboxes: () => sandboxes,
    knowsAllPods,
    pauseMs: 1,
    monoMs: () => nowMs,
    log: { info: say, warn: say },
    report: (message) => void reports.push(message),
  });
  return {
    upkeep,
    asked,
    reports,
    logged,
    later: () => (nowMs += 10_000),
    says: (next: () => Promise<CniStatus>) => (status = next),
    checks: (next: (id: string) => Promise<boolean>) => (check = next),
    become: (next: readonly PodSandbox[]) => (sandboxes = next),
  };
};

const notReady = (problem: string) => () => Promise.resolve({ networkName: 'n', problem });

describe('upkeep of the pod network', { timeout: 30_000 }, () => {
  it('tells what STATUS says, asks again only after a while, and logs changes', async () => {
    const { upkeep, asked, logged, later, says } = setUp([]);
    assert.equal(await upkeep.problem(), null);
    says(notReady('no room'));
    assert.equal(await upkeep.problem(), null);
    assert.deepEqual(asked, ['STATUS']);
    later();
    assert.deepEqual(await Promise.all([upkeep.problem(), upkeep.problem()]), ['no room', 'no room']);
    assert.equal(asked.length, 2);
    says(() => Promise.resolve({ networkName: null, problem: 'no network' }));
    later();
    assert.equal(await upkeep.problem(), null, 'of a network that is not there, others tell');
    assert.deepEqual(logged, ['the pod network is not ready', 'the pod network is ready again']);
  });

  it('waits for STATUS no longer than a while; the last word stands', async () => {
    const { upkeep, later, says, asked } = setUp([]);
    let answer: (status: CniStatus) => void = () => undefined;
    says(() => new Promise((resolve) => (answer = resolve)));
    assert.match((await upkeep.problem()) ?? '', /have not answered yet/);
    answer({ networkName: 'n', problem: null });
    assert.equal(await upkeep.problem(), null);
    later();
    assert.equal(await upkeep.problem(), null, 'the last word');
    assert.equal(asked.length, 2);
  });

  it('collects what belongs to no pod whose network was ever to be attached', async () => {
    const states: readonly StepState[] = ['none', 'doing', 'done', 'failed', 'undoing', 'undone', 'owed'];
    const pods = states.map((state, index) => podIn('abcdef0'[index] ?? '', state, { phase: 'notReady' }));
    const onHost = podSandbox(idOf('9'), { network: null });
    const { upkeep, asked } = setUp([...pods, onHost]);
    await upkeep.round();
    assert.deepEqual(asked, ['GC b/eth0,c/eth0,d/eth0,e/eth0,0/eth0']);
    const careful = setUp(pods, false);
    await careful.upkeep.round();
    assert.deepEqual(careful.asked, []);
  });

  it('checks ready pods, and tells once what does not stand', async () => {
    const pods = [
      podIn('a', 'done'),
      podIn('b', 'done'),
      podIn('c', 'owed'),
      podIn('d', 'done', { phase: 'notReady' }),
    ];
    const { upkeep, asked, reports, logged, checks, become } = setUp(pods);
    checks((id) => (id === idOf('b') ? Promise.reject(new Error('no eth0')) : Promise.resolve(true)));
    await upkeep.round();
    await upkeep.round();
    assert.deepEqual(
      asked.filter((one) => one.startsWith('CHECK')),
      ['CHECK a', 'CHECK b', 'CHECK a', 'CHECK b'],
    );
    assert.deepEqual(reports, ['The network of a pod is not as it was made: no eth0']);
    checks(() => Promise.resolve(true));
    await upkeep.round();
    assert.deepEqual(logged, ['the attachment of the pod stands again']);
    checks((id) => {
      // Stopped while it is asked about.
      become([podIn('b', 'undoing')]);
      return Promise.reject(new Error(`no namespace of ${id}`));
    });
    await upkeep.round();
    assert.equal(reports.length, 1);
  });

  it('does not check pods whose sandbox may have taken the addresses for itself', async () => {
    const own = podIn('a', 'done');
    const other = podIn('b', 'done', { handler: { ...own.handler, runtimeType: 'io.containerd.runsc.v1' } });
    const { upkeep, asked, reports, checks } = setUp([own, other]);
    checks((id) => (id === idOf('b') ? Promise.reject(new Error('no address')) : Promise.resolve(true)));
    await upkeep.round();
    assert.deepEqual(asked, ['GC a/eth0,b/eth0', 'CHECK a']);
    assert.deepEqual(reports, []);
  });

  it('checks few pods one a minute, many one in five seconds, and others within an hour', () => {
    assert.deepEqual([1, 60, 120, 720, 1_000].map(pauseMsFor), [60_000, 60_000, 30_000, 5_000, 5_000]);
  });
});
