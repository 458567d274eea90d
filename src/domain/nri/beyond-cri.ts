/**
 * What NRI plugins want of a container's limits that CRI has no words for: put in force beside CRI's, and kept with what
 * plugins set in the container. Classes and device rules belong to the task as it was made: who wants others later is
 * refused by name. Pure.
 */
import type { Failure } from '../model/errors.ts';
import type { NriCpu, NriResources } from '../model/nri.ts';
import type { OciResources } from '../model/oci.ts';
import type { Container } from '../model/state.ts';
import { shown } from '../oci/refuse.ts';
import { sameJson } from '../values/json.ts';
import { present } from './claims.ts';
import { toOciResources } from './resources.ts';

/** Undefined when no field is set. */
export const some = <T extends object>(fields: T): T | undefined =>
  Object.keys(fields).length === 0 ? undefined : fields;

/** Absent: CRI has words for all of it. */
export function beyondCri({ memory = {}, cpu = {}, blockioClass, rdtClass, devices, pids }: NriResources) {
  const { limit: _limit, swap: _swap, ...memoryBeyond } = memory;
  const { realtimeRuntime, realtimePeriod } = cpu;
  return some(
    present<NriResources>({
      memory: some(memoryBeyond),
      cpu: some(present<NriCpu>({ realtimeRuntime, realtimePeriod })),
      blockioClass,
      rdtClass,
      devices,
      pids,
    }),
  );
}

/** Limits with others over them, within memory and CPU too. */
export function beyondOver(kept: NriResources, beyond: NriResources): NriResources {
  const { memory, cpu, ...rest } = beyond;
  return {
    ...kept,
    ...rest,
    ...present<Pick<NriResources, 'memory' | 'cpu'>>({
      memory: some({ ...kept.memory, ...memory }),
      cpu: some({ ...kept.cpu, ...cpu }),
    }),
  };
}

/** Of a container that is being updated: all of it that is to hold, as far as a task takes it. */
export function beyondThatHolds({ nri }: Pick<Container, 'nri'>, wanted: NriResources = {}): NriResources {
  const before = beyondCri(nri?.adjusted?.adjust.linux?.resources ?? {}) ?? {};
  const { blockioClass: _io, rdtClass: _rdt, devices: _rules, ...changeable } = beyondOver(before, wanted);
  return changeable;
}

/** Limits as the OCI runtime is told them. */
export function withBeyond(limits: OciResources, beyond: NriResources): OciResources {
  const { memory, cpu, ...rest } = toOciResources(beyond);
  return {
    ...limits,
    ...rest,
    ...(memory === undefined ? {} : { memory: { ...limits.memory, ...memory } }),
    ...(cpu === undefined ? {} : { cpu: { ...limits.cpu, ...cpu } }),
  };
}

const CLASSES = {
  blockioClass: 'the class of block I/O (blockio_class)',
  rdtClass: 'the class of RDT (rdt_class)',
} as const;

export interface Changeable {
  /** Absent: nothing is left of it. */
  readonly beyond?: NriResources;
  /** What can be given when the container is made, and is not as the plugin wants it; null: nothing. */
  readonly failure: Failure | null;
}

/**
 * What of an update can be put in force. A plugin may send back all that it was told: classes and rules that are those of
 * the container (`told`) say nothing.
 */
export function changeable(containerId: string, told: NriResources, beyond: NriResources = {}): Changeable {
  const { blockioClass, rdtClass, devices = [], ...rest } = beyond;
  const wanted = { blockioClass, rdtClass };
  const rule = devices.find((one) => !(told.devices ?? []).some((known) => sameJson(known, one)));
  const changed = [
    ...(['blockioClass', 'rdtClass'] as const).flatMap((name) =>
      (wanted[name] ?? '') === '' || wanted[name] === told[name]
        ? []
        : [`${CLASSES[name]} ${shown(wanted[name] ?? '')}`],
    ),
    ...(rule === undefined ? [] : ['other device rules (devices)']),
  ];
  const left = some(rest);
  return {
    ...(left === undefined ? {} : { beyond: left }),
    failure: changed.length === 0 ? null : fixed(containerId, changed.join(', ')),
  };
}

const fixed = (containerId: string, what: string): Failure => ({
  reason: 'PluginInvalid',
  message: `An NRI plugin wants ${what} for container ${containerId}, which is made: let it adjust the container in CreateContainer instead.`,
});
