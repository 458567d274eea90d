/**
 * Classes that annotations put a container in: of Intel RDT (cache and memory bandwidth), and of block I/O. The
 * container's own annotation wins over one of its pod for it by name, and that over one for all containers of the pod.
 */
import type { ContainerConfig, PodSandboxConfig } from '../../model/cri.ts';
import { refuseField, shown } from '../refuse.ts';

const KINDS = {
  rdt: { container: 'io.kubernetes.cri.rdt-class', pod: 'rdt.resources.beta.kubernetes.io' },
  blockIO: { container: 'io.kubernetes.cri.blockio-class', pod: 'blockio.resources.beta.kubernetes.io' },
} as const;

export type ClassKind = keyof typeof KINDS;

export interface AskedClass {
  readonly name: string;
  /** The annotation that asks for it, for messages. */
  readonly annotation: string;
}

/** null when nobody asks for a class, or for the empty one. */
export function classOf(kind: ClassKind, config: ContainerConfig, pod: PodSandboxConfig): AskedClass | null {
  const { container, pod: prefix } = KINDS[kind];
  const candidates = [
    [container, config.annotations],
    [`${prefix}/container.${config.metadata?.name ?? ''}`, pod.annotations],
    [`${prefix}/pod`, pod.annotations],
  ] as const;
  for (const [annotation, annotations] of candidates) {
    const name =
      annotations !== undefined && Object.hasOwn(annotations, annotation) ? annotations[annotation] : undefined;
    if (name !== undefined) return name === '' ? null : { name, annotation };
  }
  return null;
}

/** What somebody asks for in vain, behind who that is. */
export const CLASS_WITHOUT_RESCTRL = 'a class of Intel RDT, but this node has no resctrl: mount it at /sys/fs/resctrl';

/** The class of whatever is in none: resctrl's root. */
const ROOT_CLASS = 'system/default';
const CLASS_NAME = /^(?!\.{1,2}$)[^/\x00-\x1f]{1,255}$/;

/**
 * linux.intelRdt.closID for a class: the name of its directory in resctrl.
 * @throws {FailureError} InvalidField for what can be no name of a directory
 */
export function closIdOf({ name, annotation }: AskedClass): string {
  if (name === ROOT_CLASS) return '/';
  if (!CLASS_NAME.test(name))
    refuseField(`annotations[${shown(annotation)}]`, `is ${shown(name)}: it must be the name of a class`);
  return name;
}
