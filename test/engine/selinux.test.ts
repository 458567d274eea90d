/** SELinux labels of pods from their request to what is done for them: kept over restarts, given back with the pod. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EffectOf } from '../../src/domain/model/effects.ts';
import { emptyContents } from '../../src/journal/memory-journal.ts';
import { factsOf } from '../simulation/facts.ts';
import { exitOf, idOf, reasonOf, type Rig, runContainer, runPod, startRig } from './rig.ts';

const labelling = factsOf(3, null);
const process = (categories: string): string => `system_u:system_r:container_t:s0:${categories}`;
const mount = (categories: string): string => `system_u:object_r:container_file_t:s0:${categories}`;

const mountOf = (rig: Rig, podSandboxId: string): string | undefined =>
  rig.view.state.sandboxes.get(podSandboxId)?.selinux?.mount;

test("a pod's labels are in what is asked of adapters, for the pod and for its containers", async () => {
  const pods: EffectOf<'PreparePodSandbox'>[] = [];
  const containers: EffectOf<'PrepareContainer'>[] = [];
  const rig = await startRig({
    facts: labelling,
    perform: {
      PreparePodSandbox: async (effect) => {
        pods.push(effect);
        return { rootfs: [] };
      },
      PrepareContainer: async (effect) => {
        containers.push(effect);
        return { rootfs: [] };
      },
    },
  });
  await runContainer(rig);
  assert.deepEqual(
    pods.map(({ mountLabel, bundle }) => [mountLabel, bundle?.spec.process.selinuxLabel]),
    [[mount('c0,c1'), process('c0,c1')]],
  );
  assert.deepEqual(
    containers.map(({ labels, bundle: { spec } }) => [labels, spec.process.selinuxLabel, spec.linux.mountLabel]),
    [[{ mount: mount('c0,c1'), paths: [] }, process('c0,c1'), mount('c0,c1')]],
  );
});

test('C13: labels outlive a restart, whatever that one is told, and are free again without their pod', async () => {
  const contents = emptyContents();
  const first = await startRig({ contents, facts: labelling });
  const [one, two] = [idOf(await first.call(runPod('one'))), idOf(await first.call(runPod('two')))];
  assert.deepEqual([mountOf(first, one), mountOf(first, two)], [mount('c0,c1'), mount('c1,c2')]);
  const { selinux: _, ...unlabelled } = labelling;
  const second = await startRig({ contents, facts: unlabelled });
  assert.equal(mountOf(second, two), mount('c1,c2'));
  assert.equal(mountOf(second, idOf(await second.call(runPod('plain')))), undefined);
  const third = await startRig({
    contents,
    facts: labelling,
    perform: {
      KillTask: async ({ podSandboxId, containerId }) => {
        setImmediate(() => void third.engine.observe(exitOf(podSandboxId, containerId, 137, 11)));
        return { alreadyGone: false };
      },
    },
  });
  assert.equal(mountOf(third, idOf(await third.call(runPod('three')))), mount('c2,c3'));
  assert.equal(reasonOf(await third.call({ method: 'RemovePodSandbox', podSandboxId: one })), 'OK');
  assert.equal(mountOf(third, idOf(await third.call(runPod('four')))), mount('c0,c1'));
});
