/**
 * Names of CDI devices, vendor/class=device, and where a container's config has them: in CDI_devices, and in annotations
 * of kubelets and device plugins that are older than the field.
 */
import type { ContainerConfig } from '../../model/cri.ts';
import { refuseField, shown } from '../refuse.ts';

const ANNOTATION_PREFIX = 'cdi.k8s.io/';
/** More would take longer to look up than anybody waits. */
const MAX_DEVICES = 1_000;

/** One letter, or from a letter to a letter or digit: a vendor, or a class. */
export const KIND_PART = /[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?/;
export const DEVICE_PART = /[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?/;

const QUALIFIED = new RegExp(`^${KIND_PART.source}/${KIND_PART.source}=${DEVICE_PART.source}$`);
const MAX_NAME_LENGTH = 512;

/** Names with the place in the config that each comes from. */
const namesIn = (config: ContainerConfig): readonly (readonly [field: string, name: string])[] => [
  ...(config.CDIDevices ?? []).map(({ name = '' }) => ['CDI_devices.name', name] as const),
  ...Object.entries(config.annotations ?? {})
    .filter(([key]) => key.startsWith(ANNOTATION_PREFIX))
    .flatMap(([key, value]) => value.split(',').map((name) => [`annotations[${shown(key)}]`, name] as const)),
];

/** @throws {FailureError} naming the first that is no name of a device */
export function checkCdiDevices(config: ContainerConfig): void {
  const names = namesIn(config);
  if (names.length > MAX_DEVICES) refuseField('CDI_devices', `has more than ${MAX_DEVICES} entries`);
  for (const [field, name] of names) {
    if (name.length > MAX_NAME_LENGTH || !QUALIFIED.test(name))
      refuseField(field, `is ${shown(name)}: it must be the name of a CDI device, such as vendor.com/class=device`);
  }
}

/** Names of the devices that the config asks for, each once, those of the field first. */
export const cdiDevicesOf = (config: ContainerConfig): readonly string[] => [
  ...new Set(namesIn(config).map(([, name]) => name)),
];
