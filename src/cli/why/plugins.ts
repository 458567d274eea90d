/** What NRI plugins changed, by the plugin. Pure. */
import type { FieldOwners } from '../../domain/model/nri.ts';

/** "10-limits set memoryLimit and env HOME; 20-other set …". */
export const fieldsOwnedBy = ({ simple, compound }: FieldOwners): string => {
  const fields = new Map<string, string[]>();
  const note = (plugin: string, field: string): void => {
    fields.set(plugin, [...(fields.get(plugin) ?? []), field]);
  };
  for (const [field, plugin] of Object.entries(simple)) note(plugin, field);
  for (const [field, keys] of Object.entries(compound)) {
    for (const [key, plugin] of Object.entries(keys)) note(plugin, `${field} ${key}`);
  }
  return [...fields].map(([plugin, set]) => `${plugin} set ${set.join(', ')}`).join('; ');
};
