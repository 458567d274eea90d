/**
 * What portmap says in vain: before version 1.3.0 of the plugins, which distributions still have, its CHECK looks for each
 * address's rules in the tables of both families, so that it finds mapped ports of no pod. Pure.
 */
import { isIP } from 'node:net';
import { addressesIn } from './result.ts';

const MISSING = /^failed: could not check ipv([46]) dnat: (.*)/;
const OF_V4 = / -s \d{1,3}(\.\d{1,3}){3}\/\d/;
const OF_V6 = / -s [\da-f]*:[\da-f:]*\/\d/;

/** Whether it misses what cannot be: rules in the tables of a family that the pod has no address of, or for an address of the other. */
export const missesInVain = (plugin: string, message: string, result: unknown): boolean => {
  const [, family, what = ''] = (plugin === 'portmap' && MISSING.exec(message)) || [];
  if (family === undefined) return false;
  const isWrong = (family === '4' ? OF_V6 : OF_V4).test(what);
  return isWrong || !addressesIn(result).some((address) => isIP(address) === Number(family));
};
