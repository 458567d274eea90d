/** The OCI spec of a container with what NRI plugins changed in it, whenever it is built. */
import type { DaemonFacts } from '../model/daemon-facts.ts';
import type { OciSpec } from '../model/oci.ts';
import { refused, type Result } from '../model/result.ts';
import { rulesOf } from '../model/rules.ts';
import type { RuntimeHandler } from '../model/runtime-handler.ts';
import type { Container, NodeState } from '../model/state.ts';
import { withAdjustmentApplied } from './apply.ts';
import { CLASS_WITHOUT_RESCTRL } from '../oci/classes/names.ts';
import { shown } from '../oci/refuse.ts';
import { containerSpecOf } from '../oci/specs.ts';

/** Fails when its config, or a plugin, asks for what this pod, image or node can't give. */
export function adjustedSpecOf(state: NodeState, facts: DaemonFacts, container: Container): Result<OciSpec> {
  const built = containerSpecOf(state, facts, container);
  const { adjusted, facts: { cdi, blockIO = null } = {} } = container.nri ?? {};
  if (!built.ok || adjusted === undefined) return built;
  const rules = rulesOf({ facts });
  const byRules = { doublesRlimits: rules < 11, mountedDevices: rules >= 11 };
  const known = { node: facts.node, blockIO, ...byRules, ...(cdi === undefined ? {} : { cdi }) };
  return withAdjustmentApplied(built.value, adjusted.adjust, known);
}

/**
 * That of a container that is being made. Fails also where the OCI runtime would leave out something without a word, or
 * would refuse it in words that name nobody.
 */
export function newSpecOf(state: NodeState, facts: DaemonFacts, container: Container): Result<OciSpec> {
  const built = adjustedSpecOf(state, facts, container);
  if (!built.ok || rulesOf({ facts }) < 11) return built;
  const { handler } = state.sandboxes.get(container.podSandboxId) ?? {};
  const lacking = unknownTo(handler, built.value.linux) ?? rdtLacking(facts, container, built.value.linux);
  return lacking === null ? built : refused({ reason: 'HostLacks', message: `an NRI plugin asks for ${lacking}` });
}

/** What the OCI runtime does not know, and would leave out; null: it knows all. Nobody but plugins asks for this. */
const unknownTo = (
  handler: RuntimeHandler | undefined,
  { netDevices = {}, memoryPolicy }: OciSpec['linux'],
): string | null => {
  const interfaces = Object.keys(netDevices);
  // Those that devices of CRI come with were refused as the spec was built.
  if (interfaces.length > 0 && handler?.netDevices !== true)
    return `the network interfaces ${shown(interfaces.join(', '))}, which the OCI runtime of this runtime handler can not move`;
  if (memoryPolicy !== undefined && handler?.memoryPolicy !== true)
    return `the memory policy ${shown(memoryPolicy.mode)}, which the OCI runtime of this runtime handler can not set`;
  return null;
};

/** The class that a CDI device of a plugin comes with, where there can be none. Devices of CRI are refused as the spec is built. */
const rdtLacking = ({ node }: DaemonFacts, { nri }: Container, { intelRdt }: OciSpec['linux']): string | null => {
  const comes = nri?.facts?.cdi?.some((edits) => edits.intelRdt !== undefined) === true;
  return comes && intelRdt !== undefined && node.resctrl !== true ? `a CDI device with ${CLASS_WITHOUT_RESCTRL}` : null;
};
