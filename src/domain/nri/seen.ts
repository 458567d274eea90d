/**
 * A container as the next plugin sees it: with what those before it changed. By the function that changes the spec itself,
 * so that plugins see what will be.
 */
import type { NodeFacts } from '../model/node-facts.ts';
import type { ContainerAdjustment, NriResources } from '../model/nri.ts';
import type { NriContainer, NriLinuxContainer } from '../model/nri-views.ts';
import type { OciSpec } from '../model/oci.ts';
import { withAdjustmentApplied } from './apply.ts';
import { fromOciResources, toOciResources } from './resources.ts';

/** What can't be applied is not seen: whoever puts the answers together refuses it. */
export function withAdjustmentSeen(view: NriContainer, adjust: ContainerAdjustment, node: NodeFacts): NriContainer {
  const { linux: { resources, rdt, scheduler, ...linux } = {}, rlimits, cdiDevices = [], ...rest } = adjust;
  const { blockioClass, rdtClass, ...limits } = resources ?? {};
  const changed = withAdjustmentApplied(specOf(view), { ...rest, linux: { ...linux, resources: limits } }, { node });
  if (!changed.ok) return view;
  const { annotations, process, mounts, hooks, linux: made } = changed.value;
  const classes: NriResources = {
    ...(blockioClass === undefined ? {} : { blockioClass }),
    ...(rdtClass === undefined ? {} : { rdtClass }),
  };
  const seen: NriLinuxContainer = {
    ...view.linux,
    namespaces: made.namespaces,
    resources: { ...view.linux?.resources, ...fromOciResources(made.resources), ...classes },
    ...(made.devices === undefined ? {} : { devices: made.devices }),
    cgroupsPath: made.cgroupsPath,
    ...(made.seccomp === undefined ? {} : { seccompPolicy: made.seccomp }),
    ...(made.sysctl === undefined ? {} : { sysctl: made.sysctl }),
    ...(made.netDevices === undefined ? {} : { netDevices: made.netDevices }),
    ...(process.oomScoreAdj === undefined ? {} : { oomScoreAdj: process.oomScoreAdj }),
    ...(process.ioPriority === undefined ? {} : { ioPriority: process.ioPriority }),
    ...(scheduler === undefined ? {} : { scheduler }),
    ...(rdt === undefined ? {} : { rdt }),
  };
  return {
    ...view,
    ...(annotations === undefined ? {} : { annotations }),
    args: process.args,
    env: process.env,
    mounts,
    ...(hooks === undefined ? {} : { hooks }),
    linux: seen,
    ...(rlimits === undefined ? {} : { rlimits: [...(view.rlimits ?? []), ...rlimits] }),
    ...(cdiDevices.length === 0 ? {} : { cdiDevices: [...(view.cdiDevices ?? []), ...cdiDevices] }),
  };
}

/** What of a spec an adjustment can change. */
function specOf({ annotations, args = [], env = [], mounts = [], hooks, linux = {} }: NriContainer): OciSpec {
  const { namespaces = [], devices, resources = {}, oomScoreAdj, cgroupsPath, ioPriority, sysctl, netDevices } = linux;
  const { seccompPolicy } = linux;
  // The rest of a spec no plugin sees: its types are not needed for what is done here.
  return {
    ...(annotations === undefined ? {} : { annotations }),
    process: {
      args,
      env,
      ...(oomScoreAdj === undefined ? {} : { oomScoreAdj }),
      ...(ioPriority === undefined ? {} : { ioPriority }),
    },
    mounts,
    ...(hooks === undefined ? {} : { hooks }),
    linux: {
      namespaces,
      resources: toOciResources(resources),
      ...(devices === undefined ? {} : { devices }),
      ...(cgroupsPath === undefined ? {} : { cgroupsPath }),
      ...(seccompPolicy === undefined ? {} : { seccomp: seccompPolicy }),
      ...(sysctl === undefined ? {} : { sysctl }),
      ...(netDevices === undefined ? {} : { netDevices }),
    },
  } as unknown as OciSpec;
}
