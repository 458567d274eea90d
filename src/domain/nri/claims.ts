/**
 * Who owns what of one container, while the answer of one plugin is read: every field, or key of a field, has one owner,
 * and two that set the same thing are a conflict, which names both. Inside, conflicts are thrown.
 */
import { FailureError } from '../model/errors.ts';
import type { FieldOwners, NriField } from '../model/nri.ts';
import { isMarked, MARK } from './marks.ts';

export const NOBODY: FieldOwners = { simple: {}, compound: {} };

/** What one plugin claims while its answer is read. */
export interface Claims {
  readonly plugin: string;
  /** @throws {FailureError} PluginConflict where it has an owner */
  readonly claim: (field: NriField, key?: string) => void;
  readonly clear: (field: NriField, key?: string) => void;
  /** One of several who add to it. */
  readonly share: (field: NriField) => void;
  readonly owners: () => FieldOwners;
}

export function claimsOf({ simple, compound }: FieldOwners, plugin: string): Claims {
  const fields = new Map(Object.entries(simple));
  const keys = new Map(Object.entries(compound).map(([field, owners]) => [field, new Map(Object.entries(owners))]));
  const keysOf = (field: NriField): Map<string, string> => {
    const known = keys.get(field) ?? new Map<string, string>();
    keys.set(field, known);
    return known;
  };
  const place = (field: NriField, key: string | undefined): readonly [Map<string, string>, string] =>
    key === undefined ? [fields, field] : [keysOf(field), key];
  return {
    plugin,
    claim: (field, key) => {
      const [owners, name] = place(field, key);
      const owner = owners.get(name);
      if (owner !== undefined && !isMarked(owner)) {
        const what = key === undefined ? field : `${field} ${key}`;
        throw new FailureError(
          'PluginConflict',
          `NRI plugins "${owner}" and "${plugin}" both tried to set ${what}: let one of them leave it, or take away first what the other set.`,
        );
      }
      owners.set(name, plugin);
    },
    clear: (field, key) => {
      const [owners, name] = place(field, key);
      owners.set(name, `${MARK}${plugin}`);
    },
    share: (field) => {
      const before = fields.get(field);
      fields.set(field, before === undefined ? plugin : `${before},${plugin}`);
    },
    owners: () => ({
      simple: Object.fromEntries(fields),
      compound: Object.fromEntries([...keys].map(([field, owners]) => [field, Object.fromEntries(owners)])),
    }),
  };
}

/** Nobody takes these away. */
export function addTo<T>(
  claims: Claims,
  field: NriField,
  before: readonly T[] = [],
  answer: readonly T[] = [],
  keyOf: (item: T) => string,
): readonly T[] | undefined {
  for (const item of answer) claims.claim(field, keyOf(item));
  return before.length + answer.length === 0 ? undefined : [...before, ...answer];
}

/** One value, whoever sets it first. */
export function single<T>(
  claims: Claims,
  field: NriField,
  before: T | undefined,
  answer: T | undefined,
): T | undefined {
  if (answer === undefined) return before;
  claims.claim(field);
  return answer;
}

/** Without the fields that are undefined. */
export const present = <T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
