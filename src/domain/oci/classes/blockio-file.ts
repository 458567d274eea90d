/**
 * From the parsed content of a file of block I/O classes to the classes, in the words that containerd and CRI-O take:
 * Classes, and in each a list with Devices, Weight, ThrottleReadBps, ThrottleWriteBps, ThrottleReadIOPS and
 * ThrottleWriteIOPS. Quantities may have Kubernetes' suffixes (10k, 50M, 1Gi).
 */
import { FailureError } from '../../model/errors.ts';
import { type Read, shapes } from '../../values/shape.ts';
import type { BlockIOClasses, BlockIOParameters } from '../../model/classes.ts';

const MIN_WEIGHT = 10;
const MAX_WEIGHT = 1_000;
const MAX_CLASSES = 1_000;

const DECIMAL = 1_000;
const BINARY = 1_024;
const SUFFIXES = ['k', 'M', 'G', 'T', 'P', 'E'] as const;
const FACTORS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ...SUFFIXES.map((suffix, index) => [suffix, DECIMAL ** (index + 1)] as const),
  ...SUFFIXES.map((suffix, index) => [`${suffix.toUpperCase()}i`, BINARY ** (index + 1)] as const),
]);
const QUANTITY = /^(\d{1,15}(?:\.\d{1,9})?)\s?([kMGTPE]|[KMGTPE]i)?$/;

/** Rounded up, as Kubernetes does; null for what is none, or more than is exact. */
function parseQuantity(text: string): number | null {
  const [, amount, suffix = ''] = QUANTITY.exec(text) ?? [];
  const value = Math.ceil(Number(amount) * (FACTORS.get(suffix) ?? Number.NaN));
  return Number.isSafeInteger(value) ? value : null;
}

const THROTTLES = {
  ThrottleReadBps: 'throttleReadBps',
  ThrottleWriteBps: 'throttleWriteBps',
  ThrottleReadIOPS: 'throttleReadIOPS',
  ThrottleWriteIOPS: 'throttleWriteIOPS',
} as const;

/** @throws {FailureError} HostFailed, saying what of the file at `path` is wrong */
export function parseBlockIOClasses(content: unknown, path: string): BlockIOClasses {
  const bad = (problem: string): never => {
    throw new FailureError('HostFailed', `the block I/O classes in ${path}: ${problem}`);
  };
  const { object, list, text } = shapes(bad);

  const quantity = (value: unknown, name: string, least: number, most: number): number => {
    const amount = parseQuantity(text(value, name, /^/, 'a number with or without a suffix (10k, 50M, 1Gi)'));
    if (amount === null || amount < least || amount > most)
      return bad(`${name} must be a number from ${least} to ${most}, with or without a suffix (10k, 50M, 1Gi)`);
    return amount;
  };
  const pattern: Read<string> = (value, name) => text(value, name, /^\/[^\0]+$/, 'an absolute path');

  const parameters: Read<BlockIOParameters> = (value, at) => {
    const fields = object(value, at, ['Devices', 'Weight', ...Object.keys(THROTTLES)]);
    const throttles = Object.entries(THROTTLES).flatMap(([key, name]) =>
      fields[key] === undefined ? [] : [[name, quantity(fields[key], `${at}.${key}`, 0, Number.MAX_SAFE_INTEGER)]],
    );
    if (fields['Devices'] === undefined && throttles.length > 0)
      bad(`${at} throttles without Devices: name the devices that are to be throttled`);
    return {
      ...(fields['Devices'] === undefined ? {} : { devices: list(fields['Devices'], `${at}.Devices`, pattern) }),
      ...(fields['Weight'] === undefined
        ? {}
        : { weight: quantity(fields['Weight'], `${at}.Weight`, MIN_WEIGHT, MAX_WEIGHT) }),
      ...(Object.fromEntries(throttles) as Partial<BlockIOParameters>),
    };
  };

  const file = object(content, 'it', ['Classes']);
  const classes = file['Classes'] ?? {};
  const named = Object.entries(object(classes, 'Classes', Object.keys(classes)));
  if (named.length > MAX_CLASSES) bad(`Classes has more than ${MAX_CLASSES} entries`);
  return Object.fromEntries(named.map(([name, some]) => [name, list(some, `Classes.${name}`, parameters)]));
}
