/** Status replies over the socket: what kubelet needs is in them, and verbose ones hold what people need. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as wire from '../../../src/wire/cri/api.ts';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import { codeOf } from '../../../scripts/lib/cri-client.ts';
import type { OciSpec } from '../../../src/domain/model/oci.ts';
import { FACTS } from '../../simulation/facts.ts';
import { container, idOf, image, podSandbox, startServer, testModel } from './support.ts';
import { CREATED, CREATING, exited } from '../../support/phases.ts';

const pod = idOf('a');
const id = idOf('c');
const config = {
  metadata: { name: 'main', attempt: 2 },
  image: { image: 'busybox', userSpecifiedImage: 'busybox' },
  labels: { l: '1' },
  annotations: { a: '2' },
  mounts: [{ containerPath: '/data', hostPath: '/host', readonly: true }],
  logPath: 'main/0.log',
  envs: [{ key: 'SECRET', token: 'token-of-it' }],
  linux: { resources: { memoryLimitInBytes: '1024', cpuShares: '2' } },
} as const;

const filled = () => {
  const view = testModel();
  view.put({
    sandboxes: [
      podSandbox(pod, {
        runtimeHandler: 'runc',
        config: { metadata: { name: 'p', uid: 'u', namespace: 'n' }, logDirectory: '/var/log/pods/p' },
      }),
      podSandbox(idOf('b'), { phase: 'notReady' }),
    ],
    containers: [
      container(id, pod, {
        config,
        facts: { user: { uid: 1000, gid: 0, additionalGids: [7] }, devices: [], mounts: [] },
        phase: exited({ exitStatus: 137, finishedAtNs: '4000', reason: 'OOMKilled', message: 'told by the kernel' }),
      }),
      container(idOf('d'), pod, { phase: CREATED }),
    ],
    images: [image('sha256:i1')],
  });
  return view;
};

describe('statuses', { timeout: 20_000 }, () => {
  it('ContainerStatus tells all of an exited container, and nothing that has not happened of a created one', async (t) => {
    const { cri } = await startServer(t, { view: filled() });
    const { status, info } = await cri.runtime.containerStatus({ containerId: 'c' });
    assert.ok(status);
    assert.deepEqual(info, {});
    assert.equal(status.id, id);
    assert.deepEqual(status.metadata, { name: 'main', attempt: 2 });
    assert.equal(status.state, wire.ContainerState.CONTAINER_EXITED);
    assert.deepEqual([status.createdAt, status.startedAt, status.finishedAt], ['2000', '3000', '4000']);
    assert.deepEqual([status.exitCode, status.reason, status.message], [137, 'OOMKilled', 'told by the kernel']);
    assert.equal(status.image?.image, 'docker.io/library/busybox:latest');
    assert.equal(status.image.userSpecifiedImage, 'busybox');
    assert.equal(status.imageRef, 'docker.io/library/busybox@sha256:m1');
    assert.equal(status.imageId, 'sha256:i1');
    assert.deepEqual([status.labels, status.annotations], [{ l: '1' }, { a: '2' }]);
    assert.equal(status.mounts[0]?.hostPath, '/host');
    assert.equal(status.logPath, '/var/log/pods/p/main/0.log');
    assert.equal(status.resources?.linux?.memoryLimitInBytes, '1024');
    assert.deepEqual(status.user?.linux, { uid: '1000', gid: '0', supplementalGroups: ['7'] });
    assert.equal(status.stopSignal, wire.Signal.SIGNAL_SIGTERM);

    const created = (await cri.runtime.containerStatus({ containerId: idOf('d') })).status;
    assert.deepEqual([created?.startedAt, created?.finishedAt, created?.exitCode, created?.reason], ['0', '0', 0, '']);
  });

  it('ContainerStatus names the image as its user did, where the client has given its id', async (t) => {
    const view = filled();
    const { content } = image('sha256:i1');
    const repoTags = [...content.repoTags, 'registry.example/team/tool:2'];
    const asked = (userSpecifiedImage: string) => ({ ...config, image: { image: 'sha256:i1', userSpecifiedImage } });
    view.put({
      images: [image('sha256:i1', { content: { ...content, repoTags } })],
      containers: [
        container(idOf('d'), pod, { config: asked('registry.example/team/tool:2') }),
        container(idOf('e'), pod, { config: asked('registry.example/team/gone:3') }),
      ],
    });
    const { cri } = await startServer(t, { view });
    const namesOf = async (containerId: string) => {
      const { status } = await cri.runtime.containerStatus({ containerId });
      return [status?.image?.image, status?.image?.userSpecifiedImage];
    };
    assert.deepEqual(await namesOf('d'), ['registry.example/team/tool:2', 'registry.example/team/tool:2']);
    assert.deepEqual(await namesOf('e'), ['docker.io/library/busybox:latest', 'registry.example/team/gone:3']);
  });

  it('PodSandboxStatus tells addresses of a ready pod only, and statuses of its containers', async (t) => {
    const { cri } = await startServer(t, { view: filled() });
    const ready = await cri.runtime.podSandboxStatus({ podSandboxId: 'a' });
    assert.deepEqual(ready.status?.network, { ip: '10.1.2.3', additionalIps: [{ ip: 'fd00::3' }] });
    assert.deepEqual(ready.status.metadata, { name: 'p', uid: 'u', namespace: 'n', attempt: 0 });
    assert.equal(ready.status.runtimeHandler, 'runc');
    assert.deepEqual(
      ready.containersStatuses.map((one) => one.id),
      [idOf('d'), id],
      'the newest first',
    );
    assert.notEqual(ready.timestamp, '0');
    const notReady = await cri.runtime.podSandboxStatus({ podSandboxId: idOf('b') });
    assert.equal(notReady.status?.state, wire.PodSandboxState.SANDBOX_NOTREADY);
    assert.deepEqual(notReady.status.network, { ip: '', additionalIps: [] });
  });

  it('what is not there, or not yet, is not found; nothing is guessed from an empty or ambiguous id', async (t) => {
    const view = filled();
    view.put({ sandboxes: [podSandbox(idOf('e'), { phase: 'creating' })], containers: [container(idOf('cf'), pod)] });
    view.put({ containers: [container(idOf('f'), pod, { phase: CREATING })] });
    const { cri, reads } = await startServer(t, { view });
    const { runtime } = cri;
    const refused: readonly (readonly [() => Promise<unknown>, number])[] = [
      [() => runtime.containerStatus({ containerId: 'x' }), GrpcCode.NOT_FOUND],
      [() => runtime.containerStatus({ containerId: 'x'.repeat(1_000_000) }), GrpcCode.NOT_FOUND],
      [() => runtime.containerStatus({ containerId: 'f' }), GrpcCode.NOT_FOUND],
      [() => runtime.podSandboxStatus({ podSandboxId: 'e' }), GrpcCode.NOT_FOUND],
      [() => runtime.containerStatus({ containerId: 'c' }), GrpcCode.INVALID_ARGUMENT],
    ];
    for (const [ask, code] of refused) await assert.rejects(ask(), (error) => codeOf(error) === code);
    await assert.rejects(runtime.containerStatus({}));
    assert.deepEqual(
      reads.slice(0, refused.length).map(({ code }) => code),
      refused.map(([, code]) => code),
    );
  });

  it('ImageStatus answers without an image for one that is not there, and with chain and config when verbose', async (t) => {
    const { cri } = await startServer(t, { view: filled() });
    assert.equal((await cri.image.imageStatus({ image: { image: 'nginx' } })).image, undefined);
    const { image: found, info } = await cri.image.imageStatus({ image: { image: 'busybox' }, verbose: true });
    assert.equal(found?.spec, undefined);
    const ofHandler = { image: 'busybox', runtimeHandler: 'crun' };
    const { image: ofCrun } = await cri.image.imageStatus({ image: ofHandler });
    const { images: listed } = await cri.image.listImages({ filter: { image: ofHandler } });
    for (const one of [ofCrun, ...listed]) {
      assert.equal(one?.spec?.runtimeHandler, 'crun');
      assert.equal(one.spec.image, found?.id);
    }
    assert.equal(listed.length, 1);
    assert.deepEqual([found?.id, found?.size, found?.uid?.value, found?.username], ['sha256:i1', '1234', '1000', '']);
    assert.deepEqual(JSON.parse(info['info'] ?? ''), {
      chainID: '',
      imageSpec: { config: { User: '1000:1000' }, rootfs: { type: 'layers', diff_ids: [] } },
    });
  });

  it('ImageStatus shows all of an image config that is there when verbose, in the words of OCI', async (t) => {
    const imageSpec = { architecture: 'amd64', os: 'linux', config: { Labels: { of: 'its maker' }, Env: ['A=b'] } };
    const asked: string[] = [];
    const imageConfigOf = async (imageId: string) => {
      asked.push(imageId);
      return imageSpec;
    };
    const { cri } = await startServer(t, { view: filled(), parts: { imageConfigOf } });
    await cri.image.imageStatus({ image: { image: 'busybox' } });
    assert.deepEqual(asked, [], 'nothing is read for those who do not ask');
    const { info } = await cri.image.imageStatus({ image: { image: 'busybox' }, verbose: true });
    assert.deepEqual(JSON.parse(info['info'] ?? ''), { chainID: '', imageSpec });
    assert.deepEqual(asked, ['sha256:i1']);
  });

  it('C12: verbose statuses tell pid, steps and config, with tokens where secrets were', async (t) => {
    const { cri } = await startServer(t, { view: filled() });
    const ofContainer = await cri.runtime.containerStatus({ containerId: id, verbose: true });
    const containerInfo = JSON.parse(ofContainer.info['info'] ?? '') as Record<string, unknown>;
    assert.equal(containerInfo['sandboxID'], pod);
    assert.equal(containerInfo['pid'], 0, 'it has ended');
    assert.match(JSON.stringify(containerInfo), /token-of-it/);
    const ofPod = await cri.runtime.podSandboxStatus({ podSandboxId: pod, verbose: true });
    const podInfo = JSON.parse(ofPod.info['info'] ?? '') as Record<string, unknown>;
    assert.deepEqual([podInfo['pid'], podInfo['processStatus'], podInfo['runtimeHandler']], [41, 'running', 'runc']);
  });

  it('verbose statuses have configurations in the words of api.proto, whose clients read them again', async (t) => {
    const { cri } = await startServer(t, { view: filled() });
    const infoOf = ({ info }: { readonly info: Readonly<Record<string, string>> }) =>
      JSON.parse(info['info'] ?? '') as Record<string, unknown>;
    assert.deepEqual(infoOf(await cri.runtime.containerStatus({ containerId: id, verbose: true }))['config'], {
      metadata: { name: 'main', attempt: 2 },
      image: { image: 'busybox', user_specified_image: 'busybox' },
      labels: { l: '1' },
      annotations: { a: '2' },
      mounts: [{ container_path: '/data', host_path: '/host', readonly: true }],
      log_path: 'main/0.log',
      envs: [{ key: 'SECRET', token: 'token-of-it' }],
      linux: { resources: { memory_limit_in_bytes: 1024, cpu_shares: 2 } },
    });
    assert.deepEqual(infoOf(await cri.runtime.podSandboxStatus({ podSandboxId: pod, verbose: true }))['config'], {
      metadata: { name: 'p', uid: 'u', namespace: 'n' },
      log_directory: '/var/log/pods/p',
    });
  });

  it('C12: verbose statuses have the OCI spec as it is now, in text, with tokens where secrets were', async (t) => {
    const view = filled();
    view.state.facts = FACTS;
    const args = [{ token: 'token-of-an-argument' }, 'word'];
    const facts = { user: { uid: 1000, gid: 0, additionalGids: [7] }, devices: [], mounts: [] };
    const asked = { ...config, mounts: [], command: args };
    const network = { confListName: 'n', netnsPath: '/run/netns/p' };
    view.put({
      sandboxes: [
        podSandbox(pod, { network, steps: { netns: 'done', task: 'done' } } as never),
        podSandbox(idOf('e'), { network, sandboxer: 'none', task: null, steps: { namespaces: 'done' } } as never),
        podSandbox(idOf('f'), { network, sandboxer: 'none', task: null, steps: { namespaces: 'undone' } } as never),
      ],
      containers: [container(id, pod, { config: asked, facts, resources: { memoryLimitInBytes: '4096' } })],
    });
    const { cri } = await startServer(t, { view });
    const specIn = ({ info }: { readonly info: Readonly<Record<string, string>> }) =>
      (JSON.parse(info['info'] ?? '') as { readonly runtimeSpec: OciSpec }).runtimeSpec;
    const { process, linux } = specIn(await cri.runtime.containerStatus({ containerId: id, verbose: true }));
    assert.deepEqual(process.args, ['token-of-an-argument', 'word']);
    assert.ok(process.env.includes('SECRET=token-of-it'));
    assert.equal(process.user.uid, 1000);
    assert.equal(linux.resources.memory?.limit, 4096, 'the limits that hold now');
    const networkOf = async (podSandboxId: string): Promise<unknown> =>
      specIn(await cri.runtime.podSandboxStatus({ podSandboxId, verbose: true })).linux.namespaces.find(
        ({ type }) => type === 'network',
      );
    assert.deepEqual(await networkOf(pod), { type: 'network', path: '/run/netns/p' });
    const pinned = { type: 'network', path: `/state-dir/netns/${idOf('e')}` };
    assert.deepEqual(await networkOf(idOf('e')), pinned, 'without a task, where it is pinned');
    assert.equal(await networkOf(idOf('f')), undefined, 'what is gone is not told of');
  });

  it('a pod whose task has ended has no pid: the number may be another process’s', async (t) => {
    const view = filled();
    const ended = { exitStatus: 0, exitedAtNs: '5' };
    view.put({ sandboxes: [podSandbox(idOf('e'), { phase: 'notReady', taskExit: ended } as never)] });
    const { cri } = await startServer(t, { view });
    const { info } = await cri.runtime.podSandboxStatus({ podSandboxId: idOf('e'), verbose: true });
    assert.equal((JSON.parse(info['info'] ?? '') as { readonly pid: number }).pid, 0);
  });

  it('Version tells the name and the version of the runtime, and v1', async (t) => {
    const { cri } = await startServer(t);
    assert.deepEqual(await cri.runtime.version({ version: 'v1' }), {
      version: '0.1.0',
      runtimeName: 'scribe',
      runtimeVersion: '0.0.0-test',
      runtimeApiVersion: 'v1',
    });
  });

  it('Status tells whether the network is ready and why not, handlers, and the configuration when verbose', async (t) => {
    const view = filled();
    const handlers = [{ name: 'runc', features: { recursiveReadOnlyMounts: false, userNamespaces: false } }];
    const { cri } = await startServer(t, {
      view,
      parts: { runtimeHandlers: () => handlers, describeConfig: () => ({ stateDir: '/state-dir' }) },
    });
    const conditions = async (): Promise<unknown> =>
      (await cri.runtime.status({})).status?.conditions.map(({ type, status, reason }) => [type, status, reason]);
    assert.deepEqual(await conditions(), [
      ['RuntimeReady', true, ''],
      ['NetworkReady', false, 'NetworkPluginNotReady'],
    ]);
    view.state.network = { confList: { cniVersion: '1.0.0', name: 'n', plugins: [] }, problem: null };
    assert.deepEqual(await conditions(), [
      ['RuntimeReady', true, ''],
      ['NetworkReady', true, ''],
    ]);
    const verbose = await cri.runtime.status({ verbose: true });
    assert.deepEqual(verbose.runtimeHandlers, handlers);
    assert.deepEqual(JSON.parse(verbose.info['config'] ?? ''), { stateDir: '/state-dir' });
    assert.deepEqual(JSON.parse(verbose.info['events'] ?? ''), { passedOver: 0 });
    assert.equal(verbose.info['security'], 'null');
    const selinux = { process: 'a:b:c:s0', file: 'a:b:d:s0' };
    view.state.facts = { ...FACTS, selinux };
    const { info } = await cri.runtime.status({ verbose: true });
    assert.deepEqual(JSON.parse(info['security'] ?? ''), {
      seccomp: true,
      apparmor: false,
      selinux: false,
      selinuxContexts: selinux,
    });
    const { linux } = await cri.runtime.runtimeConfig({});
    assert.equal(linux?.cgroupDriver, wire.CgroupDriver.CGROUPFS);
  });

  it('stats: running containers only; one that has gone does not fail the list', async (t) => {
    const view = filled();
    view.put({ containers: [container(idOf('r1'), pod), container(idOf('r2'), pod)] });
    const asked: string[][] = [];
    const statsOf = (one: { readonly id: string }): wire.ContainerStats =>
      wire.ContainerStats.fromPartial({ attributes: { id: one.id } });
    const { cri } = await startServer(t, {
      view,
      parts: {
        statsOf: (one) => Promise.resolve(one.id === id ? null : statsOf(one)),
        statsOfAll: (all) => {
          asked.push(all.map((one) => one.id));
          return Promise.resolve(all.slice(1).map(statsOf));
        },
      },
    });
    const ids = (stats: readonly wire.ContainerStats[]): unknown => stats.map(({ attributes }) => attributes?.id);
    assert.deepEqual(ids((await cri.runtime.listContainerStats({})).stats), [idOf('r2')]);
    await cri.runtime.listContainerStats({ filter: { id: 'r1' } });
    await cri.runtime.listContainerStats({ filter: { podSandboxId: 'b' } });
    assert.deepEqual(asked, [[idOf('r1'), idOf('r2')], [idOf('r1')], []]);
    const { stats } = await cri.runtime.containerStats({ containerId: 'r1' });
    assert.equal(stats?.attributes?.id, idOf('r1'));
    view.put({ containers: [container(idOf('e1'), pod, { phase: CREATED })] });
    for (const containerId of [id, idOf('e1')])
      await assert.rejects(
        cri.runtime.containerStats({ containerId }),
        (error) => codeOf(error) === GrpcCode.FAILED_PRECONDITION,
      );
    const unknown = cri.runtime.containerStats({ containerId: 'none' });
    await assert.rejects(unknown, (error) => codeOf(error) === GrpcCode.NOT_FOUND);
  });
});
