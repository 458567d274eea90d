/**
 * Addresses that lead to this machine or to what only it can reach beside it: loopback, unspecified and link-local ones, as
 * IPv4, IPv6, or IPv4 in IPv6. A server elsewhere must not send anybody there, neither by address nor by a name that
 * resolves to one. Knows nothing of requests.
 */
import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

const LOCAL4 = ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16'];
/** What holds an IPv4 address in its last 32 bits: translators' addresses (RFC 6052), and compatible ones, with :: and ::1. */
const HOLDS_IPV4 = ['64:ff9b::', '::'];
const LINK_LOCAL6 = 'fe80::/10';

const local = ((): BlockList => {
  const list = new BlockList();
  const add = (subnet: string, prefixBefore: string): void => {
    const [network, bits] = subnet.split('/');
    const isIpv6 = prefixBefore !== '' || subnet.includes(':');
    list.addSubnet(
      `${prefixBefore}${network}`,
      Number(bits) + (prefixBefore === '' ? 0 : 96),
      isIpv6 ? 'ipv6' : 'ipv4',
    );
  };
  // Mapped addresses (::ffff:127.0.0.1) are looked up as the IPv4 addresses that they are.
  for (const prefix of ['', ...HOLDS_IPV4]) for (const subnet of LOCAL4) add(subnet, prefix);
  add(LINK_LOCAL6, '');
  return list;
})();

/** Whether an address, of either family, with or without brackets, is local. False for a name. */
export const isLocalAddress = (text: string): boolean => {
  const address = text.replace(/^\[(.*)\]$/, '$1').replace(/%.*$/, '');
  const family = isIP(address);
  return family !== 0 && local.check(address, family === 4 ? 'ipv4' : 'ipv6');
};

/** As dns.lookup when it is asked for all addresses. */
export type Lookup = (
  hostname: string,
  options: { readonly all: true },
  callback: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

export const lookupBySystem: Lookup = (hostname, options, callback) =>
  systemLookup(hostname, options, (error, addresses) => callback(error, addresses));

export class LocalAddressError extends Error {}

/**
 * Looks names up for a connection, and leaves local addresses out for `guardedHost`; an error when it has no others.
 * Another name than that is the proxy's, which the node's own configuration names.
 */
export const guardedLookup =
  (lookup: Lookup, guardedHost: string | null): LookupFunction =>
  (hostname, options, callback) => {
    lookup(hostname, { all: true }, (error, found) => {
      if (error) return callback(error, []);
      const fitting = found.filter(({ family }) => !options.family || options.family === family);
      const addresses = hostname === guardedHost ? fitting.filter(({ address }) => !isLocalAddress(address)) : fitting;
      const [first] = addresses;
      if (first === undefined) return callback(new LocalAddressError(`${hostname} is an address of this machine`), []);
      if (options.all) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    });
  };
