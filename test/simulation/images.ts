/** The images that simulated registries have. */
import type { ImageContent } from '../../src/domain/model/image-content.ts';

export const IMAGE: ImageContent = {
  id: `sha256:${'a'.repeat(64)}`,
  manifestDigest: `sha256:${'b'.repeat(64)}`,
  repoTags: ['registry.test/app:1'],
  repoDigests: [`registry.test/app@sha256:${'b'.repeat(64)}`],
  sizeBytes: 1000,
  config: { entrypoint: ['/bin/app'] },
  layers: [
    {
      digest: `sha256:${'c'.repeat(64)}`,
      diffId: `sha256:${'d'.repeat(64)}`,
      chainId: `sha256:${'d'.repeat(64)}`,
      sizeBytes: 500,
    },
  ],
  blobs: [`sha256:${'b'.repeat(64)}`, `sha256:${'a'.repeat(64)}`, `sha256:${'c'.repeat(64)}`],
};

/** Mounted as a volume; shares its lowest layer with the other. */
export const DATA_IMAGE: ImageContent = {
  id: `sha256:${'1'.repeat(64)}`,
  manifestDigest: `sha256:${'2'.repeat(64)}`,
  repoTags: ['registry.test/data:1'],
  repoDigests: [`registry.test/data@sha256:${'2'.repeat(64)}`],
  sizeBytes: 2000,
  config: {},
  layers: [
    ...IMAGE.layers,
    {
      digest: `sha256:${'3'.repeat(64)}`,
      diffId: `sha256:${'4'.repeat(64)}`,
      chainId: `sha256:${'5'.repeat(64)}`,
      sizeBytes: 500,
    },
  ],
  blobs: [
    `sha256:${'2'.repeat(64)}`,
    `sha256:${'1'.repeat(64)}`,
    `sha256:${'3'.repeat(64)}`,
    `sha256:${'c'.repeat(64)}`,
  ],
};
