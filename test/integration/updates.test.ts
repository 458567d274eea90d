/**
 * Limits that are changed, on the real shim and OCI runtime: what the cgroup's files say, what is shown, over restarts of
 * the daemon too; what is refused, and that it changes nothing.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import {
  type ContainerConfig,
  ContainerState,
  type DeepPartial,
  type LinuxContainerResources,
} from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { type CgroupLimit, isUnified, limitInForce } from '../support/cgroup-limits.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { callsAfter, headOf, recordsOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, podConfig, removePod, statusOf } from '../support/pods.ts';

const MIB = 1024 * 1024;
const mib = (count: number): string => String(count * MIB);
const sleeper = ['sleep', '1000'];

describe('limits', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let podSandboxId: string;

  before(async () => {
    node = await startNode(owner);
    ({ podSandboxId } = await node.daemon.cri.runtime.runPodSandbox({ config: podConfig(node.daemon, 'pod') }));
  });

  const create = async (
    name: string,
    resources: DeepPartial<LinuxContainerResources>,
    overrides: DeepPartial<ContainerConfig> = {},
  ): Promise<string> => {
    const config = containerConfig(name, busyboxName, sleeper, { linux: { resources }, ...overrides });
    const { containerId } = await node.daemon.cri.runtime.createContainer({ podSandboxId, config });
    return containerId;
  };
  const start = async (...words: Parameters<typeof create>): Promise<string> => {
    const containerId = await create(...words);
    await node.daemon.cri.runtime.startContainer({ containerId });
    return containerId;
  };
  const update = (containerId: string, linux: DeepPartial<LinuxContainerResources>): Promise<unknown> =>
    node.daemon.cri.runtime.updateContainerResources({ containerId, linux });
  const shown = async (containerId: string): Promise<LinuxContainerResources | undefined> =>
    (await statusOf(node.daemon, containerId)).resources?.linux;
  const inForce = async (containerId: string, limit: CgroupLimit, expected?: string): Promise<string> =>
    limitInForce(join(node.daemon.dirs.cgroupParent, containerId), limit, expected);

  test('change in the cgroup of a container that runs, and are shown; what is not given stays', async () => {
    const containerId = await start('runs', { cpuShares: '512', cpuQuota: '50000', cpuPeriod: '100000' });
    await update(containerId, { memoryLimitInBytes: mib(64), cpusetCpus: '0' });
    await update(containerId, { cpuQuota: '20000', cpuShares: '256' });
    await update(containerId, { memoryLimitInBytes: mib(96) });
    for (const [limit, value] of [
      ['cpuShares', '256'],
      ['cpuQuota', '20000'],
      ['cpuPeriod', '100000'],
      ['cpusetCpus', '0'],
      ['memoryLimitInBytes', mib(96)],
    ] as const)
      assert.equal(await inForce(containerId, limit, value), value, limit);
    const { cpuShares, cpuQuota, cpuPeriod, cpusetCpus, memoryLimitInBytes } = (await shown(containerId)) ?? {};
    assert.deepEqual(
      [cpuShares, cpuQuota, cpuPeriod, cpusetCpus, memoryLimitInBytes],
      ['256', '20000', '100000', '0', mib(96)],
    );
    await update(containerId, { memoryLimitInBytes: '-1', cpuQuota: '-1' });
    assert.equal(await inForce(containerId, 'cpuQuota'), '-1');
    assert.equal(await inForce(containerId, 'memoryLimitInBytes'), '-1');
  });

  test('of memory take swap along, as of a container that its kubelet gave none', async () => {
    const containerId = await start('no-swap', { memoryLimitInBytes: mib(64), memorySwapLimitInBytes: mib(64) });
    for (const memoryLimitInBytes of [mib(96), mib(48)]) {
      await update(containerId, { memoryLimitInBytes });
      assert.equal(await inForce(containerId, 'memoryLimitInBytes'), memoryLimitInBytes);
      assert.equal(await inForce(containerId, 'memorySwapLimitInBytes'), memoryLimitInBytes);
    }
  });

  test('that come at once are put in force one after the other, and none is lost', async () => {
    const containerId = await start('at-once', { cpuShares: '512' });
    const since = headOf(node.daemon);
    await Promise.all([
      update(containerId, { cpuShares: '100' }),
      update(containerId, { cpuQuota: '30000', cpuPeriod: '100000' }),
      update(containerId, { memoryLimitInBytes: mib(48) }),
    ]);
    assert.equal(await inForce(containerId, 'cpuShares', '100'), '100');
    assert.equal(await inForce(containerId, 'cpuQuota'), '30000');
    assert.equal(await inForce(containerId, 'memoryLimitInBytes'), mib(48));
    const records = await recordsOf(node.daemon, { fromSeq: since + 1 });
    const own = records.filter(({ stream }) => stream === `container/${containerId}`).map(({ type }) => type);
    assert.deepEqual(own, Array(3).fill(['effects.requested', 'effect.ended', 'container.updated']).flat());
  });

  test('of a container that was not started hold from its start; its OOM score too', async () => {
    const containerId = await create(
      'later',
      { cpuShares: '512' },
      { envs: [{ key: 'KEPT', value: Buffer.from('as it was') }] },
    );
    await update(containerId, { cpuShares: '128', memoryLimitInBytes: mib(64), oomScoreAdj: '500' });
    assert.equal((await shown(containerId))?.cpuShares, '128');
    await node.daemon.cri.runtime.startContainer({ containerId });
    assert.equal(await inForce(containerId, 'cpuShares', '128'), '128');
    assert.equal(await inForce(containerId, 'memoryLimitInBytes'), mib(64));
    const cmd = ['sh', '-c', 'echo $KEPT'];
    const { stdout } = await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' });
    assert.equal(stdout.toString(), 'as it was\n');
    const { info } = await node.daemon.cri.runtime.containerStatus({ containerId, verbose: true });
    const { pid } = JSON.parse(info['info'] ?? '{}') as { pid: number };
    const oomScoreAdj = async (): Promise<string> => (await readFile(`/proc/${pid}/oom_score_adj`, 'utf8')).trim();
    assert.equal(await oomScoreAdj(), '500');
    await update(containerId, { oomScoreAdj: '900' });
    assert.deepEqual([await oomScoreAdj(), (await shown(containerId))?.oomScoreAdj], ['500', '500']);
  });

  test('of a container that has ended are written down only', async () => {
    const containerId = await start('ended', { cpuShares: '512' });
    await node.daemon.cri.runtime.stopContainer({ containerId, timeout: '0' });
    await update(containerId, { cpuShares: '64' });
    const { state, resources } = await statusOf(node.daemon, containerId);
    assert.deepEqual([state, resources?.linux?.cpuShares], [ContainerState.CONTAINER_EXITED, '64']);
  });

  test('below what is in use are refused by cgroup v1, where those from before stay; v2 kills for want of memory', async () => {
    const script = 'head -c 40000000 /dev/zero >/dev/shm/held && echo ready && sleep 1000';
    const containerId = await start(
      'uses',
      { memoryLimitInBytes: mib(128), cpuShares: '512' },
      { command: ['sh', '-c', script] },
    );
    const cmd = ['sh', '-c', 'while [ "$(wc -c </dev/shm/held)" -lt 40000000 ]; do sleep 0.1; done'];
    await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '20' });
    const tooLow = update(containerId, { memoryLimitInBytes: mib(8), cpuShares: '64' });
    if (isUnified) {
      // Version 2 refuses nothing: the kernel takes back what it can, and kills for the rest.
      await tooLow;
      await eventually('the kernel ends it', async () => {
        const { state, reason } = await statusOf(node.daemon, containerId);
        return state === ContainerState.CONTAINER_EXITED && reason === 'OOMKilled';
      });
      return;
    }
    await assert.rejects(tooLow, withCode(GrpcCode.UNKNOWN, /memory/));
    assert.equal(await inForce(containerId, 'memoryLimitInBytes'), mib(128));
    assert.equal(await inForce(containerId, 'cpuShares', '512'), '512');
    const { memoryLimitInBytes, cpuShares } = (await shown(containerId)) ?? {};
    assert.deepEqual([memoryLimitInBytes, cpuShares], [mib(128), '512']);
    await node.daemon.cri.runtime.removeContainer({ containerId });
  });

  test('stay after a kill of the daemon, and a change that it cut short is settled', async () => {
    const { daemon } = node;
    const containerId = await start('survives', { cpuShares: '512' });
    await update(containerId, { cpuShares: '300' });
    const since = headOf(daemon);
    const cut = update(containerId, { cpuShares: '200' });
    cut.catch(() => undefined);
    await eventually(
      'the change begins',
      async () => (await recordsOf(daemon, { fromSeq: since + 1, types: ['effects.requested'] })).length > 0,
    );
    await daemon.kill();
    await cut.catch(() => undefined);
    await daemon.start();
    const agreed = await eventually('the change is settled', async () => {
      const [now, told] = [await inForce(containerId, 'cpuShares', '200'), await shown(containerId)];
      return now === told?.cpuShares && now === '200' && now;
    });
    assert.equal(agreed, '200');
    await update(containerId, { cpuShares: '150' });
    assert.equal(await inForce(containerId, 'cpuShares', '150'), '150');
  });

  test('that cannot be are refused with the name of the field, and so is what is not there', async () => {
    const containerId = await start('refuses', { cpuShares: '512' });
    const { runtime } = node.daemon.cri;
    const invalid = (message: RegExp): ((error: unknown) => boolean) => withCode(GrpcCode.INVALID_ARGUMENT, message);
    const refusals: readonly (readonly [DeepPartial<LinuxContainerResources>, RegExp])[] = [
      [{ cpuPeriod: '10' }, /linux\.cpu_period/],
      [{ cpuQuota: '-5' }, /linux\.cpu_quota/],
      [{ cpusetCpus: 'all' }, /linux\.cpuset_cpus/],
      [{ oomScoreAdj: '2000' }, /linux\.oom_score_adj/],
      [{ memoryLimitInBytes: mib(64), memorySwapLimitInBytes: mib(32) }, /linux\.memory_swap_limit_in_bytes/],
      [{ hugepageLimits: [{ pageSize: 'big' }] }, /linux\.hugepage_limits\.page_size/],
    ];
    for (const [linux, message] of refusals) await assert.rejects(update(containerId, linux), invalid(message));
    await assert.rejects(runtime.updateContainerResources({ containerId }), invalid(/linux is missing/));
    const unified = update(containerId, { unified: { 'memory.high': String(2 ** 40) } });
    if (isUnified) await unified;
    else await assert.rejects(unified, withCode(GrpcCode.FAILED_PRECONDITION, /linux\.unified needs cgroup v2/));
    await assert.rejects(
      update(containerId, { cpusetCpus: '4095' }),
      withCode(GrpcCode.FAILED_PRECONDITION, /because its cpuset_cpus or cpuset_mems/),
    );
    await assert.rejects(update('f'.repeat(64), {}), withCode(GrpcCode.NOT_FOUND, /container_id/));
    assert.equal(await inForce(containerId, 'cpuShares', '512'), '512');
  });

  test('of a pod are written down and shown, over a restart too', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const limits = async (): Promise<unknown> => {
      const { info } = await runtime.podSandboxStatus({ podSandboxId, verbose: true });
      const { overhead, resources } = JSON.parse(info['info'] ?? '{}') as Record<string, unknown>;
      return { overhead, resources };
    };
    const changed = {
      overhead: { memoryLimitInBytes: mib(10) },
      resources: { cpuShares: '700', memoryLimitInBytes: mib(200) },
    };
    await runtime.updatePodSandboxResources({ podSandboxId, ...changed });
    const shown = {
      overhead: { memory_limit_in_bytes: Number(mib(10)) },
      resources: { cpu_shares: 700, memory_limit_in_bytes: Number(mib(200)) },
    };
    assert.deepEqual(await limits(), shown);
    await runtime.updatePodSandboxResources({ podSandboxId, resources: { cpuShares: '800' } });
    await daemon.kill();
    await daemon.start();
    assert.deepEqual(await limits(), { ...shown, resources: { ...shown.resources, cpu_shares: 800 } });
    await assert.rejects(
      runtime.updatePodSandboxResources({ podSandboxId: 'f'.repeat(64), ...changed }),
      withCode(GrpcCode.NOT_FOUND, /pod_sandbox_id/),
    );
    await assert.rejects(
      runtime.updatePodSandboxResources({ podSandboxId, overhead: { cpuPeriod: '5' } }),
      withCode(GrpcCode.INVALID_ARGUMENT, /overhead\.cpu_period/),
    );
  });

  test('are told by history, and a pod with changed limits leaves nothing behind', async () => {
    const { stdout } = await node.daemon.scribe(
      'history',
      '--root',
      node.daemon.dirs.root,
      '--method',
      'UpdateContainerResources',
    );
    assert.match(stdout, /UpdateContainerResources.*OK \(.*cpuShares 150/);
    const calls = await callsAfter(node.daemon, 0);
    assert.ok(calls.some(({ request }) => request.method === 'UpdateContainerResources'));
    await removePod(node.daemon, podSandboxId);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
