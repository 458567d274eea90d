/** The table of a pod's steps: what is asked for together and in which order, per variant, and that no row is at fault. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EffectKind } from '../../../src/domain/model/effects.ts';
import { NamespaceMode, type PodSandboxConfig } from '../../../src/domain/model/cri.ts';
import { initialState, type PodSandbox } from '../../../src/domain/model/state.ts';
import { followedBy, STEP_ROWS, type StepRow, VARIANTS } from '../../../src/domain/pod-sandbox/steps.ts';
import { FACTS } from '../../simulation/facts.ts';
import { exitOf, idOf, podConfig, type Rig, startRig } from '../../engine/rig.ts';

type Variant = (typeof VARIANTS)[number];

const users = {
  mode: NamespaceMode.POD,
  uids: [{ hostId: 65536, length: 65536 }],
  gids: [{ hostId: 65536, length: 65536 }],
};

const configWith = (
  namespaceOptions: NonNullable<
    NonNullable<NonNullable<PodSandboxConfig['linux']>['securityContext']>['namespaceOptions']
  >,
): PodSandboxConfig => ({ ...podConfig(), linux: { securityContext: { namespaceOptions } } });

const configs: Readonly<Record<Variant, PodSandboxConfig>> = {
  pause: configWith({ pid: NamespaceMode.POD }),
  pauseOfUsers: configWith({ pid: NamespaceMode.CONTAINER, usernsOptions: users }),
  none: configWith({ pid: NamespaceMode.CONTAINER }),
  shim: configWith({ pid: NamespaceMode.CONTAINER }),
};

const runPod = async (variant: Variant): Promise<{ rig: Rig; podSandboxId: string }> => {
  const rig = await startRig();
  const runtimeHandler = variant === 'shim' ? 'own' : '';
  const config = configs[variant];
  return { rig, podSandboxId: idOf(await rig.call({ method: 'RunPodSandbox', config, runtimeHandler })) };
};

/** As they are when they are ready. */
const podOf = async (variant: Variant): Promise<PodSandbox> => {
  const { rig, podSandboxId } = await runPod(variant);
  const sandbox = rig.view.state.sandboxes.get(podSandboxId);
  assert.ok(sandbox !== undefined);
  return sandbox;
};

const pods: Readonly<Record<Variant, PodSandbox>> = {
  pause: await podOf('pause'),
  pauseOfUsers: await podOf('pauseOfUsers'),
  none: await podOf('none'),
  shim: await podOf('shim'),
};

/** What each record asks for, but timers. */
const askedIn = ({ contents }: Rig): string[] =>
  contents.rows.flatMap(({ record }) => {
    if (record?.type !== 'effects.requested' || !record.stream.startsWith('sandbox/')) return [];
    const { effects } = JSON.parse(record.body) as { effects: { kind: EffectKind }[] };
    const kinds = effects.flatMap(({ kind }) => (kind === 'WaitUntil' ? [] : [kind]));
    return kinds.length === 0 ? [] : [kinds.join(' ')];
  });

describe('the steps of a pod', () => {
  const specification: Readonly<Record<Variant, readonly [up: readonly string[], down: readonly string[]]>> = {
    pause: [
      ['PreparePodSandbox CreateNetns', 'StartShim', 'AttachNetwork', 'CreateTask StartTask'],
      ['DetachNetwork KillTask', 'DeleteTask', 'StopShim RemoveNetns', 'CleanPodSandbox'],
    ],
    pauseOfUsers: [
      ['PreparePodSandbox', 'StartShim', 'CreateTask StartTask', 'CreateNetns', 'AttachNetwork'],
      ['DetachNetwork KillTask', 'DeleteTask', 'StopShim RemoveNetns', 'CleanPodSandbox'],
    ],
    none: [
      ['PreparePodSandbox PinNamespaces AttachNetwork', 'StartShim'],
      ['DetachNetwork StopShim', 'UnpinNamespaces', 'CleanPodSandbox'],
    ],
    shim: [
      ['PreparePodSandbox CreateNetns', 'StartShim', 'AttachNetwork', 'StartSandbox'],
      ['DetachNetwork StopSandbox', 'StopShim RemoveNetns', 'CleanPodSandbox'],
    ],
  };
  for (const variant of VARIANTS)
    it(`are made and undone in this order: ${variant}`, async () => {
      const { rig, podSandboxId } = await runPod(variant);
      const [up, down] = specification[variant];
      assert.deepEqual(askedIn(rig), up);
      void rig.call({ method: 'RemovePodSandbox', podSandboxId });
      for (let i = 0; i < 10; i += 1) await rig.settle();
      if (variant.startsWith('pause')) await rig.engine.observe(exitOf(podSandboxId, podSandboxId, 137, 11));
      for (let i = 0; i < 10; i += 1) await rig.settle();
      assert.deepEqual(askedIn(rig).slice(up.length), down);
      assert.equal(rig.view.state.sandboxes.size, 0);
    });
});

/** What is wrong with a table of steps; nothing when a pod of each variant comes to be ready, and to be gone again. */
function faultsIn(rows: readonly StepRow[]): string[] {
  return VARIANTS.flatMap((variant) => {
    const own = rows.filter(({ of }) => of.includes(variant));
    const names = own.map(({ step }) => step);
    const kinds = own.flatMap(({ make, undo }) => [...make, undo].map(({ kind }) => kind));
    const twice = (list: readonly string[]): string[] => list.filter((one, index) => list.indexOf(one) !== index);
    const waits = {
      'is never made': ({ after, follows }: StepRow) => [...after, ...(follows === undefined ? [] : [follows])],
      'is never undone': ({ undoAfter, undoAfterTrying = [] }: StepRow) => [...undoAfter, ...undoAfterTrying],
    };
    return [
      ...twice(names).map((step) => `${step} is there twice`),
      ...twice(kinds).map((kind) => `${kind} is an effect of two steps`),
      ...Object.entries(waits).flatMap(([fault, waitsOf]) => stuckIn(own, waitsOf).map((step) => `${step} ${fault}`)),
      ...own.flatMap((row) => requestFaults(row, variant)),
    ].map((fault) => `${variant}: ${fault}`);
  });
}

/** Those that wait for each other, or for one that does. */
function stuckIn(rows: readonly StepRow[], waitsOf: (row: StepRow) => readonly string[]): string[] {
  const free = rows.filter((row) => !waitsOf(row).some((waited) => rows.some(({ step }) => step === waited)));
  const stuck = rows.filter((row) => !free.includes(row));
  return free.length === 0 || stuck.length === 0 ? stuck.map(({ step }) => step) : stuckIn(stuck, waitsOf);
}

const requestFaults = ({ make, undo }: StepRow, variant: Variant): string[] =>
  [...make, undo].flatMap(({ kind, request }) => {
    const asked = request(pods[variant], FACTS, initialState());
    return asked.ok && asked.value.kind === kind && JSON.stringify(asked.value).includes(pods[variant].id)
      ? []
      : [`${kind} has no request`];
  });

describe('the table of steps', () => {
  it('has no row at fault', () => assert.deepEqual(faultsIn(STEP_ROWS), []));

  const altered = (step: string, change: Partial<StepRow>): StepRow[] =>
    STEP_ROWS.map((row) => (row.step === step ? { ...row, ...change } : row));
  const [files] = STEP_ROWS;
  assert.ok(files !== undefined);
  const planted: readonly (readonly [mistake: string, rows: readonly StepRow[], fault: string])[] = [
    ['two steps that wait for each other', altered('files', { after: ['shim'] }), 'none: files is never made'],
    ['a step that follows itself', altered('network', { follows: 'network' }), 'none: network is never made'],
    [
      'two steps that are undone after each other',
      altered('network', { undoAfter: ['namespaces'] }),
      'none: network is never undone',
    ],
    ['a step with two rows', [...STEP_ROWS, files], 'shim: files is there twice'],
    [
      'an effect of two steps',
      altered('shim', { undo: files.undo }),
      'pause: CleanPodSandbox is an effect of two steps',
    ],
    [
      'an effect without a request',
      altered('files', { undo: { ...files.undo, request: files.make[0].request } }),
      'none: CleanPodSandbox has no request',
    ],
  ];
  for (const [mistake, rows, fault] of planted)
    it(`would not pass with ${mistake}`, () => assert.ok(faultsIn(rows).includes(fault), faultsIn(rows).join('\n')));

  it('says which effect follows which', () => {
    const followed = (variant: Variant): Record<string, string> =>
      Object.fromEntries(
        STEP_ROWS.filter(({ of }) => of.includes(variant)).flatMap(({ make }) =>
          make.flatMap(({ kind }) => {
            const before = followedBy(pods[variant], kind);
            return before === undefined ? [] : [[kind, before]];
          }),
        ),
      );
    assert.deepEqual(followed('none'), { AttachNetwork: 'PinNamespaces' });
    assert.deepEqual(followed('pause'), { StartTask: 'CreateTask' });
    assert.deepEqual(followed('pauseOfUsers'), { StartTask: 'CreateTask' });
    assert.deepEqual(followed('shim'), {});
  });
});
