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

const digest = (digit: string): string => `sha256:${digit.repeat(64)}`;

/** What the same tag names later on; has its lowest layer in common with what it named before. */
export const NEWER_IMAGE: ImageContent = {
  ...IMAGE,
  id: digest('6'),
  manifestDigest: digest('7'),
  repoDigests: [`registry.test/app@${digest('7')}`],
  layers: [...IMAGE.layers, { digest: digest('8'), diffId: digest('9'), chainId: digest('0'), sizeBytes: 500 }],
  blobs: [digest('7'), digest('6'), digest('8'), `sha256:${'c'.repeat(64)}`],
};

/** For pause tasks only. */
export const PAUSE_IMAGE: ImageContent = {
  ...IMAGE,
  id: digest('e'),
  manifestDigest: digest('f'),
  repoTags: ['registry.test/pause:1'],
  repoDigests: [`registry.test/pause@${digest('f')}`],
  config: { entrypoint: ['/pause'] },
  layers: [
    {
      digest: `sha256:${'e1'.repeat(32)}`,
      diffId: `sha256:${'e2'.repeat(32)}`,
      chainId: `sha256:${'e2'.repeat(32)}`,
      sizeBytes: 100,
    },
  ],
  blobs: [digest('f'), digest('e'), `sha256:${'e1'.repeat(32)}`],
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
