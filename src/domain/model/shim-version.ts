/** What is known of releases of runc's shim: a version, and what differs from which one on. Reads and runs no program. */

export interface ShimVersion {
  readonly major: number;
  readonly minor: number;
}

/**
 * Shims from 2.2 on watch a task for lack of memory from its creation on, older ones from when they are asked to start it.
 * One that does not say its version is taken for an older one.
 */
export const watchesMemoryFromCreation = (version: ShimVersion | null): boolean =>
  version !== null && (version.major > 2 || (version.major === 2 && version.minor >= 2));
