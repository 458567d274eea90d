/**
 * How many clients may be attached at once, together and to one container: each has a connection to the log keeper, and
 * may have 4 MiB waiting there. However many attach, the keeper has connections left for the daemon.
 */
import { FailureError } from '../../domain/model/errors.ts';

const PLACES = 32;
const PLACES_AT_ONE = 8;

/** Takes a place; the returned function gives it back. Throws TooManyClients when there is none. */
export type TakePlace = (containerId: string) => () => void;

export const createAttachedPlaces = (): TakePlace => {
  const taken = new Map<string, number>();
  return (containerId) => {
    const atOne = taken.get(containerId) ?? 0;
    const all = taken.values().reduce((sum, count) => sum + count, 0);
    if (atOne >= PLACES_AT_ONE || all >= PLACES) {
      const where = atOne >= PLACES_AT_ONE ? `Container ${containerId}` : 'The node';
      throw new FailureError('TooManyClients', `${where} has as many attached clients as it may have; end some.`);
    }
    taken.set(containerId, atOne + 1);
    return () => {
      const left = (taken.get(containerId) ?? 1) - 1;
      if (left === 0) taken.delete(containerId);
      else taken.set(containerId, left);
    };
  };
};
