/** What NRI plugins changed, by the plugin. Pure. */
import type { FieldOwners } from '../../domain/model/nri.ts';
import { type Owned, ownedIn } from '../history/plugins.ts';

const listed = (verb: string, owned: readonly Owned[]): readonly string[] =>
  owned.length === 0 ? [] : [`${verb} ${owned.map(({ field }) => field).join(', ')}`];

/** "10-limits set memoryLimit, Env HOME; 20-other took away Env PATH". */
export const fieldsOwnedBy = (owners: FieldOwners): string =>
  [...Map.groupBy(ownedIn(owners), ({ plugin }) => plugin)]
    .map(([plugin, owned]) => {
      const [taken, set] = [true, false].map((isTakenAway) => owned.filter((one) => one.isTakenAway === isTakenAway));
      return `${plugin} ${[...listed('set', set ?? []), ...listed('took away', taken ?? [])].join(' and ')}`;
    })
    .join('; ');
