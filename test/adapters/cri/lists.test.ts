/** List replies: filters, bytes that are those of the encoded message, and encoding once per change. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { containerEntry, imageEntry, podSandboxEntry } from '../../../src/adapters/cri/messages/entries.ts';
import { createLists } from '../../../src/adapters/cri/lists.ts';
import * as wire from '../../../src/wire/cri/api.ts';
import type { Container, PodSandbox } from '../../../src/domain/model/state.ts';
import { container, idOf, image, podSandbox, startServer, testModel } from './support.ts';
import { CREATED, CREATING, exited } from '../../support/phases.ts';

const { CONTAINER_CREATED, CONTAINER_RUNNING, CONTAINER_EXITED } = wire.ContainerState;
const { SANDBOX_READY, SANDBOX_NOTREADY } = wire.PodSandboxState;
const exit = { exitStatus: 1, finishedAtNs: '9', reason: 'Error', message: '' } as const;

const labelled = (one: Container, labels: Record<string, string>): Container => ({
  ...one,
  config: { ...one.config, labels },
});

const pods: readonly PodSandbox[] = [
  podSandbox(idOf('aa1')),
  podSandbox(idOf('aa2'), { phase: 'notReady', stopped: true }),
  podSandbox(idOf('bb'), { config: { metadata: { name: 'b' }, labels: { app: 'web', tier: 'x' } } }),
  podSandbox(idOf('cc'), { phase: 'creating' }),
];

/** With the states that CRI shows them in; null for one it does not. */
const containers: readonly (readonly [Container, wire.ContainerState | null])[] = [
  [container(idOf('c01'), idOf('aa1')), CONTAINER_RUNNING],
  [container(idOf('c02'), idOf('aa1'), { phase: CREATED }), CONTAINER_CREATED],
  [labelled(container(idOf('d01'), idOf('aa2'), { phase: exited(exit) }), { app: 'web', tier: 'x' }), CONTAINER_EXITED],
  [labelled(container(idOf('d02'), idOf('bb')), { app: 'web', tier: 'y' }), CONTAINER_RUNNING],
  [container(idOf('e'), idOf('bb'), { phase: CREATING }), null],
];

const filled = () => {
  const view = testModel();
  const images = [image('sha256:i1'), image('sha256:i2', { removing: true })];
  view.put({ sandboxes: pods, containers: containers.map(([one]) => one), images });
  return view;
};

const encodedContainers = (ids: readonly string[]): Buffer => {
  const shown = containers.flatMap(([one, state]) =>
    state !== null && ids.some((id) => one.id === idOf(id)) ? [containerEntry(one, state)] : [],
  );
  return Buffer.from(wire.ListContainersResponse.encode({ containers: shown }).finish());
};

const encodedPods = (ids: readonly string[]): Buffer => {
  const items = pods.filter(({ id }) => ids.some((wanted) => id === idOf(wanted))).map(podSandboxEntry);
  return Buffer.from(wire.ListPodSandboxResponse.encode({ items }).finish());
};

const containerFilter = (filter: wire.DeepPartial<wire.ContainerFilter>) => wire.ContainerFilter.fromPartial(filter);
const podFilter = (filter: wire.DeepPartial<wire.PodSandboxFilter>) => wire.PodSandboxFilter.fromPartial(filter);

describe('lists', { timeout: 20_000 }, () => {
  it('of containers: by id and pod id or their beginnings, state, labels, and all of them together', () => {
    const { containers: list } = createLists(filled());
    const all = ['c01', 'c02', 'd01', 'd02'];
    const cases: readonly (readonly [wire.DeepPartial<wire.ContainerFilter>, readonly string[]])[] = [
      [{}, all],
      [{ id: 'c0' }, ['c01', 'c02']],
      [{ id: idOf('c01') }, ['c01']],
      [{ id: 'f' }, []],
      [{ id: `${idOf('c01')}0` }, []],
      [{ podSandboxId: 'aa' }, ['c01', 'c02', 'd01']],
      [{ state: { state: CONTAINER_CREATED } }, ['c02']],
      [{ state: { state: CONTAINER_RUNNING } }, ['c01', 'd02']],
      [{ state: { state: CONTAINER_EXITED } }, ['d01']],
      [{ state: { state: wire.ContainerState.CONTAINER_UNKNOWN } }, []],
      [{ labelSelector: { app: 'web' } }, ['d01', 'd02']],
      [{ labelSelector: { app: 'web', tier: 'y' } }, ['d02']],
      [{ labelSelector: { app: 'we' } }, []],
      [{ labelSelector: { toString: '' } }, []],
      [{ labelSelector: { ['__proto__']: '' } }, []],
      [{ id: 'd', podSandboxId: 'aa', state: { state: CONTAINER_EXITED }, labelSelector: { app: 'web' } }, ['d01']],
      [{ id: 'd', podSandboxId: 'aa1' }, []],
    ];
    assert.deepEqual(Buffer.from(list(undefined)), encodedContainers(all));
    for (const [filter, expected] of cases) {
      assert.deepEqual(Buffer.from(list(containerFilter(filter))), encodedContainers(expected), JSON.stringify(filter));
    }
  });

  it('of pod sandboxes: by id or its beginning, state, labels; one that is being made is not shown', () => {
    const { podSandboxes: list } = createLists(filled());
    const all = ['aa1', 'aa2', 'bb'];
    const cases: readonly (readonly [wire.DeepPartial<wire.PodSandboxFilter>, readonly string[]])[] = [
      [{}, all],
      [{ id: 'aa' }, ['aa1', 'aa2']],
      [{ id: 'cc' }, []],
      [{ state: { state: SANDBOX_READY } }, ['aa1', 'bb']],
      [{ state: { state: SANDBOX_NOTREADY } }, ['aa2']],
      [{ labelSelector: { tier: 'x' } }, ['bb']],
      [{ id: 'aa', state: { state: SANDBOX_NOTREADY } }, ['aa2']],
    ];
    assert.deepEqual(Buffer.from(list(undefined)), encodedPods(all));
    for (const [filter, expected] of cases) {
      assert.deepEqual(Buffer.from(list(podFilter(filter))), encodedPods(expected), JSON.stringify(filter));
    }
  });

  it('of images: those that are being removed are gone for everybody', () => {
    const images = [imageEntry(image('sha256:i1'), false)];
    const expected = Buffer.from(wire.ListImagesResponse.encode({ images }).finish());
    assert.deepEqual(Buffer.from(createLists(filled()).images()), expected);
    const pinned = wire.ListImagesResponse.decode(createLists(filled(), ({ id }) => id === 'sha256:i1').images());
    assert.deepEqual(pinned.images, [imageEntry(image('sha256:i1'), true)]);
  });

  it('hold what was put in, in order of creation, whatever it is', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 300 });
    const labels = fc
      .array(fc.tuple(fc.oneof(text, fc.constantFrom('__proto__', 'constructor')), text), { maxLength: 4 })
      .map((pairs) => Object.fromEntries(pairs));
    fc.assert(
      fc.property(fc.array(fc.tuple(text, labels), { maxLength: 5 }), (wanted) => {
        const view = testModel();
        const made = wanted.map(([name, of], n) =>
          labelled({ ...container(idOf(`${n}x`), idOf('p')), config: { metadata: { name } } }, of),
        );
        view.put({ containers: made });
        const expected = made.map((one) => containerEntry(one, CONTAINER_RUNNING));
        assert.deepEqual(
          Buffer.from(createLists(view).containers(undefined)),
          Buffer.from(wire.ListContainersResponse.encode({ containers: expected }).finish()),
        );
      }),
      { numRuns: 300 },
    );
  });

  it('are encoded once per change', () => {
    const view = filled();
    const lists = createLists(view);
    const before = lists.containers(undefined);
    assert.equal(lists.containers(containerFilter({})), before, 'an empty filter is none');
    assert.equal(lists.containers(undefined), before);
    const [one] = containers[0] ?? [];
    assert.ok(one);
    view.put({ containers: [{ ...one, phase: exited(exit) }] });
    const after = wire.ListContainersResponse.decode(lists.containers(undefined));
    assert.deepEqual(
      after.containers.map(({ state }) => state),
      [CONTAINER_EXITED, CONTAINER_CREATED, CONTAINER_EXITED, CONTAINER_RUNNING],
    );
  });

  it('statuses are kept while neither the container nor an image changes', () => {
    const view = filled();
    const { containerStatus } = createLists(view);
    const [one] = containers[0] ?? [];
    assert.ok(one);
    const before = containerStatus(one);
    assert.equal(containerStatus(one), before);
    const { content } = image('sha256:i1');
    view.put({ images: [image('sha256:i1', { content: { ...content, repoTags: ['other.test/name:1'] } })] });
    const { status } = wire.ContainerStatusResponse.decode(containerStatus(one) ?? new Uint8Array());
    assert.equal(status?.image?.image, 'other.test/name:1');
    assert.equal(containerStatus({ ...one, phase: CREATING }), null);
  });

  it('are the same over the socket, and noted with what was asked for', async (t) => {
    const { cri, reads } = await startServer(t, { view: filled() });
    const { containers: some } = await cri.runtime.listContainers({ filter: { id: 'c0' } });
    assert.deepEqual(
      some.map(({ id }) => id),
      [idOf('c01'), idOf('c02')],
    );
    assert.equal((await cri.runtime.listPodSandbox({})).items.length, 3);
    assert.equal((await cri.image.listImages({})).images.length, 1);
    assert.equal((await cri.image.listImages({ filter: { image: { image: 'busybox' } } })).images.length, 1);
    assert.equal((await cri.image.listImages({ filter: { image: { image: 'nginx' } } })).images.length, 0);
    assert.deepEqual(
      reads.map(({ method, subject }) => [method, subject]),
      [
        ['ListContainers', 'c0'],
        ['ListPodSandbox', ''],
        ['ListImages', ''],
        ['ListImages', 'busybox'],
        ['ListImages', 'nginx'],
      ],
    );
  });
});
