/** What classes of RDT and block I/O add to the OCI spec of a container, and when asking for one is refused. */
import type { ContainerSpecInput } from '../input.ts';
import { refuse, shown } from '../refuse.ts';
import type { OciBlockIO, OciIntelRdt, OciSpec, OciThrottleDevice } from '../../model/oci.ts';
import { type AskedClass, classOf, closIdOf } from './names.ts';
import type { BlockDevice, BlockIOFact } from '../../model/classes.ts';

const asked = ({ name, annotation }: AskedClass, what: string): string =>
  `annotations[${shown(annotation)}] asks for the class ${shown(name)} of ${what}`;

/** @throws {FailureError} HostLacks on a node without resctrl, unless that is to be ignored */
function intelRdtOf({ config, sandboxConfig, node, settings }: ContainerSpecInput): OciIntelRdt | undefined {
  const wanted = classOf('rdt', config, sandboxConfig);
  if (wanted === null) return undefined;
  if (node.resctrl) return { closID: closIdOf(wanted) };
  if (settings.ignoreRdtNotEnabledErrors) return undefined;
  const remedy = 'mount resctrl at /sys/fs/resctrl, or set runtime.ignore_rdt_not_enabled_errors';
  return refuse('HostLacks', `${asked(wanted, 'RDT')}, which is not enabled on this node: ${remedy}`);
}

const keyOf = ({ major, minor }: BlockDevice): string => `${major}:${minor}`;

/** The last value that was given for each device. */
function perDevice(
  facts: readonly BlockIOFact[],
  field: 'weight' | 'throttleReadBps' | 'throttleWriteBps' | 'throttleReadIOPS' | 'throttleWriteIOPS',
): readonly (readonly [BlockDevice, number])[] {
  const values = new Map<string, readonly [BlockDevice, number]>();
  for (const fact of facts) {
    const value = fact[field];
    if (value === undefined) continue;
    for (const device of fact.devices ?? []) values.set(keyOf(device), [device, value]);
  }
  return [...values.values()];
}

/** Fields without an entry are left out. */
const withEntries = <T extends object>(fields: Readonly<Record<string, readonly unknown[]>>): Partial<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, entries]) => entries.length > 0)) as Partial<T>;

/** Limits of a class. */
export function blockIO(facts: readonly BlockIOFact[]): OciBlockIO {
  const weight = facts.findLast((fact) => fact.devices === null && fact.weight !== undefined)?.weight;
  const rates = (field: Parameters<typeof perDevice>[1]): readonly OciThrottleDevice[] =>
    perDevice(facts, field).map(([{ major, minor }, rate]) => ({ major, minor, rate }));
  return {
    ...(weight === undefined ? {} : { weight }),
    ...withEntries<OciBlockIO>({
      weightDevice: perDevice(facts, 'weight').map(([{ major, minor }, value]) => ({ major, minor, weight: value })),
      throttleReadBpsDevice: rates('throttleReadBps'),
      throttleWriteBpsDevice: rates('throttleWriteBps'),
      throttleReadIOPSDevice: rates('throttleReadIOPS'),
      throttleWriteIOPSDevice: rates('throttleWriteIOPS'),
    }),
  };
}

/** @throws {FailureError} HostLacks where no classes are configured, unless that is to be ignored */
function blockIOOf({ config, sandboxConfig, facts, settings }: ContainerSpecInput): OciBlockIO | undefined {
  const wanted = classOf('blockIO', config, sandboxConfig);
  if (wanted === null) return undefined;
  if (facts.blockIO) return blockIO(facts.blockIO);
  if (settings.ignoreBlockIONotEnabledErrors) return undefined;
  const remedy =
    'name a file of classes in runtime.blockio_config_file, or set runtime.ignore_blockio_not_enabled_errors';
  return refuse('HostLacks', `${asked(wanted, 'block I/O')}, but no classes are configured: ${remedy}`);
}

/** @throws {FailureError} when a class cannot be given */
export function applyClasses(spec: OciSpec, input: ContainerSpecInput): OciSpec {
  const intelRdt = intelRdtOf(input);
  const limits = blockIOOf(input);
  if (intelRdt === undefined && limits === undefined) return spec;
  const { linux } = spec;
  return {
    ...spec,
    linux: {
      ...linux,
      ...(intelRdt === undefined ? {} : { intelRdt }),
      ...(limits === undefined ? {} : { resources: { ...linux.resources, blockIO: limits } }),
    },
  };
}
