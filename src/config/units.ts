/**
 * The units of the configuration file: durations ("24h", "1h30m"), sizes ("64MiB") and file modes ("0660") as text,
 * turned into plain numbers. Pure. Every parser gives null for what it does not understand.
 */
import { isIP } from 'node:net';

const MS_OF_UNIT: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

const BYTES_OF_UNIT: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

export const DURATION_UNITS = Object.keys(MS_OF_UNIT).join(', ');
export const SIZE_UNITS = Object.keys(BYTES_OF_UNIT).join(', ');

const safe = (value: number): number | null => (Number.isSafeInteger(value) ? value : null);

/** One or more whole numbers with units, largest unit first by custom only: "24h", "1h30m", "500ms"; in ms. */
export const parseDurationMs = (text: string): number | null => {
  if (!/^(\d+(ms|s|m|h|d))+$/.test(text)) return null;
  const parts = text.matchAll(/(\d+)(ms|s|m|h|d)/g);
  return safe(parts.reduce((sum, [, count, unit]) => sum + Number(count) * (MS_OF_UNIT[unit ?? ''] ?? Number.NaN), 0));
};

/** A whole number with a binary unit: "16384B", "64MiB"; in bytes. */
export const parseSizeBytes = (text: string): number | null => {
  const [, count, unit] = /^(\d+)([KMGT]iB|B)$/.exec(text) ?? [];
  return safe(Number(count) * (BYTES_OF_UNIT[unit ?? ''] ?? Number.NaN));
};

/** Permission bits in octal: "0660". */
export const parseFileMode = (text: string): number | null =>
  /^0[0-7]{3}$/.test(text) ? Number.parseInt(text, 8) : null;

/** "127.0.0.1:9324" or "[::1]:9324" in its parts; null when it is neither. */
export const parseHostAndPort = (address: string): { readonly host: string; readonly port: number } | null => {
  const [, six, four, port] = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(address) ?? [];
  const host = six ?? four ?? '';
  return isIP(host) === (six === undefined ? 4 : 6) && Number(port) <= 65_535 ? { host, port: Number(port) } : null;
};
