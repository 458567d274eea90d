/** The annotations that limit how much a pod may receive and send: which they are, and what they may say. */
import type { PodSandboxConfig } from '../model/cri.ts';
import { parseQuantity } from '../values/quantity.ts';
import { refuseField, shown } from './refuse.ts';

export const BANDWIDTH_KEYS = {
  ingress: 'kubernetes.io/ingress-bandwidth',
  egress: 'kubernetes.io/egress-bandwidth',
} as const;

/** As Kubernetes bounds them: less or more was not meant. */
const MIN_BITS = 1_000n;
const MAX_BITS = 10n ** 15n;

/** @throws {FailureError} InvalidField: a limit that nobody understands would be none. */
export function checkBandwidth({ annotations = {} }: PodSandboxConfig): void {
  for (const key of Object.values(BANDWIDTH_KEYS)) {
    const quantity = annotations[key];
    if (quantity === undefined) continue;
    const bits = parseQuantity(quantity);
    if (bits === null || bits < MIN_BITS || bits > MAX_BITS)
      refuseField(
        `annotations.${key}`,
        `is ${shown(quantity)}: it must be a quantity of bits per second from 1k to 1P, as "10M" or "1.5Gi"`,
      );
  }
}
