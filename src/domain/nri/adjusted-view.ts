/**
 * What the next plugin is told of a container that is being created: as those before it have changed it. Nobody has asked
 * this node yet what names stand for, so that CDI devices are told by their names, and classes too.
 */
import type { ContainerAdjustment, LinuxContainerAdjustment, NriRdt } from '../model/nri.ts';
import type { NriContainer, NriLinuxContainer } from '../model/nri-views.ts';
import { withHooks } from '../oci/cdi/apply.ts';
import { envKey } from './merge.ts';
import {
  adjustedDevices,
  adjustedList,
  adjustedMap,
  adjustedMounts,
  adjustedNamespaces,
  resourcesOver,
} from './parts.ts';

/** `answer`: of one plugin. One that changes nothing gives back the very view. */
export function adjustedView(view: NriContainer, answer: ContainerAdjustment): NriContainer {
  if (Object.keys(answer).length === 0) return view;
  const { annotations, mounts, env, args, hooks, linux, rlimits, cdiDevices } = answer;
  return {
    ...view,
    ...(annotations === undefined ? {} : { annotations: adjustedMap(view.annotations, annotations) }),
    ...(mounts === undefined ? {} : { mounts: adjustedMounts(view.mounts, mounts) }),
    ...(env === undefined ? {} : { env: adjustedList(view.env, env, envKey) }),
    ...(args === undefined ? {} : { args: args[0] === '' ? args.slice(1) : args }),
    ...(hooks === undefined ? {} : { hooks: withHooks(view.hooks, hooks) }),
    ...(linux === undefined ? {} : { linux: adjustedLinux(view.linux ?? {}, linux) }),
    ...(rlimits === undefined ? {} : { rlimits: adjustedList(view.rlimits, rlimits, ({ type }) => type) }),
    ...(cdiDevices === undefined ? {} : { cdiDevices: [...(view.cdiDevices ?? []), ...cdiDevices] }),
  };
}

function adjustedLinux(view: NriLinuxContainer, answer: LinuxContainerAdjustment): NriLinuxContainer {
  // Memory policies are in no view.
  const { devices, resources, namespaces, sysctl, netDevices, rdt, memoryPolicy: _unseen, ...values } = answer;
  return {
    ...view,
    ...values,
    ...(devices === undefined ? {} : { devices: adjustedDevices(view.devices, devices) }),
    ...(resources === undefined ? {} : { resources: resourcesOver(view.resources, resources) }),
    ...(namespaces === undefined ? {} : { namespaces: adjustedNamespaces(view.namespaces, namespaces) }),
    ...(sysctl === undefined ? {} : { sysctl: adjustedMap(view.sysctl, sysctl) }),
    ...(netDevices === undefined ? {} : { netDevices: adjustedMap(view.netDevices, netDevices) }),
    ...(rdt === undefined ? {} : { rdt: adjustedRdt(view.rdt, rdt) }),
  };
}

const adjustedRdt = (view: NriRdt = {}, { remove, ...said }: NriRdt): NriRdt => ({
  ...(remove === true ? {} : view),
  ...said,
});
