/**
 * Names of unpacked layers (OCI image-spec, "Layer ChainID"): a layer's contents together with all below it. Pure; here
 * and not in the domain because it takes SHA-256.
 */
import { createHash } from 'node:crypto';

export const sha256Of = (bytes: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** One chain id for each diff id, base first. */
export const chainIdsOf = (diffIds: readonly string[]): readonly string[] => {
  const chainIds: string[] = [];
  for (const diffId of diffIds) {
    const below = chainIds.at(-1);
    chainIds.push(below === undefined ? diffId : sha256Of(`${below} ${diffId}`));
  }
  return chainIds;
};
