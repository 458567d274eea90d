/** UpdatePodSandboxResources: kubelet keeps the pod's cgroup itself, so that the limits are only written down. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import { call, POD, readyPod } from '../happenings.ts';

const update = call({ method: 'UpdatePodSandboxResources', podSandboxId: POD, resources: { cpuShares: '512' } });

describe('UpdatePodSandboxResources', () => {
  it('writes the limits down and answers', () => {
    given(readyPod)
      .when(update)
      .follows({ records: ['sandbox.updated'], answers: ['UpdatePodSandboxResources OK'] });
  });

  it('is refused for a pod that is not there', () => {
    given()
      .when(update)
      .follows({ answers: ['UpdatePodSandboxResources PodSandboxNotFound'] });
  });
});
