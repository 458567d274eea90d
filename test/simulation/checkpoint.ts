/** The checkpoint of a pod that simulated nodes have. */
import type { DescribedPod } from '../../src/domain/pod-sandbox/restored.ts';
import { IMAGE } from './images.ts';

export const CHECKPOINT_PATH = '/p';

const described = (name: string) => ({
  name,
  archive: `${name}.tar`,
  imageName: IMAGE.repoTags[0] ?? '',
  imageId: IMAGE.id,
});

export const CHECKPOINT: DescribedPod = { containers: [described('c0'), described('c1')], users: null };
