/**
 * Parts of a container as they are once a plugin has changed them, the same in its spec and in what the next plugin is told.
 * What is taken away goes first, so that it can be set again by the same answer.
 */
import type { NriNamespace, NriResources } from '../model/nri.ts';
import type { OciDevice, OciMount } from '../model/oci.ts';
import { cleanPath, pathDepth } from '../oci/paths.ts';
import { bareKey, isMarked } from './marks.ts';

/** What is there is replaced in its place; what is new comes last. `same`: what a key is known by. */
export function adjustedList<T>(
  base: readonly T[] = [],
  changes: readonly T[],
  keyOf: (item: T) => string,
  same: (key: string) => string = (key) => key,
): readonly T[] {
  const all = new Map(base.map((item) => [same(keyOf(item)), item]));
  for (const item of changes) if (isMarked(keyOf(item))) all.delete(same(bareKey(keyOf(item))));
  for (const item of changes) if (!isMarked(keyOf(item))) all.set(same(keyOf(item)), item);
  return [...all.values()];
}

export const adjustedMap = <T>(
  base: Readonly<Record<string, T>> = {},
  changes: Readonly<Record<string, T>>,
): Readonly<Record<string, T>> =>
  Object.fromEntries(adjustedList(Object.entries(base), Object.entries(changes), ([key]) => key));

export const adjustedDevices = (
  base: readonly OciDevice[] | undefined,
  changes: readonly OciDevice[],
): readonly OciDevice[] => adjustedList(base, changes, ({ path }) => path, cleanPath);

/** None hides another: all are made again in the order of their depth, then of their names. */
export function adjustedMounts(
  base: readonly OciMount[] | undefined,
  changes: readonly OciMount[],
): readonly OciMount[] {
  const depth = ({ destination }: OciMount): number => pathDepth(destination);
  return adjustedList(base, changes, ({ destination }) => destination, cleanPath).toSorted(
    (a, b) => depth(a) - depth(b) || (a.destination < b.destination ? -1 : 1),
  );
}

export const adjustedNamespaces = (
  base: readonly NriNamespace[] | undefined,
  changes: readonly NriNamespace[],
): readonly NriNamespace[] => adjustedList(base, changes, ({ type }) => type);

/** Limits with others over them, field by field, list by list. */
export function resourcesOver(base: NriResources = {}, over: NriResources): NriResources {
  const pages = adjustedList(base.hugepageLimits, over.hugepageLimits ?? [], ({ pageSize }) => pageSize);
  const devices = [...(base.devices ?? []), ...(over.devices ?? [])];
  return {
    ...base,
    ...over,
    memory: { ...base.memory, ...over.memory },
    cpu: { ...base.cpu, ...over.cpu },
    ...(pages.length === 0 ? {} : { hugepageLimits: pages }),
    ...(over.unified === undefined ? {} : { unified: { ...base.unified, ...over.unified } }),
    ...(devices.length === 0 ? {} : { devices }),
  };
}
