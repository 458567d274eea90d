/**
 * Reads what plugins print: the result of ADD in the shapes of CNI 0.1.0 to 1.1.0, and the error structure.
 * Plugins are not trusted: whatever does not fit is refused with a reason, and texts are cut and cleaned. Pure.
 */
import { isIP } from 'node:net';
import * as z from 'zod';
import { problemOf, readAs } from '../../platform/foreign-json.ts';
import { isSupportedVersion } from './versions.ts';

const MESSAGE_LENGTH_MAX = 1024;
const ENTRIES_MAX = 256;

/** Which address family a pod's primary address is of; cni keeps the order of the plugins. */
export type IpPreference = 'ipv4' | 'ipv6' | 'cni';

const entries = <T extends z.ZodType>(entry: T) => z.array(entry).max(ENTRIES_MAX).nullish();

const addressSchema = z.string().max(64);

const legacyIpSchema = z.looseObject({ ip: addressSchema }).nullish();

const resultSchema = z.looseObject({
  cniVersion: z.string().nullish(),
  /** Since 0.3.0. */
  interfaces: entries(z.looseObject({ name: z.string().max(255) })),
  ips: entries(z.looseObject({ address: addressSchema, interface: z.number().int().nullish() })),
  /** Up to 0.2.0. */
  ip4: legacyIpSchema,
  ip6: legacyIpSchema,
});

const errorSchema = z.looseObject({
  code: z.number().optional(),
  msg: z.string().min(1),
  details: z.string().optional(),
});

export interface AddResult {
  /** As the plugin printed it, cniVersion filled in: what the next plugin, DEL and CHECK get as prevResult. */
  readonly result: Readonly<Record<string, unknown>>;
  /** The pod's addresses without prefix length, in the plugins' order. */
  readonly ips: readonly string[];
}

export interface PluginError {
  readonly code: number | null;
  readonly message: string;
}

/** One line of bounded length without control characters: fit for a log and for kubelet. */
export const cleanText = (text: string): string => {
  const line = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > MESSAGE_LENGTH_MAX ? `${line.slice(0, MESSAGE_LENGTH_MAX)}…` : line;
};

const withoutPrefixLength = (address: string): string => {
  const ip = address.split('/', 1)[0] ?? '';
  if (isIP(ip) === 0) throw new Error(`holds ${JSON.stringify(cleanText(address))}, which is no IP address`);
  return ip;
};

const podAddresses = (result: z.output<typeof resultSchema>, ifName: string): string[] => {
  const addresses: string[] = [];
  for (const { address, interface: index } of result.ips ?? []) {
    const ip = withoutPrefixLength(address);
    if (typeof index === 'number') {
      const owner = result.interfaces?.[index];
      if (owner === undefined) throw new Error(`gives ${ip} to interface ${index}, which it does not list`);
      // Plugins may list addresses of the host's side too: those are not the pod's.
      if (owner.name !== ifName) continue;
    }
    addresses.push(ip);
  }
  for (const legacy of [result.ip4, result.ip6]) {
    if (legacy !== null && legacy !== undefined) addresses.push(withoutPrefixLength(legacy.ip));
  }
  return [...new Set(addresses)];
};

/** Of a result that was read before: every address in it, without prefix length. */
export const addressesIn = (result: unknown): readonly string[] => {
  const { ips, ip4, ip6 } = resultSchema.safeParse(result).data ?? {};
  const all = [...(ips ?? []).map(({ address }) => address), ip4?.ip, ip6?.ip];
  return all.flatMap((address) => address?.split('/', 1) ?? []);
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`is not JSON: ${JSON.stringify(cleanText(text).slice(0, 200))}`, { cause: error });
  }
};

/** Throws an Error that completes the sentence "its result …". */
export const parseAddResult = (stdout: string, confVersion: string, ifName: string): AddResult => {
  if (stdout.trim() === '') throw new Error('is empty');
  const json = parseJson(stdout);
  const parsed = resultSchema.safeParse(json);
  if (!parsed.success) {
    throw new Error(`is malformed (${cleanText(problemOf(parsed.error))})`);
  }
  const named = parsed.data.cniVersion ?? '';
  const cniVersion = named === '' ? confVersion : named;
  if (!isSupportedVersion(cniVersion))
    throw new Error(`is of unknown version ${JSON.stringify(cleanText(cniVersion))}`);
  return { result: { ...parsed.data, cniVersion }, ips: podAddresses(parsed.data, ifName) };
};

/** What a plugin that failed has to say: its error structure, else its stderr, else its stdout. */
export const parsePluginError = (stdout: string, stderr: string): PluginError => {
  const said = readAs(errorSchema, stdout);
  if (said !== null) {
    const { code, msg, details } = said;
    const text = details === undefined || details === '' ? msg : `${msg}; ${details}`;
    return { code: code ?? null, message: cleanText(text) };
  }
  const text = [stderr, stdout].map(cleanText).find((candidate) => candidate !== '');
  return { code: null, message: text ?? 'it gave no reason' };
};

/** The pod's primary address first, the others after it in the plugins' order. */
export const orderIps = (ips: readonly string[], preference: IpPreference): string[] => {
  const family = { ipv4: 4, ipv6: 6, cni: null }[preference];
  const primary = ips.find((ip) => isIP(ip) === family) ?? ips[0];
  return primary === undefined ? [] : [primary, ...ips.filter((ip) => ip !== primary)];
};
