/** The checkpoint of a pod that simulated nodes have. */
import type { DescribedImage, DescribedPod } from '../../src/domain/model/pod-restore.ts';
import { IMAGE } from './images.ts';

export const CHECKPOINT_PATH = '/p';

/** Of one container, which is restored from its own archive. */
export const CHECKPOINT_ARCHIVE = '/c.tar';

export const CHECKPOINTED_IMAGE: DescribedImage = { imageName: IMAGE.repoTags[0] ?? '', imageId: IMAGE.id };

const described = (name: string) => ({
  name,
  archive: `${name}.tar`,
  ...CHECKPOINTED_IMAGE,
});

export const CHECKPOINT: DescribedPod = { containers: [described('c0'), described('c1')], users: null };
