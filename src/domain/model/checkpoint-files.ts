/** The files that a container's checkpoint consists of: names in its archive, not their content. */
export const CHECKPOINT_FILES = {
  /** Directory of CRIU's images. */
  images: 'checkpoint',
  /** Archive of the container's writable layer. */
  changes: 'rootfs-diff.tar',
  /** Its OCI spec. */
  spec: 'spec.dump',
  /** What it was made from. */
  description: 'config.dump',
} as const;
