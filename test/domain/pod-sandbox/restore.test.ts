/** RestorePod: a pod and its containers made of a checkpoint, shown together or not at all. */
import { describe, it } from 'node:test';
import { CHECKPOINT } from '../../simulation/checkpoint.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  call,
  containerConfig,
  createContainer,
  fails,
  POD,
  podConfig,
  pulledImage,
  succeeds,
} from '../happenings.ts';

const restoring = (...names: readonly string[]) => restoringFrom('/backup/pod', ...names);
const restoringFrom = (checkpointPath: string, ...names: readonly string[]) =>
  call({
    method: 'RestorePod',
    newId: POD,
    newContainerIds: names.map((name) => `${name}-id`),
    checkpointPath,
    config: podConfig(),
    runtimeHandler: '',
    containerConfigs: names.map((name) => containerConfig({ metadata: { name } })),
  });
const inner = containerConfig({ metadata: { name: 'c0' } });
/** All of the pod but its containers. */
const made = (['PreparePodSandbox', 'PinNamespaces', 'AttachNetwork'] as const).map((kind) => succeeds(kind));
const readCheckpoint = succeeds('ReadPodCheckpoint', { pod: CHECKPOINT });

describe('RestorePod', () => {
  it('reads first what there is in the checkpoint', () => {
    given(pulledImage)
      .when(restoring('c0', 'c1'))
      .follows({ asks: ['ReadPodCheckpoint'] });
  });

  it('reads nothing where the path is relative, or leads upwards', () => {
    for (const path of ['backup/pod', '/backup/../pod', ''])
      given(pulledImage)
        .when(restoringFrom(path, 'c0', 'c1'))
        .follows({ answers: ['RestorePod InvalidField'] });
  });

  it('makes the pod like any other', () => {
    given(pulledImage, restoring('c0', 'c1'))
      .when(readCheckpoint)
      .follows({ records: ['sandbox.requested'], asks: ['PreparePodSandbox', 'PinNamespaces', 'AttachNetwork'] });
  });

  it('then makes the containers, and shows all of it at once', () => {
    given(pulledImage, restoring('c0', 'c1'), readCheckpoint)
      .when(allSucceeds)
      .follows({
        records: [
          'sandbox.restoring',
          'container.requested',
          'container.requested',
          'sandbox.ready',
          'container.created',
          'container.created',
        ],
        asks: ['StartShim', 'InspectContainer', 'PrepareContainer', 'InspectContainer', 'PrepareContainer'],
        answers: ['RestorePod OK'],
      });
  });

  it('is not waited for by who asks for a container of it: those are shown with the pod, or never', () => {
    given(pulledImage, restoring('c0', 'c1'), readCheckpoint, ...made)
      .when(createContainer(inner, 'other'))
      .follows({ answers: ['CreateContainer WrongState'] });
  });

  it('is refused when the configs are not those of what is in the checkpoint', () => {
    given(pulledImage, restoring('c0'))
      .when(readCheckpoint)
      .follows({ answers: ['RestorePod InvalidField'] });
  });

  it('is refused when the checkpoint cannot be read, or its image is not there', () => {
    given(pulledImage, restoring('c0', 'c1'))
      .when(fails('ReadPodCheckpoint'))
      .follows({ answers: ['RestorePod HostFailed'] });
    given(restoring('c0', 'c1'))
      .when(readCheckpoint)
      .follows({ answers: ['RestorePod ImageNotFound'] });
  });
});
