/** CheckpointPod: what runs in the pod is written down together and runs on; what was cut short is cleared up. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  call,
  createdContainer,
  exits,
  POD,
  removeContainer,
  restart,
  runningContainer,
  shimSays,
  succeeds,
} from '../happenings.ts';

const checkpointPod = call({
  method: 'CheckpointPod',
  podSandboxId: POD,
  outputPath: '/backup/pod',
  containerIds: [],
});

describe('CheckpointPod', () => {
  it('has all that runs written down together, and answers', () => {
    given(runningContainer)
      .when(checkpointPod, succeeds('CheckpointPod'))
      .follows({ asks: ['CheckpointPod'], answers: ['CheckpointPod OK'] });
  });

  it('is refused where nothing runs, or there is no pod', () => {
    given(createdContainer)
      .when(checkpointPod)
      .follows({ answers: ['CheckpointPod WrongState'] });
    given()
      .when(checkpointPod)
      .follows({ answers: ['CheckpointPod PodSandboxNotFound'] });
  });

  it('is waited for by the removal of a container in it, whose files it reads', () => {
    given(runningContainer, checkpointPod, removeContainer, succeeds('KillTask'), exits(137), succeeds('DeleteTask'))
      .when(succeeds('CheckpointPod'))
      .follows({ asks: ['CleanContainer'], answers: ['CheckpointPod OK'] });
  });

  it('is cleared up after a restart of the daemon, and the caller is told (C19)', () => {
    given(runningContainer, checkpointPod)
      .when(restart(), shimSays({ status: 'running' }))
      .follows({ asks: ['ReconnectShim', 'EndPodCheckpoint'], answers: ['CheckpointPod Interrupted'] });
  });
});
