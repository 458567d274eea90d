/** CheckpointContainer: what runs is written down and runs on; what was cut short is cleared up. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { effectRequest } from '../../../src/domain/turn/effect-requests.ts';
import { given } from '../given.ts';
import {
  call,
  CONTAINER,
  createdContainer,
  fails,
  restart,
  runningContainer,
  shimSays,
  succeeds,
} from '../happenings.ts';

const checkpointAt = (location: string) =>
  call({ method: 'CheckpointContainer', containerId: CONTAINER, location, timeoutSeconds: '0' });
const checkpoint = checkpointAt('/backup/app.tar');

describe('CheckpointContainer', () => {
  it('has the checkpoint written, and answers', () => {
    given(runningContainer)
      .when(checkpoint, succeeds('CheckpointTask'))
      .follows({ asks: ['CheckpointTask'], answers: ['CheckpointContainer OK'] });
  });

  it('fails with the words of the runtime; the container runs on', () => {
    given(runningContainer, checkpoint)
      .when(fails('CheckpointTask', 'RuntimeFailed'))
      .follows({ answers: ['CheckpointContainer RuntimeFailed'] });
  });

  it('is refused for a container that does not run, or is being checkpointed already', () => {
    given(createdContainer)
      .when(checkpoint)
      .follows({ answers: ['CheckpointContainer WrongState'] });
    given(runningContainer, checkpoint)
      .when(checkpoint)
      .follows({ answers: ['CheckpointContainer WrongState'] });
  });

  it('is refused for a place that is no absolute path', () => {
    given(runningContainer)
      .when(checkpointAt('app.tar'))
      .follows({ answers: ['CheckpointContainer InvalidField'] });
  });

  it('is cleared up by somebody who is told where it was being written, and of which container', () => {
    const { state } = given(runningContainer, checkpoint, restart()).when(shimSays({ status: 'running' }));
    const ending = [...state.effects.values()].find(({ intent }) => intent.kind === 'EndCheckpoint');
    const asked = ending === undefined ? null : effectRequest(state, ending);
    const dirs = {
      bundlePath: `/state-dir/bundles/${CONTAINER}`,
      workDir: `/root-dir/containers/${CONTAINER}/checkpoint`,
    };
    assert.deepEqual(asked, {
      ok: true,
      value: { kind: 'EndCheckpoint', location: '/backup/app.tar', containerId: CONTAINER, ...dirs },
    });
  });

  it('is cleared up after a restart of the daemon, and the caller is told (C19)', () => {
    given(runningContainer, checkpoint)
      .when(restart(), shimSays({ status: 'running' }))
      .follows({ asks: ['ReconnectShim', 'EndCheckpoint'], answers: ['CheckpointContainer Interrupted'] });
  });
});
