/**
 * Messages of CRI as the info maps of verbose replies show them: in the words of api.proto and with numbers for numbers, which
 * is how crictl's own files are written and what other runtimes show, so that tools find what they look for. Pure.
 */
import { fields } from '../../../wire/fields.ts';
import { words } from '../../../domain/values/words.ts';

/** Fields of 64 bits, which the domain has as decimal text. */
export const INT64_FIELDS: Readonly<Record<string, readonly string[]>> = {
  'runtime.v1.Int64Value': ['value'],
  'runtime.v1.LinuxSandboxSecurityContext': ['supplemental_groups'],
  'runtime.v1.LinuxContainerSecurityContext': ['supplemental_groups'],
  'runtime.v1.LinuxContainerResources': words(
    'cpu_period cpu_quota cpu_shares memory_limit_in_bytes oom_score_adj memory_swap_limit_in_bytes',
  ),
  'runtime.v1.HugepageLimit': ['limit'],
};

/** As the domain has the field. */
const camelCased = (name: string): string =>
  name.replaceAll(/_([A-Za-z])/g, (_match, letter: string) => letter.toUpperCase());

const isMessage = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Its keys are a client's words. */
const isMap = (type: string): boolean => type.endsWith('Entry');

/** What a number of JSON does not hold exactly stays text. */
const numberOf = (value: unknown): unknown => {
  const number = Number(value);
  return typeof value === 'string' && value !== '' && Number.isSafeInteger(number) ? number : value;
};

const each = (value: unknown, show: (one: unknown) => unknown): unknown =>
  Array.isArray(value) ? value.map(show) : show(value);

/** `type` is the message's whole name, runtime.v1.…; what the contract does not have, such as tokens, stays as it is. */
export function inCriWords(type: string, message: object): Readonly<Record<string, unknown>> {
  const int64s = INT64_FIELDS[type] ?? [];
  const known = new Map(Object.values(fields[type] ?? {}).map((field) => [camelCased(field[0]), field] as const));
  const entries = Object.entries(message).map(([key, value]: [string, unknown]): [string, unknown] => {
    const [name = key, inner] = known.get(key) ?? [];
    if (inner !== undefined && !isMap(inner))
      return [name, each(value, (one) => (isMessage(one) ? inCriWords(inner, one) : one))];
    return [name, int64s.includes(name) ? each(value, numberOf) : value];
  });
  return Object.fromEntries(entries);
}
