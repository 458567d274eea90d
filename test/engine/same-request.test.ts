/** C5 for containers: tries of kubelet, each with another path for the termination log, are for one container. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { idOf, reasonOf, runPod, startRig } from './rig.ts';

const image = 'registry.test/app:1';
const create = (podSandboxId: string, random: string, args: readonly string[] = []): CallDraft => ({
  method: 'CreateContainer',
  podSandboxId,
  config: {
    metadata: { name: 'c' },
    image: { image },
    args,
    mounts: [{ containerPath: '/dev/termination-log', hostPath: `/var/lib/kubelet/pods/x/containers/c/${random}` }],
  },
});

test('C5: a try joins the one under way, or gets the finished container, with the first path in its spec', async () => {
  const sources: (string | undefined)[] = [];
  const { promise: prepared, resolve: finish } = Promise.withResolvers<{ rootfs: [] }>();
  const rig = await startRig({
    perform: {
      InspectContainer: async () => ({
        facts: {
          user: { uid: 0, gid: 0, additionalGids: [] },
          devices: [],
          mounts: [
            {
              hostPath: '/var/lib/kubelet/pods/x/containers/c/0000000a',
              realPath: '/logs/a',
              isDirectory: false,
              propagation: 'private',
              flags: [],
            },
          ],
        },
      }),
      PrepareContainer: ({ bundle }) => {
        sources.push(bundle.spec.mounts.find(({ destination }) => destination === '/dev/termination-log')?.source);
        return prepared;
      },
    },
  });
  await rig.call({ method: 'PullImage', image, credentials: null });
  const podSandboxId = idOf(await rig.call(runPod()));
  const gone = new AbortController();
  const first = rig.call(create(podSandboxId, '0000000a'), gone.signal);
  await rig.settle();
  gone.abort();
  const second = rig.call(create(podSandboxId, '0000000b'));
  assert.equal(reasonOf(await rig.call(create(podSandboxId, '0000000c', ['other']))), 'NameTaken');
  finish({ rootfs: [] });
  const id = idOf(await second);
  assert.equal(idOf(await first), id);
  assert.equal(idOf(await rig.call(create(podSandboxId, '0000000d'))), id);
  assert.deepEqual(sources, ['/logs/a']);
  await rig.call({ method: 'StartContainer', containerId: id });
  assert.equal(reasonOf(await rig.call(create(podSandboxId, '0000000e'))), 'NameTaken');
});
