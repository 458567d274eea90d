/** The OCI spec of a container with what NRI plugins changed in it, whenever it is built. */
import type { DaemonFacts } from '../model/daemon-facts.ts';
import type { OciSpec } from '../model/oci.ts';
import type { Result } from '../model/result.ts';
import type { Container, NodeState } from '../model/state.ts';
import { withAdjustmentApplied } from './apply.ts';
import { containerSpecOf } from '../oci/specs.ts';

/** Fails when its config, or a plugin, asks for what this pod, image or node can't give. */
export function adjustedSpecOf(state: NodeState, facts: DaemonFacts, container: Container): Result<OciSpec> {
  const built = containerSpecOf(state, facts, container);
  const { adjusted, facts: { cdi, blockIO = null } = {} } = container.nri ?? {};
  if (!built.ok || adjusted === undefined) return built;
  const known = { node: facts.node, blockIO, ...(cdi === undefined ? {} : { cdi }) };
  return withAdjustmentApplied(built.value, adjusted.adjust, known);
}
